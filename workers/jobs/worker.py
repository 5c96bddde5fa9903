"""What a Celery worker does when it starts, around each job, and when it is asked to stop."""

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
"""This worker's place on the Workers page, once it is ready."""
senders: list[WebhookSender] = []


@worker_ready.connect
def start_worker(**_: Any) -> None:
    """Play rounds, send webhooks and spans, bring back what an earlier worker left, and see which models there are."""
    lease.stopping.clear()
    presence = Heartbeat(settings.WORKER_THREADS)
    presence.start()
    threads = RoundThreads(settings.WORKER_THREADS, list_held_models, presence.began_round, presence.ended)
    here[:], players[:], senders[:] = [presence], [threads], [WebhookSender()]
    start_sender()
    threads.start()
    senders[0].start()
    send("workers.jobs.recovery.recover")
    ask_for("write_catalogue")


@control_command()
def ring(state: Any) -> None:
    """There may be something to claim: see `experiments.core.queue.ring`."""
    del state
    for threads in players:
        threads.bell.ring()


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
    for threads in players:
        threads.bell.ring()


@worker_shutdown.connect
def leave(**_: Any) -> None:
    """Let rounds unwind, and be off the list at once: also where Celery gives up by itself and was asked by nobody."""
    end()
    while players:
        players.pop().stop()
    stop_sender()
    while senders:
        senders.pop().stop()
    while here:
        here.pop().leave()
    notify.end()
