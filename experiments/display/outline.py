"""The outline of a run: a line for each round, in groups where there are many, so that it stays light."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Max

from experiments.display import window
from experiments.display.rounds import Step, step_size
from experiments.models import Run

Json = Mapping[str, Any]

SINGLE = 80
"""Rounds up to which each has a line of its own."""
NEWEST = 30
"""Of more, so many at the end have."""
GROUPS = 70
"""Groups that the others make, at most."""


@dataclass(frozen=True)
class Line:
    """A round, or a group of them. `best` is the highest activation of the round's images."""

    rounds: Step
    words: str
    link: str
    best: float | None = None


def lines(run: Run, around: int | None = None) -> list[Line]:
    """The outline; the group that holds round `around` is unfolded."""
    if run.rounds <= SINGLE:
        return singles(run, 0, run.rounds)
    size = step_size(run.rounds - NEWEST, GROUPS)
    grouped = run.rounds - NEWEST
    found: list[Line] = []
    for first in range(1, grouped + 1, size):
        group = Step(first, min(first + size - 1, grouped))
        found.append(Line(group, f"Rounds {group}", f"?round={first}#round-{first}"))
        if around is not None and group.first <= around <= group.last:
            found[-1:] = singles(run, first - 1, group.last)
    return [*found, *singles(run, grouped, run.rounds)]


def singles(run: Run, start: int, end: int) -> list[Line]:
    """Lines of their own for the replies from the one at place `start` on."""
    replies = list(run.events.filter(kind="reply").order_by("seq")[start:end])
    numbers = [reply.payload["round"] for reply in replies]
    ran = run.experiments.filter(round__in=numbers).order_by()
    best = dict(ran.values_list("round").annotate(Max("best_activation")))
    return [
        Line(
            Step(number, number),
            headline(reply.payload),
            window.link(run, reply.seq, f"round-{number}"),
            best.get(number),
        )
        for number, reply in zip(numbers, replies, strict=True)
    ]


def headline(reply: Json) -> str:
    """The first sentence of a reply's words, without marks."""
    words = " ".join(reply["prose"].replace("#", " ").replace("*", " ").replace("`", " ").split())
    sentence = words.split(". ")[0].rstrip(".:")
    if sentence:
        return sentence if len(sentence) <= 60 else sentence[:59].rsplit(" ", 1)[0] + "…"
    return "Conclusion" if reply["conclusion"] else "Experiment" if reply["code"] else "Reply"
