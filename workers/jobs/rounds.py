"""The job that plays one round of a run, and enqueues the next."""

from __future__ import annotations

import logging

from celery import shared_task

from experiments.core import label_checks
from experiments.core.queue import enqueue
from experiments.models import Run
from workers.errors import LeaseLost, MachineryError
from workers.jobs import lease
from workers.record.statuses import Status

log = logging.getLogger(__name__)

RETRY_SECONDS = 5
"""How long a step that failed waits before it is tried again."""


@shared_task(name="workers.jobs.rounds.advance")
def advance(run_id: int) -> None:
    """Claim the run and play one round. A second delivery of the same message finds nothing to claim."""
    from workers.jobs.run_round import play

    run = lease.claim(run_id)
    if run is None:
        return
    wait = 0
    with lease.hold_lease(run) as lost:
        try:
            goes_on = play(run, lost)
        except LeaseLost as error:
            log.warning("%s", error)
            return
        except MachineryError as error:
            log.warning("Run %s had trouble: %s It is tried again in %d s.", run_id, error, RETRY_SECONDS)
            goes_on, wait = True, RETRY_SECONDS
    if goes_on:
        enqueue(run_id, wait)
    else:
        check_conclusion(run_id)


def check_conclusion(run_id: int) -> None:
    """Have what the run concluded tested on images that the agent never saw, where that is wanted."""
    run = Run.objects.get(pk=run_id)
    if run.status == Status.CONCLUDED and label_checks.is_wanted(run):
        label_checks.request_check_of(run)
