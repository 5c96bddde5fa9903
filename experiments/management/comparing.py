"""Compare backbones: the same evaluations of each, one after the other within one budget.

Each backbone has its own evaluation of each kind, on units that the seed draws, so all are asked the same. An existing
evaluation is continued: the same command resumes, and an added backbone costs only its own evaluations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import CommandError
from django.db.models import Q

from experiments.core import parts
from experiments.core.actors import Actor
from experiments.core.compatibility import PERSON, SCRIPTED
from experiments.evaluations import actions
from experiments.evaluations.lists import OPEN_ITEMS
from experiments.models import Evaluation, EvaluationKind, ItemStatus
from workers.jobs.evaluations.budget import total_cost
from workers.record.evaluation_kinds import KINDS
from workers.record.statuses import Status

COMPARE = "compare"
DEFAULT_UNITS = 5
PER_UNIT = {kind.key: kind.compared for kind in KINDS.values() if kind.compared}
"""Kinds that compare backbones -> their units for each one of `--units`."""
# A run that waits has no result yet, although its item counts as failed.
OPEN = Q(status__in=OPEN_ITEMS) | Q(status=ItemStatus.FAILED, run__status=Status.WAITING)
"""Items that the same command does next time."""


@dataclass
class Step:
    """One kind of evaluation of one backbone; the evaluation is saved once it starts."""

    backbone: str
    kind: EvaluationKind
    evaluation: Evaluation

    @property
    def cost(self) -> float:
        return total_cost(self.evaluation) if self.evaluation.pk else 0.0

    @property
    def total(self) -> int:
        return self.evaluation.items.count() if self.evaluation.planned else self.evaluation.options["units"]

    @property
    def left(self) -> int:
        """Return the number of units that are not done yet."""
        return self.evaluation.items.filter(OPEN).count() if self.evaluation.planned else self.total


def _read_backbones(text: str) -> list[str]:
    """Return the backbones of `--backbones`, without repetition, the scripted scientist first.

    Raises CommandError for one that cannot be compared.
    """
    named = [each.strip() for each in text.split(",") if each.strip()]
    able = [each for each in parts.list_backbones() if each != PERSON]
    for each in named:
        if each.partition(":")[0] not in able:
            raise CommandError(
                f"{each!r} is no backbone that can be compared. Write one of {', '.join(able)}, with its provider's "
                "name of the model behind a colon, as openai:gpt-4o."
            )
    if not named:
        raise CommandError("Say which backbones: --backbones openai:gpt-4o,openai:gpt-4o-mini.")
    # Each backbone once, in the order of the command.
    return list(dict.fromkeys([SCRIPTED, *named]))


def _read_kinds(text: str) -> list[EvaluationKind]:
    """Return the kinds of `--kinds`, in the order in which they run; "" for all. Raises CommandError."""
    named = {each.strip() for each in text.split(",") if each.strip()}
    if unknown := named - {kind.value for kind in PER_UNIT}:
        raise CommandError(f"{min(unknown)!r} cannot be compared. Choose from: {', '.join(PER_UNIT)}.")
    return [kind for kind in PER_UNIT if not named or kind in named]


def plan(owner: User, options: Mapping[str, Any]) -> list[Step]:
    """Return all evaluations in the order in which they run. Raises CommandError."""
    units = DEFAULT_UNITS if options["units"] is None else options["units"]
    if units < 1:
        raise CommandError(f"--units {units} compares nothing. Write 1 or more.")
    # The scripted scientist comes first: it is free and prepares what all share. Then kind by kind, so that a budget
    # that runs out leaves whole kinds to compare.
    backbones, kinds = _read_backbones(options["backbones"]), _read_kinds(options["kinds"])
    pairs = [(SCRIPTED, kind) for kind in kinds] + [(each, kind) for kind in kinds for each in backbones[1:]]
    steps = [_compare_kind(owner, name, kind, units, options["seed"]) for name, kind in pairs]
    for step in steps:
        step.evaluation.unpriced = options["unpriced"]
    return steps


def _compare_kind(owner: User, backbone: str, kind: EvaluationKind, units: int, seed: int) -> Step:
    asked: dict[str, Any] = {"units": units * PER_UNIT[kind]}
    if KINDS[kind].makes:
        asked["sources"] = ["agent"]  # other sources say nothing of the backbone's experiments
    return find_or_draft(
        owner, backbone, kind, asked, seed, f"Comparison, seed {seed}: {kind.label.lower()}, {backbone}"
    )


def find_or_draft(
    owner: User, backbone: str, kind: EvaluationKind, asked: Mapping[str, Any], seed: int, title: str
) -> Step:
    """Return the owner's first identical evaluation, else an unsaved one; "" for a kind that uses no backbone."""
    key, _, model = backbone.partition(":")
    known = {"kind": kind, "backbone": key, "backbone_model": model, "seed": seed}
    rows = Evaluation.objects.filter(owner=owner, **known).order_by("pk")
    # Compared here: databases differ in how they compare JSON.
    found = next((row for row in rows if row.options == asked), None)
    return Step(backbone, kind, found or Evaluation(name=title[:120], options=dict(asked), **known))


def find_limit(steps: Sequence[Step], step: Step, most: float | None) -> float | None:
    """Return the budget of an evaluation so that all together cost at most `most`; None for no limit. The scripted
    scientist is free."""
    if most is None or step.backbone in ("", SCRIPTED):
        return None
    # What the others have cost so far is no longer available to this one.
    return most - sum(each.cost for each in steps if each is not step)


def list_undone(steps: Sequence[Step]) -> list[str]:
    """Say what is left of each evaluation."""
    return [
        f"{', '.join(filter(None, [step.backbone, step.kind.label.lower()]))}: {step.left} of {step.total} units"
        for step in steps
        if step.left
    ]


def do_all(actor: Actor, steps: Sequence[Step], most: float | None, do: Callable[[Evaluation], object]) -> None:
    """Let `do` run what is left of each, until the next reply might exceed the total budget.

    Raises RequestError, MissingPart for a backbone that cannot be asked, before anything is spent.
    """
    from workers.jobs.evaluations.engine import check_price  # loads the laboratory

    for step in steps:
        # 1. All of them first, before anything is spent.
        check_price(step.evaluation)
    for step in steps:
        # 2. Then one after the other, each within what is left.
        if not step.left:
            continue
        step.evaluation.cost_limit = limit = find_limit(steps, step, most)
        if limit is not None and limit <= 0:
            return
        if step.evaluation.pk:
            step.evaluation.save(update_fields=["cost_limit", "unpriced"])
        else:
            actions.begin(actor, step.evaluation, enqueue=False)
        do(step.evaluation)
        # Stopped early: the budget is used up, or a backbone does not answer. Later steps would fare no better.
        if step.left:
            return
