"""Celery signals: what a worker does at its start, around each job, and at its shutdown."""

from __future__ import annotations

from typing import Any

from celery.signals import task_postrun, task_prerun, worker_ready, worker_shutdown, worker_shutting_down
from celery.worker.control import control_command
from django.conf import settings

from experiments.core import notify
from experiments.core.queue import ask_for, send
from workers.jobs import lease
from workers.jobs.heartbeat import Heartbeat, list_held_models
from workers.jobs.round_threads import RoundThreads, players
from workers.jobs.spans.sender import start_sender, stop_sender
from workers.jobs.webhooks import WebhookSender

here: list[Heartbeat] = []
"""This worker's entry on the Workers page, after it is ready."""
senders: list[WebhookSender] = []


@worker_ready.connect
def start_worker(**_: Any) -> None:
    """Start threads for rounds, webhooks and spans, recover orphaned work, and examine the plug-ins."""
    # Tests start a worker several times in one process.
    lease.stopping.clear()
    presence = Heartbeat(settings.WORKER_THREADS)
    presence.start()
    threads = RoundThreads(settings.WORKER_THREADS, list_held_models, presence.began_round, presence.ended)
    here[:], players[:], senders[:] = [presence], [threads], [WebhookSender()]
    start_sender()
    threads.start()
    senders[0].start()
    # As jobs, so that the start does not wait for them.
    send("workers.jobs.recovery.recover")
    ask_for("write_catalogue")


@control_command()
def ring(state: Any) -> None:
    """Wake threads, because there may be something to claim: see `experiments.core.queue.wake_workers`."""
    del state
    for threads in players:
        threads.bell.ring()


@task_prerun.connect
def job_began(task_id: str, task: Any, **_: Any) -> None:
    """Show the job on the Workers page."""
    for presence in here:
        presence.began(task_id, task.name)


@task_postrun.connect
def job_ended(task_id: str, **_: Any) -> None:
    for presence in here:
        presence.ended(task_id)


@worker_shutting_down.connect
def end(**_: Any) -> None:
    """Set the flag that stops rounds. The next claim resumes them."""
    # A flag, because Celery cannot stop a thread.
    lease.stopping.set()
    for threads in players:
        threads.bell.ring()


@worker_shutdown.connect
def leave(**_: Any) -> None:
    """Stop rounds and remove the worker from the list. Also called if Celery ends on its own."""
    end()
    # The heartbeat leaves last: until then this worker still has work.
    while players:
        players.pop().stop()
    stop_sender()
    while senders:
        senders.pop().stop()
    while here:
        here.pop().leave()
    notify.end()
