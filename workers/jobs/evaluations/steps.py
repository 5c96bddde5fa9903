"""Process one item step by step: its source labels the unit, the label is checked, both are scored."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial

from django.db.models import Exists, F, OuterRef, QuerySet

from experiments.evaluations.people import list_waiting
from experiments.label_checks.requests import assign_check, choose_method, request_check
from experiments.models import CheckStatus, Evaluation, EvaluationItem, ItemStatus, LabelCheck
from workers.errors import BackboneUnavailable, Cancelled, MachineryError, MaiaError, RequestError
from workers.jobs.evaluations.agent_runs import has_workers
from workers.jobs.evaluations.evaluation_type import EvaluationType
from workers.jobs.evaluations.sources import AGENT, IS_LATE, find_label
from workers.jobs.evaluations.tables_of_tests import read_test_scores
from workers.jobs.label_checks.check import run_check
from workers.protocols import Progress
from workers.record.statuses import ACTIVE

log = logging.getLogger(__name__)

MAX_AHEAD = 8
"""Maximum number of items with open checks: so many workers can measure in parallel."""
UNDER_WAY = (CheckStatus.QUEUED, CheckStatus.RUNNING)
SCORES = ("pearson", "auprc", "generated_auc", "base_rate")
"""Columns of a check that are copied to an item."""


class Steps:
    """Processes the items of one evaluation."""

    def __init__(self, evaluation: Evaluation, evaluation_type: EvaluationType) -> None:
        self._evaluation = evaluation
        self._evaluation_type = evaluation_type

    def count_left(self, progress: Progress) -> int:
        """Score items with finished checks. Return the number of items left, without those that wait for people."""
        # Before anything new: these checks are paid for.
        checked = self._list_left().filter(status=ItemStatus.RUNNING).exclude(label_check__status__in=UNDER_WAY)
        for item in checked:
            self._take(item, partial(self._score, item, progress, item.label_check))
        return self._list_left().count()

    def take_one(self, progress: Progress) -> bool:
        """Label an item or measure a check; False if all have to wait.

        Raises Cancelled, and errors that affect all items.
        """
        if item := self._find_ready():
            self._take(item, partial(self._label, item, progress))
            return True
        return self._measure(progress)

    def _list_left(self) -> QuerySet[EvaluationItem]:
        rows = self._evaluation.items.filter(status__in=(ItemStatus.PLANNED, ItemStatus.RUNNING))
        rows = rows.exclude(pk__in=list_waiting(self._evaluation).values("pk"))
        return rows.select_related("unit__layer__model", "run", "label_check").order_by("position")

    def _find_ready(self) -> EvaluationItem | None:
        """Return the first item that can be labelled."""
        left = self._list_left()
        # Open checks first: the budget is exceeded by no more than these
        if left.filter(status=ItemStatus.RUNNING).count() >= MAX_AHEAD:
            return None
        asked = self._evaluation.items.filter(source=AGENT, status=ItemStatus.PLANNED, run__status__in=ACTIVE)
        # All sources of a unit become ready together, so an unfinished evaluation stays balanced
        ready = left.filter(status=ItemStatus.PLANNED).exclude(Exists(asked.filter(unit=OuterRef("unit"))))
        # Late sources need the labels of the others.
        early = left.exclude(IS_LATE)
        return ready.exclude(IS_LATE).first() or (None if early.exists() else ready.first())

    def _take(self, item: EvaluationItem, step: Callable[[], float]) -> None:
        """Do a step, which returns seconds spent elsewhere. Errors that affect all items are passed on."""
        began, beside = time.monotonic(), 0.0
        try:
            beside = step()
        # The cause lies outside the item, so it can be tried again
        except (Cancelled, MachineryError):
            item.status = ItemStatus.PLANNED
            raise
        except MaiaError as error:
            item.status, item.reason = ItemStatus.FAILED, str(error)
        except Exception as error:
            log.exception("%s failed.", item)
            item.status = ItemStatus.FAILED
            item.reason = f"{type(error).__name__}: {error}. The worker's output says more."
        # Also after an error: the time is spent.
        finally:
            took = time.monotonic() - began + beside
            item.seconds += took
            item.save()
            Evaluation.objects.filter(pk=self._evaluation.pk).update(seconds=F("seconds") + took)

    def _label(self, item: EvaluationItem, progress: Progress) -> float:
        """Let the source label the unit, unless it already did, and request a check of the label."""
        # At once, so that people see which item is in work.
        _name_item(item, progress)("begins", 0, 1)
        took = 0.0
        if not item.label:
            item.label = find_label(self._evaluation, item, progress) if self._evaluation_type.gives_labels else ""
            took = item.run.seconds if item.run and item.source == AGENT else 0.0
        check = self._ask_for_check(item) if item.label and item.unit and self._evaluation_type.checks_labels else None
        if check is not None and check.status in UNDER_WAY:
            item.status = ItemStatus.RUNNING
            return took
        return took + self._score(item, progress, None)

    def _ask_for_check(self, item: EvaluationItem) -> LabelCheck:
        assert item.unit is not None
        evaluation = self._evaluation
        dataset = str(evaluation.options.get("dataset") or "")
        method = choose_method(item.unit.layer.model.name, evaluation.backbone, evaluation.backbone_model, dataset)
        # In a terminal this process measures the check itself.
        check = request_check(item.unit, item.label, method, enqueue=has_workers(), unpriced=evaluation.unpriced)
        item.label_check = check
        if item.run:
            assign_check(item.run, check)
        return check

    def _measure(self, progress: Progress) -> bool:
        """Measure a check that no other worker has claimed; False if there is none."""
        for item in self._list_left().filter(status=ItemStatus.RUNNING):
            done = run_check(item.label_check_id or 0, _name_item(item, progress))
            if done is not None:
                return done.status != CheckStatus.QUEUED  # Back in the queue if something it needs is missing
        return False

    def _score(self, item: EvaluationItem, progress: Progress, waited: LabelCheck | None) -> float:
        """Score an item after its check. `waited` is the check whose seconds count for this item."""
        if item.label_check:
            _read_check(item, item.label_check)
        # Also without a label: `score` may take its own from the run.
        if self._evaluation_type.score:
            self._evaluation_type.score(self._evaluation, item, progress)
        item.status = ItemStatus.DONE if item.label or item.scores else ItemStatus.LACKING
        return waited.seconds if waited else 0.0


def _name_item(item: EvaluationItem, progress: Progress) -> Progress:
    """Return a progress callback that names the item."""

    def tell(what: str, done: int, total: int) -> None:
        progress(f"{item.unit_name}, {item.source}: {what}", done, total)

    return tell


def _read_check(item: EvaluationItem, check: LabelCheck) -> None:
    """Copy the figures of a check. Raises BackboneUnavailable for an unfinished one: it is not a score."""
    if check.status == CheckStatus.UNFINISHED:
        raise BackboneUnavailable(check.reason)
    if check.status == CheckStatus.FAILED:
        raise RequestError(f"Its check failed: {check.reason}")
    if check.status == CheckStatus.UNTESTABLE:
        item.reason = check.reason
    # Untestable with a result means that a judge or writer is missing; the label itself can be tested
    testable = check.status != CheckStatus.UNTESTABLE or bool(check.result)
    item.scores = {**item.scores, **{name: getattr(check, name) for name in SCORES}, "testable": testable}
    item.scores |= read_test_scores(check)
