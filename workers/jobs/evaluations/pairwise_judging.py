"""Let a model judge an evaluation's labels in pairs (paper, Table 1): a pairwise trial, created after all items are
done, judged pair by pair, then closed. Shares are read from the trial; see `experiments/pairwise/of_evaluation.py`."""

from __future__ import annotations

from collections.abc import Iterator

from django.db import transaction

from experiments.core.actors import Actor
from experiments.core.compatibility import PERSON, SCRIPTED
from experiments.core.errors import InvalidInput
from experiments.evaluations.people import list_waiting
from experiments.models import Dataset, Evaluation, Judge, PairwiseTrial, UnitProfile
from experiments.pairwise import actions
from experiments.pairwise.form import CONCEPT, MAX_PAIRS
from experiments.pairwise.of_evaluation import SHUFFLED, list_comparable
from workers.jobs import catalogue, unit_profiles
from workers.jobs.evaluations.pooled import compare_pooled
from workers.jobs.evaluations.sources import AGENT, find_dataset
from workers.jobs.judging import judge_pairs
from workers.jobs.label_checks.vlm_request import find_backbone
from workers.protocols import Backbone, Progress

PROBLEM = "two_way_problem"
"""Key of `Evaluation.prepared`: why nothing was compared."""


def find_judge(evaluation: Evaluation) -> Backbone | None:
    """Return the backbone that judges, None if none was chosen. A judge of labels must see images. Raises MissingPart,
    UnknownName."""
    key, _, model = str(evaluation.options.get("judge") or "").partition(":")
    if not key:
        return None
    # The scripted judge reads the scenes.
    sees = key != SCRIPTED and evaluation.row_of_kind.compares_labels
    return find_backbone(key, model, sees=sees, unpriced=evaluation.unpriced)


def finish_labels(evaluation: Evaluation, progress: Progress) -> Iterator[None]:
    """Do the steps that need labels of several sources: pooled prompts, then the judge. Yields before each step."""
    yield from compare_pooled(evaluation, progress)
    yield from _judge_labels(evaluation, progress)


def _judge_labels(evaluation: Evaluation, progress: Progress) -> Iterator[None]:
    """Let the judge choose one label of each pair. Yields before each step and can be resumed.

    Raises RequestError, Cancelled, and the errors of the backbone; finished judgements are kept.
    """
    backbone = find_judge(evaluation)
    if backbone is None:
        return
    yield from _write_exemplars(evaluation, progress)
    judge = _find_open(evaluation) or _make(evaluation)
    if judge is not None:
        yield from judge_pairs(judge, backbone, progress)
        # Closed, so that its shares are final.
        actions.close_trial(Actor(evaluation.owner), judge.trial_id)


def _find_open(evaluation: Evaluation) -> Judge | None:
    """Return the judge of the open trial."""
    return Judge.objects.select_related("trial").filter(trial__in=_own_trials(evaluation), trial__closed=None).first()


def _own_trials(evaluation: Evaluation) -> list[PairwiseTrial]:
    return list(evaluation.trials.filter(judges_wanted=0))


@transaction.atomic
def _make(evaluation: Evaluation) -> Judge | None:
    """Create a trial of the sources that no trial has compared yet, and its judge; None if there are none."""
    compared = {key for trial in _own_trials(evaluation) for key in trial.sources}
    # Labels of people wait until all are written; shuffled ones are known to be wrong
    left_out = {SHUFFLED, *([PERSON] if list_waiting(evaluation).exists() else [])}
    new = [key for key in list_comparable(evaluation) if key not in compared | left_out]
    # Later sources need a common reference with the earlier trials
    chosen = [AGENT, *new] if compared else new
    problem, trial = "", None
    if new:
        try:
            trial = actions.make_trial_of(Actor(evaluation.owner), evaluation, chosen, most=MAX_PAIRS, judges_wanted=0)
        except InvalidInput as error:
            problem = f"The judge compared no labels: {error}"
    elif not compared:
        problem = "The judge compared no labels: no source gave any."
    evaluation.prepared = {**evaluation.prepared, PROBLEM: problem}
    evaluation.save(update_fields=["prepared"])
    if trial is None:
        return None
    key, _, model = str(evaluation.options.get("judge") or "").partition(":")
    # Never more than the evaluation's own budget.
    limit = evaluation.cost_limit or actions.MAX_COST
    return Judge.objects.create(
        trial=trial, backbone=key, backbone_model=model, cost_limit=limit, unpriced=evaluation.unpriced
    )


def _write_exemplars(evaluation: Evaluation, progress: Progress) -> Iterator[None]:
    """Prepare exemplars of each unit without a known truth. Yields before each missing one."""
    items = evaluation.items.filter(unit__isnull=False).exclude(unit__layer__kind=CONCEPT).exclude(label="")
    left = items.exclude(unit__profiles__written__isnull=False).values_list("unit_id", "unit__layer__model__name")
    # A set, since several items share a unit.
    for unit, model in sorted(set(left)):
        yield
        key = find_dataset(evaluation, model)
        if not Dataset.objects.filter(key=key).exists():
            catalogue.write_dataset(key)
        profile, _ = UnitProfile.objects.get_or_create(unit_id=unit, dataset=Dataset.objects.get(key=key))
        unit_profiles.write(profile, progress)
