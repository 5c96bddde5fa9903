"""Webhooks with how their last delivery went, and the deliveries of one."""

from __future__ import annotations

from django.db.models import Max, QuerySet

from experiments.core.visibility import visible_to
from experiments.models import Webhook, WebhookDelivery


def list_webhooks() -> QuerySet[Webhook]:
    """All there are, the oldest first."""
    return Webhook.objects.select_related("created_by")


def list_with_last() -> list[tuple[Webhook, WebhookDelivery | None]]:
    """Each webhook with its newest delivery."""
    rows = list(list_webhooks().annotate(last=Max("deliveries")))
    newest = WebhookDelivery.objects.in_bulk([each.last for each in rows if each.last])
    return [(each, newest.get(each.last)) for each in rows]


def list_deliveries(webhook: Webhook) -> QuerySet[WebhookDelivery]:
    """What one was told and is to be told, the newest first; nothing of runs that are hidden while people write."""
    return visible_to(webhook.deliveries.order_by("-pk"))
