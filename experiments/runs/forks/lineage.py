"""Relations between runs: after which rounds a fork may begin, what differs, parents and children.

A fork continues from a round of its parent; a run with a parent and no round was asked again with changes. The worker
that starts a fork copies its events (`workers/jobs/forking.py`), up to the event that is fixed here.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from experiments.core.errors import StateConflict
from experiments.core.system_names import SystemNameMasker
from experiments.display.events import backbone_of
from experiments.models import Run
from workers.record import limits, tasks
from workers.record.events import Replied

NAMES = {
    "question": "question",
    "task": "task",
    "model": "model",
    "layer": "layer",
    "unit": "unit",
    "circuit": "circuit",
    "dataset": "dataset",
    "toolset": "tools",
    "backbone": "backbone",
    "backbone_model": "model of the backbone",
    "seed": "seed",
    "surroundings": "around the region",
    "exemplars": "exemplars",
    "reflections": "reflections",
    "ablation": "ablation",
    **{name: f"limit of {words}" for name, words in limits.NAMES.items()},
}
"""Field of a query -> what it is called where changes are listed."""

MAX_RELATED = 12
"""Forks named on a run's page; the list of runs has them all."""


@dataclass(frozen=True)
class ForkPoint:
    """Where a fork leaves its parent: after a round that is over."""

    round: int
    upto: int
    """`seq` of the last event that is copied at most."""
    concluded: bool
    """True if the round's reply was a conclusion: then only a note makes the agent continue."""


def find_fork_point(run: Run, number: int) -> ForkPoint:
    """Return the end of a round. Raises StateConflict if the run has no such round, or it is not over."""
    # 1. The reply of the round.
    reply = run.events.filter(kind="reply", payload__round=number).first()
    if reply is None and not run.rounds:
        raise StateConflict(f"Run {run.pk} has no round yet: there is nothing to fork from. Duplicate the run instead.")
    if reply is None:
        there = "round 1" if run.rounds == 1 else f"rounds 1 to {run.rounds}"
        raise StateConflict(f"Run {run.pk} has no round {number}. It has {there}.")
    # 2. Where the round ends: its experiment must have a result.
    following = run.events.filter(kind="reply", seq__gt=reply.seq).order_by("seq").first()
    said = reply.content
    # For the type checker: the kind decides the class.
    assert isinstance(said, Replied)
    results = run.events.filter(kind="result", seq__gt=reply.seq)
    results = results.filter(seq__lt=following.seq) if following else results
    if said.code is not None and not results.exists():
        before = f" Fork from round {number - 1}, or wait." if number > 1 else ""
        raise StateConflict(f"Round {number} of run {run.pk} is not over: its experiment has no result yet.{before}")
    # 3. What kind of round it was. A reply with a program and a conclusion runs the program.
    concluded = said.code is None and said.conclusion is not None
    if following is None:
        return ForkPoint(number, run.last_seq, concluded)
    # What was said while the next reply was written belongs to the rounds that the fork leaves behind.
    return ForkPoint(number, getattr(following.content, "heard", 0) or following.seq - 1, concluded)


def find_last_complete_round(run: Run) -> int:
    """Return the last round that is over; 0 if none is."""
    # The newest round may still be under way.
    for number in (run.rounds, run.rounds - 1):
        with suppress(StateConflict):
            return find_fork_point(run, number).round
    return 0


# --- what differs -----------------------------------------------------------------------------------


def list_changes(before: Run, after: Run, names: SystemNameMasker) -> dict[str, str]:
    """List what `after` was asked differently from `before`, in words: name -> its own value."""
    compared = {
        "question": (before.question, after.question),
        "task": (tasks.label(before.task), tasks.label(after.task)),
        "system": (names.of(before), names.of(after)),
        "backbone": (backbone_of(before), backbone_of(after)),
        "tools": (before.toolset, after.toolset),
        "dataset": (str(before.options.get("dataset", "")), str(after.options.get("dataset", ""))),
        "seed": (str(before.seed), str(after.seed)),
    }
    found = {name: new or "none" for name, (old, new) in compared.items() if old != new}
    if limits.changes(before.limits, after.limits):
        found["limits"] = ", ".join(f"{name} {new}" for name, _, new in limits.changes(before.limits, after.limits))
    return found


@dataclass(frozen=True)
class RelatedRun:
    """A related run. `how` comes before its name in a sentence; `changes` are what the younger of both asked anew."""

    run: Run
    how: str
    changes: dict[str, str]


def list_related(run: Run, names: SystemNameMasker) -> list[RelatedRun]:
    """Return the run's parent, and its children, the newest first. Two queries."""
    found = []
    if run.parent:
        how = f"Forked after round {run.fork_round} of" if run.fork_round else "Duplicate of"
        found.append(RelatedRun(run.parent, how, list_changes(run.parent, run, names)))
    for child in run.forks.order_by("-pk")[:MAX_RELATED]:
        how = f"Forked after round {child.fork_round} into" if child.fork_round else "Duplicated in"
        found.append(RelatedRun(child, how, list_changes(run, child, names)))
    return found
