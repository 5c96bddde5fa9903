"""Toybox without its renderer: a scene's picture is a patch of noise that stands for it, and units follow known rules.

Prompts, edits, captions, tools and the loop are real. Runs take a second, and what a unit responds to is certain.
"""

from __future__ import annotations

import contextlib
import io
import random
import traceback
from hashlib import sha384

from PIL import Image

from tests.support.run_log import RunLogInMemory
from workers.agent.loop import ProgramOutcome, run_agent, start
from workers.lab.image_tools import ImageSeeds, ImageTools, ToolBackends
from workers.lab.imaging import image_key
from workers.lab.memory import ImagesInMemory
from workers.lab.system import System
from workers.lab.tools import Tools
from workers.protocols import Exemplar, ExperimentResult, Picture, Response, no_progress
from workers.record.limits import Limits
from workers.record.systems import SystemSpec
from workers.toybox.scientist.backbone import ScriptedScientist
from workers.toybox.world.concepts import matches_any, parse_label
from workers.toybox.world.edits import apply_edit
from workers.toybox.world.prompts import caption, read_prompt
from workers.toybox.world.scenes import Scene, random_scene

UNIT = SystemSpec("unit", "paper", "layer", 0)
DATA = [random_scene(random.Random(f"paper world {number}")) for number in range(300)]


def responds_to(label, strength=10.0, noise=2.0):
    """A rule: about `strength` where a scene shows the label, about a fifth of it elsewhere."""

    def rule(scene):
        jitter = random.Random(_name(scene)).uniform(-noise, noise)
        return (strength if matches_any(parse_label(label), scene) else strength / 5) + jitter

    return rule


def _name(scene):
    """What noise is drawn from: the scene as it is without a view, which nothing here has."""
    return repr(scene).replace(", view=None", "")


def never(scene):
    return 0.0


class PaperWorld:
    """Draws, edits, describes and measures; one unit under one rule."""

    spec = UNIT

    def __init__(self, rule):
        self.rule = rule
        self.scenes = {}

    def picture(self, scene, remark=""):
        image = Image.frombytes("RGB", (4, 4), sha384(_name(scene).encode()).digest())
        self.scenes[image_key(image)] = scene
        return Picture(image, scene.to_json(), remark)

    def generate(self, prompts, seeds, progress=no_progress):
        readings = [read_prompt(prompt, seed) for prompt, seed in zip(prompts, seeds, strict=True)]
        return [self.picture(reading.scene, " ".join(reading.ignored)) for reading in readings]

    def edit(self, originals, instructions, seeds, progress=no_progress):
        scenes = [Scene.from_json(original.scene) for original in originals]
        return [self.picture(apply_edit(*each)) for each in zip(scenes, instructions, seeds, strict=True)]

    def describe(self, images):
        return [caption(self.scenes[image_key(image)]) for image in images]

    def summarize(self, images):
        return f"{len(images)} images"

    def respond(self, images):
        return [Response(round(self.rule(self.scenes[image_key(image)]), 2), image) for image in images]

    def ordinary(self, progress=no_progress):
        return None

    def exemplars(self, progress=no_progress):
        best = sorted(enumerate(DATA), key=lambda each: -self.rule(each[1]))[:15]
        if self.rule(best[0][1]) <= 0:
            return []
        pictures = [(number, self.picture(scene)) for number, scene in best]
        return [Exemplar(self.rule(DATA[n]), picture, picture.image, n) for n, picture in pictures]


class Run:
    """A run of the scripted scientist on one rule. `troubles` maps a step to how often its program fails."""

    def __init__(
        self, rule, *, task="describe", question="What drives it?", seed=0, limits=None, troubles=None, reference="API"
    ):
        self.world = PaperWorld(rule)
        self.memory = ImagesInMemory()
        self.troubles = dict(troubles or {})
        self.backbone = ScriptedScientist(words_per_second=0)
        self.run_log = RunLogInMemory()
        given = {"backbone": "scripted", "limits": limits or Limits(), "seed": seed, "reference": reference}
        self.run_log.append("started", start(question, task, UNIT, **given, versions={}))

    def play(self):
        while run_agent(self.run_log, self.backbone, self.run_program, self.memory.load):
            pass
        return self

    def run_program(self, code, number, state):
        world, earlier = self.world, [entry for each in self.of("result") for entry in each.entries]
        system = System(world, self.memory)
        studio = ImageTools(
            ToolBackends(lambda: world, lambda: world, lambda: world, lambda: world),
            self.memory,
            ImageSeeds(0, earlier),
            no_progress,
        )
        tools = Tools(system, self.memory, studio, earlier)
        step = next((step for step in self.troubles if f"Step {step}:" in code), None)
        if step and self.troubles[step]:
            self.troubles[step] -= 1
            return ProgramOutcome(ExperimentResult("timeout", error="too slow"), (), None)
        result = execute(code, system, tools)
        return ProgramOutcome(
            result, tuple(tools.entries), tools.exemplar_mean, best=tools.best, measured=tools.measured
        )

    def of(self, kind):
        return [event.payload for event in self.run_log.events() if event.kind == kind]

    @property
    def codes(self):
        return [reply.code for reply in self.of("reply") if reply.code]

    @property
    def end(self):
        return self.run_log.events()[-1]

    @property
    def conclusion(self):
        return self.end.payload.conclusion

    @property
    def labels(self):
        return self.conclusion.labels


def execute(code, system, tools):
    """The program, run here: the scripted scientist's own programs need no sandbox."""
    printed, space = io.StringIO(), {}
    try:
        with contextlib.redirect_stdout(printed):
            exec(code, space)
            space["run_experiment"](system, tools)
    except Exception:  # noqa: BLE001  whatever a program raises is its result
        return ExperimentResult("program_error", printed.getvalue(), error=traceback.format_exc())
    return ExperimentResult("ok", printed.getvalue())
