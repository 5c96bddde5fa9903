"""Write replies in the published grammar with their programs: short functions for people to read.

The docstring of a program names its step, from which a later reply knows what was done. `designs` chooses the
scenes.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from workers.toybox.scientist.reading import ReportedHypothesis
from workers.toybox.world.prompts import caption
from workers.toybox.world.scenes import Scene

EXEMPLARS_PROGRAM = '''\
def run_experiment(system, tools):
    """Step exemplars: what the strongest dataset images show"""
    activations, images = tools.dataset_exemplars(system)
    if not images:
        print("No image of the dataset activates this unit.")
        return
    names = [f"exemplar {number}, bright region" for number in range(1, len(images) + 1)]
    titles = tools.describe_images(images, names).splitlines()
    tools.log_experiment(activations, images, titles, tools.summarize_images(images))'''
"""The program that requests exemplars and has them described."""

_DRAW = '''
def run_experiment(system, tools):
    """Step {step}: {purpose}"""
    groups = {{
{groups}
    }}
    for group, lines in groups.items():
        prompts = [line.strip() for line in lines.strip().splitlines()]
        activations, images = system.neuron(tools.text2image(prompts))
        tools.log_experiment(activations, images, prompts, group)
'''

_EDIT = '''
def run_experiment(system, tools):
    """Step {step}: {purpose}"""
    plan = {{
{plan}
    }}
    for prompt, instructions in plan.items():
        original = tools.text2image([prompt])[0]
        edits = tools.edit_images([original] * len(instructions), instructions)[0][1::2]
        activations, images = system.neuron([original, *edits])
        tools.log_experiment(activations, images, [prompt, *instructions], "")
'''

AT_ONCE = 64
"""Maximum number of images in one tool call."""


def draw_program(step: str, purpose: str, groups: Mapping[str, Sequence[Scene]]) -> str:
    """Return the program that draws groups of scenes, measures them, and logs each group under its name.

    Prompts describe the scenes completely, and each is drawn once. A group too large for a call is split.
    """
    parts = []
    for name, scenes in groups.items():
        # Equal scenes have equal captions; a second image of one would count twice
        prompts = list(dict.fromkeys(map(caption, scenes)))
        # A tool call takes at most `AT_ONCE` images
        for start in range(0, len(prompts), AT_ONCE):
            lines = textwrap.indent("\n".join(prompts[start : start + AT_ONCE]), " " * 12)
            again = f", part {start // AT_ONCE + 1}" if len(prompts) > AT_ONCE else ""
            parts.append(f'        {json.dumps(name + again)}: """\n{lines}\n        """,')
    return _DRAW.format(step=step, purpose=purpose, groups="\n".join(parts)).strip()


def edit_program(step: str, purpose: str, plan: Mapping[str, Sequence[str]]) -> str:
    """Return the program that draws each prompt once and edits that image by each of its instructions."""
    lines = [f"        {json.dumps(prompt)}: {json.dumps(list(edits))}," for prompt, edits in plan.items()]
    return _EDIT.format(step=step, purpose=purpose, plan="\n".join(lines)).strip()


@dataclass(frozen=True)
class PlannedReply:
    """One reply: prose, then either a program or a conclusion as (tag, text)."""

    prose: str
    hypotheses: Sequence[ReportedHypothesis] = ()
    code: str = ""
    conclusion: Sequence[tuple[str, str]] = ()


def format_reply(move: PlannedReply) -> str:
    """Return the reply in the published grammar."""
    parts = [move.prose]
    if move.hypotheses:
        lines = []
        for each in move.hypotheses:
            mark = f"{each.status}: {each.reason}" if each.reason else each.status
            lines.append(f"Hypothesis_{each.number}: {each.text} [{mark}]")
        parts.append("\n".join(["[HYPOTHESIS LIST]:", *lines]))
    if move.code:
        parts.append(f"[CODE]:\n```python\n{move.code}\n```")
    parts += [f"[{tag}]: {text}" for tag, text in move.conclusion]
    return "\n\n".join(part for part in parts if part)
