"""Write webhook deliveries to the outbox, in the transaction of the change that they report.

Payloads leave the installation. They hold numbers, states, labels, figures and links; no names of people, no
free-text reasons, no secrets, and a number in place of the name of a synthetic neuron. Deliveries about a run under
blind review wait until it is over: `is_held_back`, checked when they are sent.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models.signals import post_save
from django.dispatch import receiver
from django.utils import timezone

from experiments.core import blindness
from experiments.core.notifications import shorten
from experiments.core.visibility import visible_to
from experiments.models import (
    Evaluation,
    Event,
    LabelCheck,
    ReviewQueue,
    Run,
    Sweep,
    Webhook,
    WebhookDelivery,
    WebhookEvent,
)
from experiments.models.webhook import TEST_EVENT
from workers import registry
from workers.record.events import kind_of

MAX_LABELS = 20
WORDS_CHARS = 300
"""Maximum characters of a label or a name."""
_WAITS = frozenset({"blocked", "waiting_for_person"})
"""Kinds of events of a run that waits for a person."""


@transaction.atomic
def announce(kind: WebhookEvent, path: str, data: Mapping[str, Any], run: Run | None = None) -> None:
    """Create a delivery for every webhook that subscribes to this kind. `path` is the page to link to; `run` is the
    run whose secrets the data might hold."""
    hooks = [each for each in Webhook.objects.filter(active=True) if kind in each.kinds]
    if hooks:
        WebhookDelivery.objects.bulk_create([_write_delivery(each, kind, path, data, run) for each in hooks])


def announce_test(webhook: Webhook) -> WebhookDelivery:
    """Create a test delivery for one webhook."""
    delivery = _write_delivery(webhook, TEST_EVENT, "/", {"words": "This is a test."}, None)
    delivery.save()
    return delivery


def _write_delivery(
    webhook: Webhook, kind: str, path: str, data: Mapping[str, Any], run: Run | None
) -> WebhookDelivery:
    moment = timezone.now()
    known = {**data, "url": _make_link(webhook, path)}
    payload = {"type": str(kind), "timestamp": moment.isoformat(), "data": known}
    return WebhookDelivery(
        webhook=webhook,
        # One id for all attempts: receivers recognise a repeated delivery by it.
        message=f"msg_{secrets.token_hex(16)}",
        kind=kind,
        payload=payload,
        run=run,
        created=moment,
        next_attempt=moment,
    )


def _make_link(webhook: Webhook, path: str) -> str:
    """Return the absolute URL of a page: under the first origin of MAIA_ORIGINS, else the origin where the webhook
    was added."""
    # A pattern is no address.
    origins = [each for each in settings.CSRF_TRUSTED_ORIGINS if "*" not in each]
    origin = origins[0] if origins else webhook.site
    return f"{origin.rstrip('/')}{settings.PREFIX}{path.removeprefix(settings.PREFIX)}"


def is_held_back(delivery: WebhookDelivery) -> bool:
    """True if the delivery is about a run that people have yet to judge for themselves."""
    run = delivery.run_id
    if run is None:
        return False
    return blindness.is_under_review(run) or not visible_to(Run.objects.filter(pk=run)).exists()


# --- runs ---


@receiver(post_save, sender=Event)
def announce_run(instance: Event, *, created: bool, raw: bool, **_: Any) -> None:
    """Announce that a run ended or waits for a person."""
    if not created or raw:
        return
    # Before `ends`, which is true of a conclusion as well.
    if instance.kind == "concluded":
        kind = WebhookEvent.RUN_CONCLUDED
    elif kind_of(instance.kind).ends:
        kind = WebhookEvent.RUN_ENDED
    elif instance.kind in _WAITS:
        kind = WebhookEvent.RUN_WAITING
    else:
        return
    run = instance.run
    status = str(kind_of(instance.kind).status or run.status)
    conclusion = getattr(instance.content, "conclusion", None)
    labels = list(getattr(conclusion, "labels", ()))
    announce(kind, run.get_absolute_url(), _describe_run(run) | {"status": status, "labels": _cut(labels)}, run)


def _describe_run(run: Run) -> dict[str, Any]:
    """Return what every payload says about a run."""
    blind = registry.blind_name(run.system_kind, run.model, run.layer, run.unit)
    return {"run": run.pk, "system": blind or run.system, "sweep": run.sweep_id}


def _cut(labels: list[str]) -> list[str]:
    return [shorten(str(each), WORDS_CHARS) for each in labels[:MAX_LABELS]]


def announce_check(check: LabelCheck) -> None:
    """Announce that the label of a run was checked. Does nothing for a label without a run."""
    run = check.runs.first()
    if run is None:
        return
    figures = {"r": check.pearson, "r_low": check.pearson_low, "r_high": check.pearson_high}
    said = {"check": check.pk, "status": str(check.status), "labels": _cut([check.text]), **figures}
    announce(WebhookEvent.LABEL_CHECKED, check.get_absolute_url(), _describe_run(run) | said, run)


# --- groups of runs ---


def announce_queue(queue: ReviewQueue, count: int) -> None:
    """Announce how many more runs wait for review in a queue."""
    data = {"queue": queue.pk, "name": shorten(queue.name, WORDS_CHARS), "items": count, "status": "waiting"}
    announce(WebhookEvent.REVIEW_WAITING, queue.get_absolute_url(), data)


def announce_sweep(sweep: Sweep, status: str) -> None:
    """Announce the end of a sweep. A sweep of an evaluation is announced with the evaluation."""
    if sweep.evaluation_id is not None:
        return
    data = {
        "sweep": sweep.pk,
        "name": shorten(sweep.name, WORDS_CHARS),
        "status": str(status),
        "runs": sweep.created_runs,
    }
    announce(WebhookEvent.SWEEP_ENDED, sweep.get_absolute_url(), data)


def announce_evaluation(evaluation: Evaluation, status: str) -> None:
    """Announce the end of an evaluation."""
    name = shorten(evaluation.name, WORDS_CHARS)
    data = {"evaluation": evaluation.pk, "name": name, "kind": evaluation.kind, "status": str(status)}
    announce(WebhookEvent.EVALUATION_ENDED, evaluation.get_absolute_url(), data)
