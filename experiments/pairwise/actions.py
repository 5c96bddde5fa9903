"""Actions of trials: create and close them, and ask backbones to judge."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction
from django.utils import timezone

from experiments.core import audit, compatibility, notifications, notify, queue
from experiments.core.actors import Actor
from experiments.core.audit import Verb
from experiments.core.errors import InvalidInput, StateConflict
from experiments.models import (
    Evaluation,
    Job,
    JobKind,
    JobStatus,
    Judge,
    NotificationKind,
    Pair,
    PairKind,
    PairwiseTrial,
    Role,
    Unit,
)
from experiments.models.job import MOVING
from experiments.pairwise.form import DEFAULT_PAIRS, NewTrial, draft_trial
from experiments.pairwise.lists import BLIND, judge_backbones
from experiments.pairwise.of_evaluation import JUDGES, draft_trial_of
from experiments.reviews.lists import reviewers
from workers.record.limits import explain_unpriced

MAX_COST = 1_000.0
MANAGES = Role.ADMIN
"""Role that creates and closes trials and asks backbones, which costs money."""


# --- making and closing ---------------------------------------------------------------------------------------


@transaction.atomic
def make_trial(actor: Actor, form: NewTrial) -> PairwiseTrial:
    """Create the trial that a form describes and notify all who may judge, except the actor. Raises InvalidInput."""
    if not form.is_valid():
        field = next(iter(form.errors))
        raise InvalidInput(form.problems[0], field)
    return _save_trial(actor, *draft_trial(form))


@transaction.atomic
def make_trial_of(
    actor: Actor,
    evaluation: Evaluation,
    chosen: Sequence[str],
    *,
    most: int = DEFAULT_PAIRS,
    judges_wanted: int = JUDGES,
) -> PairwiseTrial:
    """Create a trial between labels of an evaluation. Each pair is offered until `judges_wanted` people have judged it.

    With `judges_wanted` 0 the trial is for a model alone, and no person is notified. Raises InvalidInput,
    StateConflict.
    """
    return _save_trial(actor, *draft_trial_of(evaluation, chosen, most, judges_wanted, evaluation.seed))


def _save_trial(actor: Actor, trial: PairwiseTrial, pairs: list[Pair]) -> PairwiseTrial:
    """Save a draft and notify all who may judge, except the actor. Raises InvalidInput if it has nothing to compare."""
    if not any(pair.kind == PairKind.PLAIN for pair in pairs):
        why = ", ".join(f"{count} {what}" for what, count in trial.left_out.items())
        words = "No unit has two different labels to compare: choose other sources or fewer filters."
        raise InvalidInput(f"{words} Left out: {why}." if why else words, "sources")
    trial.owner = actor.person
    trial.save()
    units = Unit.objects.filter(pk__in={pair.unit_id for pair in pairs}).select_related("layer__model")
    # Names are copied: results are counted by them after a unit is deleted.
    names = {unit.pk: str(unit)[:500] for unit in units}
    for place, pair in enumerate(pairs, 1):
        pair.trial, pair.position, pair.unit_name = trial, place, names[pair.unit_id or 0]
    # A repeated pair names its original, which has a key only now
    Pair.objects.bulk_create(pair for pair in pairs if pair.original is None)
    Pair.objects.bulk_create(pair for pair in pairs if pair.original is not None)
    count = len(pairs)
    audit.record(actor, Verb.TRIAL_MADE, trial, pairs=count)
    words = f"{actor.name} asks you to judge {count} pair{'s' * (count != 1)} of labels in “{trial.name}”."
    for judge in reviewers().exclude(pk=actor.person.pk) if trial.judges_wanted != 0 else ():
        notifications.notify_person(judge, NotificationKind.REVIEW, words, trial.get_absolute_url())
    return trial


def lock_open_trial(pk: int) -> PairwiseTrial:
    """Return the trial, locked, so that it stays open meanwhile. Raises StateConflict if it is closed."""
    trial = PairwiseTrial.objects.select_for_update().get(pk=pk)
    if trial.closed:
        raise StateConflict("This trial is closed and shows whose labels are whose, so it takes no more answers.")
    return trial


@transaction.atomic
def close_trial(actor: Actor, trial_id: int) -> PairwiseTrial:
    """Close the trial for good and reveal which label is whose."""
    trial = lock_open_trial(trial_id)
    trial.closed = timezone.now()
    trial.save(update_fields=["closed"])
    audit.record(actor, Verb.TRIAL_CLOSED, trial)
    publish(trial_id)
    return trial


def publish(trial_id: int) -> None:
    """Tell pages that show the trial to reload it, once the transaction is committed."""
    notify.publish_topic(f"trial.{trial_id}")


# --- backbones ------------------------------------------------------------------------------------------------


@transaction.atomic
def ask_backbone(actor: Actor, trial_id: int, value: str, cost_limit: float, *, unpriced: bool = False) -> Judge:
    """Create a job in which a backbone, such as `openai:gpt-4o`, judges the pairs that it has not judged yet.

    `cost_limit` is in US dollars. `unpriced` accepts a model whose price is unknown.
    """
    backbone, _, model = value.partition(":")
    if backbone in BLIND:
        raise InvalidInput(BLIND[backbone], "backbone")
    if value not in {each.value for each in judge_backbones()}:
        raise InvalidInput(f"There is no backbone “{value[:60]}” that could judge. Choose one of the list.", "backbone")
    if not 0 < cost_limit <= MAX_COST:
        words = f"The limit of the cost is an amount above $0, and at most ${MAX_COST:,.0f}."
        raise InvalidInput(words, "cost_limit")
    if (without := compatibility.price_unknown(backbone, model)) and not unpriced:
        words = explain_unpriced(model, "its allowance", "Tick “Without a known price”")
        raise InvalidInput(words, "unpriced")
    trial = lock_open_trial(trial_id)
    # The same judge again: its earlier votes count.
    judge, _ = Judge.objects.get_or_create(trial=trial, backbone=backbone, backbone_model=model, user=None)
    if judge.job and judge.job.is_moving:
        raise StateConflict(f"{model or backbone} is judging already.")
    judge.cost_limit, judge.unpriced = cost_limit, without
    judge.job = Job.objects.create(kind=JobKind.JUDGE, subject=str(judge)[:500], asked_by=actor.person)
    judge.save(update_fields=["cost_limit", "unpriced", "job"])
    audit.record(actor, Verb.JUDGE_ASKED, judge, cost_limit=cost_limit)
    queue.ask_for_work(judge.job.pk)
    return judge


@transaction.atomic
def stop_backbone(actor: Actor, judge: Judge) -> None:
    """Stop the backbone after its current pair. Its votes are kept; asking again resumes it."""
    if judge.job is not None:
        # A queued job has no worker that could read the request, so it is stopped here
        waiting = Job.objects.filter(pk=judge.job.pk, status=JobStatus.QUEUED)
        if not waiting.update(status=JobStatus.STOPPED, result="Stopped before it began."):
            Job.objects.filter(pk=judge.job.pk, status__in=MOVING).update(stop_requested=True)
    audit.record(actor, Verb.JUDGE_STOPPED, judge)
