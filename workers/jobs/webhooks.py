"""Send due deliveries of webhooks from threads of the worker.

A delivery may arrive twice, if a worker dies between answer and record: receivers recognize it by its id.
"""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

from django.db import connection
from django.db.models import F, QuerySet

from experiments.core.clock import database_now
from experiments.core.outbox import is_held_back
from experiments.models import DeliveryStatus, WebhookDelivery
from experiments.webhooks import messages
from workers.jobs import lease
from workers.jobs.periodic_thread import PeriodicThread
from workers.jobs.webhook_request import WebhookAnswer, post

log = logging.getLogger(__name__)

LOOK_EVERY = 2.0
THREADS = 8
BATCH_SIZE = 50
"""Maximum number of deliveries of one webhook before others get the thread."""
CLAIM = timedelta(seconds=60)
"""Time that a delivery is claimed by a sender, longer than any request takes. After that it is due again."""
HELD_BACK = timedelta(minutes=10)
"""Delay before a delivery of a run under blind review is checked again."""
_HOURS = 3600
DELAYS = (5, 30, 2 * 60, 10 * 60, _HOURS, *[6 * _HOURS] * 12)
"""Seconds after each failed attempt until the next. After three days in total, the delivery is given up."""
GONE = 410
"""Status by which a receiver says that it wants no more deliveries."""


class WebhookSender:
    """Finds due deliveries between `start` and `stop`."""

    def __init__(self) -> None:
        # Not Celery's threads, which long jobs may occupy for hours.
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="webhooks")
        self._lock = threading.Lock()
        self._busy: set[int] = set()
        self._served: dict[int, float] = {}
        self._routine = PeriodicThread("webhooks", LOOK_EVERY, self.look)

    def start(self) -> None:
        self._routine.__enter__()

    def stop(self) -> None:
        """Wait for current requests, which takes seconds. The next worker sends the rest."""
        self._routine.__exit__(None, None, None)
        self.stop_pool()

    def stop_pool(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    def look(self) -> bool:
        """Start on webhooks with due deliveries, the least recently served first."""
        if lease.stopping.is_set():
            return False
        # From the database, so that nothing is lost if Redis is empty or a worker was killed.
        due = set(_list_due().order_by().values_list("webhook_id", flat=True).distinct())
        with self._lock:
            # Least recently served first, so that each webhook gets its turn
            # Webhooks that were never served come first.
            free = sorted(due - self._busy, key=lambda pk: self._served.get(pk, 0.0))
            for pk in free[: THREADS - len(self._busy)]:
                # One thread per webhook, so that a slow receiver delays only itself
                self._busy.add(pk)
                self._pool.submit(self._serve, pk)
        return True

    def _serve(self, webhook: int) -> None:
        try:
            send_due(webhook)
        except Exception:
            log.exception("Deliveries of webhook %s wait for the next look.", webhook)
        finally:
            connection.close()  # Each thread has its own connection
            with self._lock:
                self._busy.discard(webhook)
                self._served[webhook] = time.monotonic()


def send_due(webhook: int) -> None:
    """Send due deliveries of one webhook in order, until an attempt fails. The rest wait for the next look."""
    for pk in list(_list_due().filter(webhook=webhook).order_by("pk").values_list("pk", flat=True)[:BATCH_SIZE]):
        if lease.stopping.is_set() or not _deliver(pk):
            return


def _list_due() -> QuerySet[WebhookDelivery]:
    return _claimable().filter(webhook__active=True)


def _claimable() -> QuerySet[WebhookDelivery]:
    return WebhookDelivery.objects.filter(status=DeliveryStatus.WAITING, next_attempt__lte=database_now())


def claim(pk: int) -> WebhookDelivery | None:
    """Claim a due delivery; None if another worker has it or it is gone."""
    changed: dict[str, Any] = {
        "attempts": F("attempts") + 1,
        "tried": database_now(),
        # Due again later, should this worker die.
        "next_attempt": database_now() + CLAIM,
    }
    # No join: PostgreSQL rechecks a row changed by another worker only if it belongs to this table
    if not _claimable().filter(pk=pk).update(**changed):
        return None
    return WebhookDelivery.objects.select_related("webhook").filter(pk=pk).first()


def _deliver(pk: int) -> bool:
    """Make one attempt. Return False if it failed."""
    delivery = claim(pk)
    if delivery is None:
        return True
    if is_held_back(delivery):
        words = "Held back while its run is reviewed blind."
        # Being held back is not a failure, so it does not count as an attempt
        _update(delivery, attempts=F("attempts") - 1, next_attempt=database_now() + HELD_BACK, answer=words)
        return True
    answer = _attempt(delivery)
    _record(delivery, answer)
    return answer.is_success


def _attempt(delivery: WebhookDelivery) -> WebhookAnswer:
    try:
        body = messages.make_body(delivery)
        headers = messages.make_headers(delivery, int(time.time()), body)
        return post(delivery.webhook.address, headers, body)
    except Exception as error:
        log.exception("%s could not be sent.", delivery)
        return WebhookAnswer(None, f"{type(error).__name__}: the worker's output says more.")


def _record(delivery: WebhookDelivery, answer: WebhookAnswer) -> None:
    said: dict[str, Any] = {"code": answer.code, "answer": answer.words}
    if answer.is_success:
        _update(delivery, status=DeliveryStatus.DELIVERED, delivered=database_now(), **said)
    # The receiver wants no more, or all delays are used up.
    elif answer.code == GONE or delivery.attempts > len(DELAYS):
        _update(delivery, status=DeliveryStatus.GIVEN_UP, **said)
    else:
        _update(delivery, next_attempt=database_now() + timedelta(seconds=DELAYS[delivery.attempts - 1]), **said)


def _update(delivery: WebhookDelivery, **changed: Any) -> None:
    """Record the result of an attempt, unless the delivery is gone or another attempt was started."""
    # By the number of attempts, which tells whether another worker started one meanwhile.
    mine = WebhookDelivery.objects.filter(pk=delivery.pk, status=DeliveryStatus.WAITING, attempts=delivery.attempts)
    mine.update(**changed)
