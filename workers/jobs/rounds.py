"""Play one round of a claimed run, and handle how it ends."""

from __future__ import annotations

import logging
import time
from collections import deque
from datetime import timedelta

from experiments.core.clock import database_now
from experiments.core.logs import logging_about
from experiments.core.outages import explain_outage
from experiments.label_checks import requests
from experiments.models import Run
from workers.errors import LeaseLost, MachineryError
from workers.jobs import claims, counters, lease
from workers.jobs.spans.sender import note_played
from workers.record.statuses import Status

log = logging.getLogger(__name__)

RETRY_SECONDS = 5
"""Delay before a failed step is tried again, in seconds."""
OUTAGE_SECONDS = 15
"""Delay before a run is tried again after an outage, in seconds."""
_outages: deque[str] = deque(maxlen=1)
"""The latest outage. The log warns of it once, not for every run that waits."""


def execute_claimed(run: Run, *, any_model: bool = False) -> None:
    """Execute one round, release the run, and charge its queue for the time. `any_model`: see `execute_round`."""
    # Imported here, since it loads torch.
    from workers.jobs.run_round import execute_round

    # Events after this one are new, and their spans must be sent
    began, known = time.monotonic(), run.last_seq
    goes_on = True
    with logging_about(run=run.pk, round=run.rounds + 1), lease.hold_lease(run) as lost:
        try:
            goes_on = execute_round(run, lost, any_model=any_model)
        except LeaseLost as error:
            log.warning("%s", error)
        except Exception as error:  # noqa: BLE001  raised again unless it is known
            _put_off(run, error)
        finally:
            seconds = time.monotonic() - began
            counters.ROUND_SECONDS.observe(seconds)
            # Also for a failed round: its spans and its time count.
            note_played(run.pk, known)
            claims.charge_queue(run, seconds)
    # A run that is paused or waits has no conclusion; the check looks at its status.
    if not goes_on:
        check_conclusion(run.pk)


def _put_off(run: Run, error: Exception) -> None:
    """Play the round again a little later. Raise the error again if it is neither an outage nor a MachineryError."""
    waiting_reason = explain_outage(error)
    if not waiting_reason and not isinstance(error, MachineryError):
        raise error
    if waiting_reason:
        counters.OUTAGES.inc()
    wait = OUTAGE_SECONDS if waiting_reason else RETRY_SECONDS
    told = bool(waiting_reason) and waiting_reason in _outages
    _outages.append(waiting_reason)
    log.log(
        logging.INFO if told else logging.WARNING,
        "Run %s had trouble: %s It is tried again in %d s.",
        *(run.pk, _add_cause(error), wait),
    )
    later = database_now() + timedelta(seconds=wait)
    # Only with this fence: another worker may have claimed the run meanwhile.
    Run.objects.filter(pk=run.pk, fence=run.fence).update(due=later, waiting_reason=waiting_reason)


def _add_cause(error: Exception) -> str:
    return f"{error} ({error.__cause__})" if error.__cause__ else str(error)


def check_conclusion(run_id: int) -> None:
    """Request a check of the run's conclusion on images that the agent never saw, if checks are on."""
    run = Run.objects.get(pk=run_id)
    if run.status == Status.CONCLUDED and requests.is_wanted(run):
        requests.request_check_of(run)
