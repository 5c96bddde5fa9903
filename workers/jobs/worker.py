"""What a Celery worker does when it starts, around each job, and when it is asked to stop."""

from __future__ import annotations

from typing import Any

from celery.signals import task_postrun, task_prerun, worker_ready, worker_shutdown, worker_shutting_down
from django.conf import settings

from experiments.core.queue import ask_for, send
from workers.jobs import lease
from workers.jobs.heartbeat import Heartbeat

here: list[Heartbeat] = []
"""This worker's place on the Workers page, once it is ready."""


@worker_ready.connect
def start_worker(sender: Any = None, **_: Any) -> None:
    """Bring back what an earlier worker left, and see which models there are."""
    lease.stopping.clear()
    threads = getattr(getattr(sender, "controller", None), "concurrency", None)
    here[:] = [Heartbeat(threads or settings.WORKER_THREADS)]
    here[0].start()
    send("workers.jobs.recovery.recover_runs")
    ask_for("write_catalogue")


@task_prerun.connect
def job_began(task_id: str, task: Any, **_: Any) -> None:
    """The Workers page shows what a worker does."""
    for presence in here:
        presence.began(task_id, task.name)


@task_postrun.connect
def job_ended(task_id: str, **_: Any) -> None:
    for presence in here:
        presence.ended(task_id)


@worker_shutting_down.connect
def end(**_: Any) -> None:
    """Celery cannot stop a thread: rounds under way see this flag, and the next claim continues them."""
    lease.stopping.set()


@worker_shutdown.connect
def leave_list(**_: Any) -> None:
    """Off the list at once."""
    while here:
        here.pop().leave()
