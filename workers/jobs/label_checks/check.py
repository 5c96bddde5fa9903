"""Run one label check from its claim to its result. However it ends, measurements are kept and the next claim resumes
it.

A label without testable content is "untestable". A provider that refuses, missing weights or an allowance that is
used up
leave the check "unfinished". Our own errors are "failed".
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from typing import Any

import msgspec
from django.db import transaction
from django.utils import timezone

from experiments.core import outbox
from experiments.core.outages import explain_outage
from experiments.label_checks.questions import describe_waiting
from experiments.label_checks.requests import BACKBONE, PEOPLE
from experiments.models import CheckStatus, LabelCheck
from experiments.models.evaluation import PROBE
from workers.errors import Cancelled, MachineryError, MissingPart, RequestError
from workers.jobs import held
from workers.jobs.label_checks.generated import check_generated
from workers.jobs.label_checks.known_cases import measure_error
from workers.jobs.label_checks.natural import check_natural
from workers.jobs.label_checks.people import has_to_wait, measure_people, try_generated
from workers.jobs.label_checks.subject import CheckedUnit
from workers.jobs.laboratory import laboratory
from workers.metrics.judge_correction import correct_figures
from workers.protocols import Progress
from workers.record.label_checks import CheckResult

log = logging.getLogger(__name__)

LOOK_EVERY = 0.5
"""Interval of looking at a check that another worker measures, in seconds."""


def run_check(check_id: int, progress: Progress) -> LabelCheck | None:
    """Claim a check and measure it; None if it is done or another worker has it. Raises Cancelled."""
    if not held.claim(LabelCheck, check_id, CheckStatus.UNFINISHED, reason=""):
        return None
    check = LabelCheck.objects.select_related("unit__layer__model").get(pk=check_id)
    check.split = check.split or PROBE  # Requested before checks had splits
    began = time.monotonic()

    # Without heartbeats another worker would take the check over.
    with held.keep_alive(LabelCheck, check_id):
        try:
            check.status, check.reason = _measure(check, progress)
        except Cancelled:
            # Free again for any worker; measurements so far are kept.
            LabelCheck.objects.filter(pk=check_id).update(status=CheckStatus.QUEUED)
            raise
    check.seconds += time.monotonic() - began
    check.measured = timezone.now()
    # In one transaction, so that a result is announced exactly once.
    with transaction.atomic():
        check.save(update_fields=[*_HEADLINE, "split", "status", "reason", "seconds", "measured", "reading", "result"])
        if check.status == CheckStatus.DONE:
            outbox.announce_check(check)
    return check


def run_or_wait(check_id: int, progress: Progress) -> LabelCheck:
    """Return the check after it has finished: measured here, or by another worker.

    Raises Cancelled.
    """
    while (check := run_check(check_id, progress)) is None:
        # Claimed by another worker: see whether it has finished
        check = LabelCheck.objects.get(pk=check_id)
        if check.status not in (CheckStatus.QUEUED, CheckStatus.RUNNING, CheckStatus.UNFINISHED):
            break
        progress("Waiting for the check of another worker", 0, 1)
        time.sleep(LOOK_EVERY)
    return check


_HEADLINE = (
    *("pearson", "pearson_low", "pearson_high", "auprc", "auprc_low", "auprc_high"),
    *("p_value", "base_rate", "generated_auc"),
)


def _explain_failure(check: LabelCheck, error: Exception) -> tuple[CheckStatus, str]:
    """Return status and reason of a check that broke off. After an outage it is queued again."""
    if reason := explain_outage(error):
        return CheckStatus.QUEUED, reason
    # Weights can be downloaded later, so the label is not untestable
    if isinstance(error, MissingPart | MachineryError):
        return CheckStatus.UNFINISHED, str(error)
    if isinstance(error, RequestError):
        return CheckStatus.UNTESTABLE, str(error)
    log.error("%s failed.", check, exc_info=error)
    return CheckStatus.FAILED, f"{type(error).__name__}: {error}. The worker's output says more."


def _read_label(check: LabelCheck) -> dict[str, Any]:
    """Return how the judge understands the label, for readers of its figures; empty if it takes the words literally."""
    judge = str(check.options.get("judge") or "")
    if judge in ("", PEOPLE, BACKBONE):
        return {}
    reading = laboratory().presence_judge(judge).read(check.text)
    return {} if reading is None else dict(msgspec.to_builtins(reading))


def _measure(check: LabelCheck, progress: Progress) -> tuple[CheckStatus, str]:
    """Fill the check's columns. Return its status and the reason."""
    try:
        check.reading = _read_label(check)
        unit = CheckedUnit.of(check, progress)
        by_people = check.options.get("judge") == PEOPLE
        # People answer first: all later steps need their answers
        if by_people and has_to_wait(check, unit, progress):
            return CheckStatus.UNFINISHED, describe_waiting(check)
        natural, judged = check_natural(check, unit, progress)
        generate = try_generated if by_people else check_generated
        # The judge's error, measured on images of known content, corrects the figures below
        generated = generate(check, unit, progress)
        if by_people:
            error, agreement, alpha = measure_people(check)
            natural = replace(natural, judge_error=error, agreement=agreement, agreement_alpha=alpha)
        elif not natural.problem:
            natural = replace(natural, judge_error=measure_error(check, unit, generated, progress))
        if judged and natural.judge_error:
            # The seed comes from the check's key, so that repeating it gives the same intervals.
            seed = int(check.key[:8], 16)
            corrected = correct_figures(
                judged.activations, judged.answers, judged.weights, natural.judge_error, seed=seed
            )
            natural = replace(natural, corrected=corrected)
    except Cancelled:
        raise
    except Exception as error:  # noqa: BLE001  logged there
        return _explain_failure(check, error)
    check.result = msgspec.to_builtins(CheckResult(natural, generated))
    r, area = natural.pearson, natural.auprc
    check.pearson, check.pearson_low, check.pearson_high = r.value, r.low, r.high
    check.auprc, check.auprc_low, check.auprc_high = area.value, area.low, area.high
    check.p_value = natural.p_value
    check.base_rate, check.generated_auc = natural.base_rate, generated.auc.value
    # One part alone is a result; without both the label could not be tested
    problems = [each for each in (natural.problem, generated.problem) if each]
    return (CheckStatus.UNTESTABLE if len(problems) == 2 else CheckStatus.DONE), " ".join(problems)
