"""Lists of webhooks with their latest delivery, and of deliveries."""

from __future__ import annotations

from django.db.models import Max, QuerySet

from experiments.core.visibility import visible_to
from experiments.models import Webhook, WebhookDelivery


def list_webhooks() -> QuerySet[Webhook]:
    """Return all webhooks, oldest first."""
    return Webhook.objects.select_related("created_by")


def list_with_last() -> list[tuple[Webhook, WebhookDelivery | None]]:
    """Return each webhook with its latest delivery."""
    rows = list(list_webhooks().annotate(last=Max("deliveries")))
    # Two queries, however many webhooks there are
    newest = WebhookDelivery.objects.in_bulk([each.last for each in rows if each.last])
    return [(each, newest.get(each.last)) for each in rows]


def list_deliveries(webhook: Webhook) -> QuerySet[WebhookDelivery]:
    """Return its deliveries, newest first, without those of hidden runs that people are writing."""
    return visible_to(webhook.deliveries.order_by("-pk"))
