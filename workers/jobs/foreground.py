"""Play a whole run in the foreground, without Redis or a worker, and print the transcript as it grows.

Used by `manage.py investigate`. Writes the same rows as a worker. Ctrl+C pauses the run.
"""

from __future__ import annotations

import signal
import time
from contextlib import suppress
from functools import partial
from threading import Event as Flag

from experiments.core import notify, transcript
from experiments.core.display_name import person
from experiments.label_checks import requests
from experiments.models import Dataset, Job, JobStatus, LabelCheck, Run, VisionModelRow
from workers.errors import Cancelled, LeaseLost, MachineryError, RequestError
from workers.jobs import lease, long
from workers.jobs.console import Console, ConsoleRunLog
from workers.protocols import Progress
from workers.record.events import Paused
from workers.record.statuses import Status

RETRY_SECONDS = 1.0


def look_at(run: Run) -> None:
    """Add a run's model and dataset to the catalogue, if no worker did."""
    from workers.jobs import catalogue

    if not VisionModelRow.objects.filter(name=run.model, available=True).exists():
        catalogue.write_model(run.model)
    dataset = run.options.get("dataset")
    if dataset and not Dataset.objects.filter(key=dataset, available=True).exists():
        catalogue.write_dataset(dataset)


def investigate(run: Run, console: Console) -> Run:
    """Play the run until it ends or waits for a person. Raises RequestError if it has ended or a worker has claimed it.

    KeyboardInterrupt leaves the run paused; `investigate` of the same run resumes it.
    """
    # Redis may not be running
    notify.muted.set()
    # The run may be paused by an earlier Ctrl+C.
    transcript.resume(run.pk, person(run.owner))
    claimed = lease.claim(run.pk)
    if claimed is None:
        raise RequestError(f"Run {run.pk} cannot be played here: it has ended, or a worker is at it.")
    with lease.hold_lease(claimed) as lost:
        # A flag rather than an exception: one raised inside a callback of a library may be swallowed there.
        before = signal.signal(signal.SIGINT, lambda *_: lease.stopping.set())
        try:
            while _execute_claimed(claimed, lost, console):
                pass
        except LeaseLost:
            # Lost to another worker, not stopped here.
            if not lease.stopping.is_set():
                raise
            pause(claimed)
            raise KeyboardInterrupt from None
        finally:
            signal.signal(signal.SIGINT, before)
            lease.stopping.clear()
    return Run.objects.get(pk=run.pk)


def work(job: Job, progress: Progress) -> str:
    """Do a job claimed by this process. Return its result; raises Cancelled, and RequestError if it failed."""
    status, result = long.do(job, progress)
    if status == JobStatus.STOPPED:
        raise Cancelled(result)
    if status == JobStatus.FAILED:
        raise RequestError(result)
    return result


def check_conclusion(run: Run, progress: Progress) -> LabelCheck | None:
    """Check the label of a run's conclusion here; None if no check is wanted or there is no label."""
    from workers.jobs.label_checks.check import run_or_wait

    if run.status != Status.CONCLUDED or not requests.is_wanted(run):
        return None
    check = requests.request_check_of(run, enqueue=False)
    if check is not None and check.is_open:
        return run_or_wait(check.pk, progress)
    return check


def pause(claimed: Run) -> None:
    """Record that the owner paused the run. Ctrl+C may come at any point of a round."""
    rounds = Run.objects.values_list("rounds", flat=True).get(pk=claimed.pk)
    pause = Paused(rounds, person(claimed.owner))
    with suppress(LeaseLost, transcript.RunEnded):  # Another process was first
        transcript.append(claimed.pk, "paused", pause, fence=claimed.fence)


def _execute_claimed(claimed: Run, lost: Flag, console: Console) -> bool:
    """Play one round. After an error it is tried again after a moment."""
    from workers.jobs.run_round import execute_round

    try:
        current = Run.objects.get(pk=claimed.pk, fence=claimed.fence)
        return execute_round(current, lost, partial(ConsoleRunLog, console=console), any_model=True)
    except MachineryError:  # The run log has already shown it
        time.sleep(RETRY_SECONDS)
        return True
