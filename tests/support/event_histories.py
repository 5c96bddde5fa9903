"""Histories of runs drawn at random, sensible or not, for tests of what is folded from events."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tests.support.playback import begin
from workers.record.events import (
    Blocked,
    Ended,
    Event,
    ExperimentEnded,
    ExperimentStarted,
    Forked,
    Graded,
    LimitsChanged,
    Note,
    Paused,
    Payload,
    Reminder,
    Replied,
    Resumed,
    Retrying,
)
from workers.record.experiments import LogEntry, Observation
from workers.record.limits import Limits, Usage
from workers.record.replies import Conclusion

REASONS: tuple[Any, ...] = (
    "continue",
    "format",
    "conclude_again",
    "incomplete",
    "set_aside",
    "final_answer",
    "confirm",
)
TASKS = ("describe", "bias", "spurious", "free")
BIASES = ("", 'Weaker for balls at night ("ball" and "night"): 0.4.', 'Stronger on "snow".')
STEERING = ("note", "limits", "resumed", "retrying")


def draw_history(seed: int, length: int = 40) -> list[Event]:
    """A run that starts and then goes on by lot; the same seed gives the same events."""
    rng = random.Random(seed)
    first = begin(
        task=rng.choice(TASKS),
        limits=Limits(rounds=rng.choice((None, 2, 5, 25)), tokens=rng.choice((None, 400)), cost=None),
        reference="### tools.text2image(prompts)",
        reflections=rng.choice((0, 2)),
    )
    told: list[tuple[str, Payload]] = [("note", Note(0, "Ada", "Mind."))] * rng.choice((0, 0, 1)) + [("started", first)]
    kinds = list(MAKERS)
    # Steps of the agent are more frequent than what people do, and ends are rare
    weights = [1 if kind in STEERING else 0.15 if kind in ("blocked", "paused", "failed") else 4 for kind in kinds]
    round_number, experiment = 0, 0
    for seq in range(len(told) + 1, length + 1):
        kind = rng.choices(kinds, weights)[0]
        round_number += kind == "reply"
        experiment += kind == "experiment"
        told.append((kind, MAKERS[kind](rng, round_number, experiment, seq)))
    return [Event(seq, kind, payload) for seq, (kind, payload) in enumerate(told, 1)]


def _draw_reply(rng: random.Random, round_number: int, _: int, seq: int) -> Replied:
    said = Conclusion(
        rng.choice(("", "Red balls.")), rng.choice(((), ("red balls",), ("none",))), bias=rng.choice(BIASES)
    )
    tags = tuple(tag for tag in ("DESCRIPTION", "LABEL", "BIAS", "REASONING") if rng.random() < 0.4)
    return Replied(
        round_number,
        "playback",
        "words",
        "words",
        code=rng.choice((None, None, "program")),
        conclusion=rng.choice((None, said)),
        usage=Usage(rng.randint(0, 60), 5, rng.random()),
        heard=rng.choice((0, seq - 1, max(1, seq - 4))),
        by_person=rng.random() < 0.1,
        tags=tags,
    )


def _draw_result(rng: random.Random, round_number: int, experiment: int, _: int) -> ExperimentEnded:
    names = rng.sample("abcdefghijklmnop", rng.randint(0, 9))
    images = tuple(
        Observation(
            f"a {name} ball {light}", rng.random(), "", None, rng.choice(("generated", "exemplar")), measured=True
        )
        for name in names
        for light in ("at night", "by day")
    )
    return ExperimentEnded(
        round_number,
        experiment,
        "ok",
        (LogEntry(images),) if images else (),
        exemplar_mean=rng.choice((None, rng.random())),
        usage=Usage(rng.randint(0, 9)),
        measured=rng.choice((0, len(images))),
        best=rng.choice((None, rng.random())),
        own=rng.random() < 0.5,
    )


def _draw_grade(rng: random.Random, round_number: int, _: int, __: int) -> Graded:
    direction = rng.choice(("", "not readable"))
    return Graded(
        round_number, "red balls", passed=rng.random() < 0.3, reason="Odd." * bool(direction), direction=direction
    )


MAKERS: dict[str, Callable[[random.Random, int, int, int], Payload]] = {
    "reply": _draw_reply,
    "experiment": lambda rng, round_number, number, _: ExperimentStarted(round_number, number, "program"),
    "result": _draw_result,
    "graded": _draw_grade,
    "reminder": lambda rng, number, *_: Reminder(number, rng.choice(REASONS), "words", Usage(rng.randint(0, 3))),
    "note": lambda rng, number, *_: Note(number, "Ada", "Look at cars."),
    "limits": lambda rng, number, *_: LimitsChanged(number, "Ada", "", Limits(rounds=rng.choice((None, number + 3)))),
    "resumed": lambda rng, number, *_: Resumed(number, "Ada"),
    "retrying": lambda rng, number, *_: Retrying(number, 1, rng.choice(("dead", "away"))),
    "forked": lambda rng, number, *_: Forked(number, "Ada", 1),
    "blocked": lambda rng, number, *_: Blocked(number, "No credit."),
    "paused": lambda rng, number, *_: Paused(number, "Ada"),
    "failed": lambda rng, number, *_: Ended("Why."),
}
"""How the payload of each kind is drawn: by lot, for a round, an experiment and a place in the run."""
