"""A backbone that plays written replies and a laboratory that plays written outcomes, for runs without either."""

from __future__ import annotations

import re
from typing import Any

from PIL import Image

from tests.support.run_log import RunLogInMemory
from workers.agent.loop import ProgramOutcome, run_agent, start
from workers.errors import MachineryError
from workers.protocols import ExperimentResult, Reply
from workers.record.experiments import LogEntry, Observation
from workers.record.limits import Limits, Usage
from workers.record.replies import Conclusion
from workers.record.systems import SystemSpec

UNIT = SystemSpec("unit", "toybox", "layer4", 7)
PROGRAM = "[HYPOTHESIS LIST]:\nHypothesis_1: red balls\n\n[CODE]:\n```python\nprogram {}\n```"
CONCLUSION = "[DESCRIPTION]: It responds to red balls.\n[LABEL]: red balls"
RED_BALLS = Conclusion("It responds to red balls.", ("red balls",))


class Playback:
    """A backbone that gives written replies, by their place in the conversation. An exception is raised instead."""

    label = "playback"
    price_known = True

    def __init__(self, *replies, usage=Usage()):  # noqa: B008  frozen
        self.replies = list(replies)
        self.usage = usage
        self.asked = []
        self.heard = []

    def reply(self, messages, load, emit, seed):
        place = sum(message.role == "assistant" for message in messages)
        self.asked.append(place + 1)
        self.heard = messages
        text = self.replies[place]
        if isinstance(text, list):  # what it gives when it is asked again and again
            text = text.pop(0)
        if isinstance(text, Exception):
            raise text
        for word in re.findall(r"\S+\s*", text):
            emit(word)
        return Reply(text, self.usage)


class Lab:
    """A runner whose programs are `program n`: the outcomes, in order of experiments."""

    def __init__(self, *outcomes):
        self.outcomes = outcomes
        self.ran = []
        self.states = []

    def __call__(self, code, number, state):
        self.ran.append(number)
        self.states.append(state)
        outcome = self.outcomes[(number - 1) % len(self.outcomes)] if self.outcomes else logged(40.0)
        if isinstance(outcome, list):
            outcome = outcome.pop(0)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome


def logged(*activations, exemplar_mean=None, **result):
    images = tuple(Observation(f"image {n}", value, f"key{n}") for n, value in enumerate(activations))
    return ProgramOutcome(
        ExperimentResult(**{"status": "ok"} | result), (LogEntry(images),) if images else (), exemplar_mean
    )


def begin(**changes):
    given: dict[str, Any] = {"backbone": "playback", "limits": Limits(), "seed": 5, "reference": "API", "versions": {}}
    task = changes.pop("task", "describe")
    return start("What drives it?", task, UNIT, **given | changes)


def new_run_log(**changes):
    run_log = RunLogInMemory()
    run_log.append("started", begin(**changes))
    return run_log


def play(backbone, lab=None, run_log=None, tries=0):
    """Play a run to its end; return its run log. Trouble is tried again `tries` times."""
    run_log = run_log or new_run_log()
    lab = lab or Lab()
    while True:
        try:
            if not run_agent(run_log, backbone, lab, load):
                return run_log
        except MachineryError:
            if not tries:
                raise
            tries -= 1


def load(key):
    return Image.new("RGB", (8, 8))


def kinds(run_log):
    return [event.kind for event in run_log.events()]


def notes(run_log):
    return [event.payload.reason for event in run_log.events() if event.kind == "reminder"]


def end(run_log):
    return run_log.events()[-1].payload


def programs(count):
    return [PROGRAM.format(n) for n in range(1, count + 1)]
