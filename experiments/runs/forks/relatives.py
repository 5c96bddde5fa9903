"""Runs that come from others: which rounds a fork may begin after, what differs, who belongs to whom.

A fork goes on from a round of its parent; a run with a parent and no round was asked again with changes. What a fork
copies is copied by the worker that starts it (`workers/jobs/forking.py`), up to the event that is fixed here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from experiments.core.errors import StateConflict
from experiments.core.system_names import Names
from experiments.models import Event, Run
from workers import registry
from workers.record import limits, tasks
from workers.record.events import Replied

NAMES = {
    "question": "question",
    "task": "task",
    "model": "model",
    "layer": "layer",
    "unit": "unit",
    "dataset": "dataset",
    "toolset": "tools",
    "backbone": "agent",
    "backbone_model": "model of the agent",
    "seed": "seed",
    "surroundings": "around the region",
    **{name: f"limit of {words}" for name, words in limits.NAMES.items()},
}
"""Field of a query -> what it is called where changes are listed."""

MOST_RELATIVES = 12
"""Forks named on a run's page; the list of runs has them all."""


@dataclass(frozen=True)
class Cut:
    """Where a fork leaves its parent: after a round that is over."""

    round: int
    upto: int
    """`seq` of the last event that is copied at most."""
    concluded: bool
    """Whether the round's reply was a conclusion: then only a note has the agent go on."""


def cut(run: Run, number: int) -> Cut:
    """The end of a round. Raises StateConflict if the run has no such round, or it is not over."""
    reply = run.events.filter(kind="reply", payload__round=number).first()
    if reply is None:
        raise StateConflict(no_such_round(run, number))
    following = run.events.filter(kind="reply", seq__gt=reply.seq).order_by("seq").first()
    said = reply.content
    assert isinstance(said, Replied)
    if said.code is not None and not has_result(run, reply, following):
        before = f" Fork from round {number - 1}, or wait." if number > 1 else ""
        raise StateConflict(f"Round {number} of run {run.pk} is not over: its experiment has no result yet.{before}")
    concluded = said.code is None and said.conclusion is not None
    if following is None:
        return Cut(number, run.last_seq, concluded)
    # What was said while the next reply was written belongs to the rounds that the fork leaves behind.
    return Cut(number, getattr(following.content, "heard", 0) or following.seq - 1, concluded)


def has_result(run: Run, reply: Event, following: Event | None) -> bool:
    results = run.events.filter(kind="result", seq__gt=reply.seq)
    return (results.filter(seq__lt=following.seq) if following else results).exists()


def no_such_round(run: Run, number: int) -> str:
    if not run.rounds:
        return f"Run {run.pk} has no round yet: there is nothing to fork from. Ask the same again instead."
    there = "round 1" if run.rounds == 1 else f"rounds 1 to {run.rounds}"
    return f"Run {run.pk} has no round {number}. It has {there}."


def latest(run: Run) -> int:
    """The last round that is over; 0 if none is."""
    for number in (run.rounds, run.rounds - 1):
        try:
            return cut(run, number).round
        except StateConflict:
            continue
    return 0


# --- what differs -----------------------------------------------------------------------------------


def changes(before: Run, after: Run, names: Names) -> dict[str, str]:
    """What `after` was asked otherwise than `before`, in words: name -> its own value."""
    told = {
        "question": (before.question, after.question),
        "task": (tasks.label(before.task), tasks.label(after.task)),
        "system": (names.of(before), names.of(after)),
        "agent": (agent(before), agent(after)),
        "tools": (before.toolset, after.toolset),
        "dataset": (str(before.options.get("dataset", "")), str(after.options.get("dataset", ""))),
        "seed": (str(before.seed), str(after.seed)),
    }
    found = {name: new or "none" for name, (old, new) in told.items() if old != new}
    if limits.changes(before.limits, after.limits):
        found["limits"] = ", ".join(f"{name} {new}" for name, _, new in limits.changes(before.limits, after.limits))
    return found


def agent(run: Run) -> str:
    """The agent as it was asked for."""
    label = registry.label(registry.BACKBONES, run.backbone)
    return f"{label}, {run.backbone_model}" if run.backbone_model else label


@dataclass(frozen=True)
class Relative:
    """A run that comes from this one, or the other way round, and what differs in the younger."""

    run: Run
    how: str
    changes: dict[str, str]


def relatives(run: Run, names: Names) -> Sequence[Relative]:
    """The run's parent and, the newest first, its children. Two queries."""
    parent = [Relative(run.parent, came_from(run), changes(run.parent, run, names))] if run.parent else []
    children = run.forks.order_by("-pk")[:MOST_RELATIVES]
    return [*parent, *(Relative(child, went_into(child), changes(run, child, names)) for child in children)]


def came_from(run: Run) -> str:
    """How a run came from its parent, whose name follows."""
    return f"Forked after round {run.fork_round} of" if run.fork_round else "Asks again what was asked in"


def went_into(child: Run) -> str:
    """How a child came from this run; its name follows."""
    return f"Forked after round {child.fork_round} into" if child.fork_round else "Asked again in"


def planned(by: str, at: Cut, note: str, differing: dict[str, Any]) -> dict[str, Any]:
    """What the worker needs to begin a fork (`Run.fork_plan`)."""
    return {"who": by, "upto": at.upto, "note": note, "changes": differing}
