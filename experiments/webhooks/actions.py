"""Actions of admins on webhooks: add, change, pause, test, delete, and repeat a delivery."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from django.db import transaction
from django.utils import timezone

from experiments.core import audit, outbox
from experiments.core.actors import Actor
from experiments.core.audit import Verb
from experiments.core.errors import InvalidInput, StateConflict
from experiments.models import DeliveryStatus, Role, Webhook, WebhookDelivery, WebhookEvent, WebhookShape
from experiments.webhooks.addresses import parse_target

MAX_WEBHOOKS = 20


def _write(webhook: Webhook, address: str, kinds: Sequence[str], shape: str) -> None:
    """Set the fields of a form. Raises InvalidInput."""
    parse_target(address)
    if not kinds or set(kinds) - set(WebhookEvent.values):
        raise InvalidInput("Choose at least one kind of event from the list.", "kinds")
    if shape not in WebhookShape.values:
        raise InvalidInput("Choose a shape from the list.", "shape")
    webhook.address, webhook.shape = address, shape
    # In a fixed order and without duplicates
    webhook.kinds = [each for each in WebhookEvent.values if each in kinds]


@transaction.atomic
def add(actor: Actor, address: str, kinds: Sequence[str], shape: str, site: str) -> Webhook:
    """Add a webhook. `site` is the origin under which the admin reaches the site. Raises InvalidInput."""
    actor.require(Role.ADMIN)
    if Webhook.objects.count() >= MAX_WEBHOOKS:
        raise StateConflict(f"There are {MAX_WEBHOOKS} webhooks, which is the maximum. Delete one first.")
    webhook = Webhook(site=site, created_by=actor.person)
    _write(webhook, address, kinds, shape)
    webhook.save()
    audit.record(actor, Verb.WEBHOOK_ADDED, webhook, kinds=", ".join(webhook.kinds), shape=webhook.shape)
    return webhook


@transaction.atomic
def change(actor: Actor, webhook: Webhook, address: str, kinds: Sequence[str], shape: str) -> Webhook:
    """Change address, events or shape. Waiting deliveries go to the new address. Raises InvalidInput."""
    actor.require(Role.ADMIN)
    _write(webhook, address, kinds, shape)
    webhook.save(update_fields=["address", "kinds", "shape"])
    audit.record(actor, Verb.WEBHOOK_CHANGED, webhook, kinds=", ".join(webhook.kinds), shape=webhook.shape)
    return webhook


@transaction.atomic
def set_active(actor: Actor, webhook: Webhook, *, active: bool) -> Webhook:
    """Pause or resume it. While it is paused, nothing is sent and no new events are recorded for it. Idempotent."""
    actor.require(Role.ADMIN)
    # Only a change is audited
    if Webhook.objects.filter(pk=webhook.pk, active=not active).update(active=active):
        audit.record(actor, Verb.WEBHOOK_RESUMED if active else Verb.WEBHOOK_PAUSED, webhook)
    webhook.active = active
    return webhook


@transaction.atomic
def renew_secret(actor: Actor, webhook: Webhook) -> Webhook:
    """Create a new secret, which signs all further attempts."""
    actor.require(Role.ADMIN)
    webhook.nonce = secrets.token_hex()
    webhook.save(update_fields=["nonce"])
    audit.record(actor, Verb.WEBHOOK_RENEWED, webhook)
    return webhook


@transaction.atomic
def delete(actor: Actor, webhook: Webhook) -> None:
    """Delete it with its deliveries, including waiting ones."""
    actor.require(Role.ADMIN)
    audit.record(actor, Verb.WEBHOOK_DELETED, webhook)
    webhook.delete()


@transaction.atomic
def send_test(actor: Actor, webhook: Webhook) -> WebhookDelivery:
    """Queue a test delivery. Raises StateConflict if it is paused."""
    actor.require(Role.ADMIN)
    if not webhook.active:
        raise StateConflict("This webhook is paused, so nothing is sent. Resume it first.")
    # Through the outbox, so that the test takes the same path as real events
    delivery = outbox.announce_test(webhook)
    audit.record(actor, Verb.WEBHOOK_TESTED, webhook)
    return delivery


@transaction.atomic
def send_again(actor: Actor, delivery: WebhookDelivery) -> WebhookDelivery:
    """Try a given-up delivery again, with fresh attempts. Raises StateConflict for others."""
    actor.require(Role.ADMIN)
    # One conditional update: of two admins who repeat it at once, only one finds it given up.
    given_up = WebhookDelivery.objects.filter(pk=delivery.pk, status=DeliveryStatus.GIVEN_UP)
    if not given_up.update(status=DeliveryStatus.WAITING, attempts=0, next_attempt=timezone.now()):
        raise StateConflict("Only a delivery that was given up is sent again. This one is not.")
    audit.record(actor, Verb.DELIVERY_REPEATED, delivery.webhook, delivery=delivery.pk)
    delivery.refresh_from_db()
    return delivery
