"""Labels that people write for a quarter of an evaluation's units (paper, Table 1), each in a run with the human editor
and the agent's tools. Names of synthetic neurons are hidden until these runs have ended."""

from __future__ import annotations

import random
from collections import defaultdict

from django.db.models import Max, Q, QuerySet

from experiments.core.actors import Actor
from experiments.core.compatibility import PERSON
from experiments.models import Evaluation, EvaluationItem, ItemStatus, Run
from experiments.runs.actions import add_run
from experiments.runs.drafts import draft_run
from workers.record.statuses import ENDED, Status

SHARE = 0.25
"""Share of the units of each group."""
IS_WAITING = Q(
    status=ItemStatus.PLANNED, source=PERSON, run__status__in=[each.value for each in Status if each not in ENDED]
)
"""Items whose person has not concluded yet."""


def list_written(evaluation: Evaluation) -> QuerySet[EvaluationItem]:
    """Return the items that people were asked to label, in order."""
    rows = evaluation.items.filter(source=PERSON, run__isnull=False).order_by("position")
    return rows.select_related("unit__layer__model", "run")


def list_waiting(evaluation: Evaluation) -> QuerySet[EvaluationItem]:
    """Return those whose run has not ended."""
    return evaluation.items.filter(IS_WAITING)


def add_items(actor: Actor, evaluation: Evaluation) -> list[EvaluationItem]:
    """Add an item and a run for a quarter of the units of each group, at least one, drawn by the evaluation's seed.
    Does nothing if people were asked before."""
    # Asking twice must not give people the same units again
    if evaluation.items.filter(source=PERSON).exists():
        return []
    # One item per unit, whatever the number of sources
    groups: dict[str, dict[int, EvaluationItem]] = defaultdict(dict)
    for item in evaluation.items.select_related("unit__layer__model").order_by("position"):
        if item.unit_id:
            groups[item.group].setdefault(item.unit_id, item)
    chosen = []
    for group, units in groups.items():
        count = max(1, round(SHARE * len(units)))
        # Sorted first: the draw depends on the seed alone, not on the order of the database.
        drawn = random.Random(f"people {evaluation.seed} {group}").sample(sorted(units), count)
        chosen += [units[unit] for unit in drawn]
    random.Random(f"people {evaluation.seed}").shuffle(chosen)  # The order must not reveal the group
    # After the existing items, whose order stays.
    position = evaluation.items.aggregate(last=Max("position"))["last"] or 0
    added = []
    for place, like in enumerate(chosen, position + 1):
        run = add_run(actor, _make_run(evaluation, like))
        known = {"group": like.group, "unit": like.unit, "unit_name": like.unit_name}
        added.append(evaluation.items.create(position=place, source=PERSON, run=run, **known))
    return added


def _make_run(evaluation: Evaluation, like: EvaluationItem) -> Run:
    """Return an unsaved run on the same system as the agent's, to be written by a person."""
    assert like.unit is not None
    return draft_run(
        like.unit.spec(str(evaluation.options.get("dataset") or "")),
        # The evaluation checks the conclusion itself.
        options={"label_check": False},
        toolset=str(evaluation.options.get("toolset") or ""),
        backbone=PERSON,
        seed=evaluation.seed,
    )
