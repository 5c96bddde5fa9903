"""What admins do with webhooks: adding, changing, pausing, trying and deleting them, and sending a delivery again."""

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
    """Fill in what a form asks. Raises InvalidInput."""
    parse_target(address)
    if not kinds or set(kinds) - set(WebhookEvent.values):
        raise InvalidInput("Choose at least one kind of event from the list.", "kinds")
    if shape not in WebhookShape.values:
        raise InvalidInput("Choose a shape from the list.", "shape")
    webhook.address, webhook.shape = address, shape
    webhook.kinds = [each for each in WebhookEvent.values if each in kinds]


@transaction.atomic
def add(actor: Actor, address: str, kinds: Sequence[str], shape: str, site: str) -> Webhook:
    """A new webhook. `site` is the origin under which the site is open to who adds it. Raises InvalidInput."""
    actor.require(Role.ADMIN)
    if Webhook.objects.count() >= MAX_WEBHOOKS:
        raise StateConflict(f"There are {MAX_WEBHOOKS} webhooks, and no more are taken. Delete one first.")
    webhook = Webhook(site=site, created_by=actor.person)
    _write(webhook, address, kinds, shape)
    webhook.save()
    audit.record(actor, Verb.WEBHOOK_ADDED, webhook, kinds=", ".join(webhook.kinds), shape=webhook.shape)
    return webhook


@transaction.atomic
def change(actor: Actor, webhook: Webhook, address: str, kinds: Sequence[str], shape: str) -> Webhook:
    """Another address, other events or another shape. What is waiting goes to the new address. Raises InvalidInput."""
    actor.require(Role.ADMIN)
    _write(webhook, address, kinds, shape)
    webhook.save(update_fields=["address", "kinds", "shape"])
    audit.record(actor, Verb.WEBHOOK_CHANGED, webhook, kinds=", ".join(webhook.kinds), shape=webhook.shape)
    return webhook


@transaction.atomic
def set_active(actor: Actor, webhook: Webhook, *, active: bool) -> Webhook:
    """Pause it, or go on. While it is paused nothing is sent, and it is told of nothing new. Twice is once."""
    actor.require(Role.ADMIN)
    if Webhook.objects.filter(pk=webhook.pk, active=not active).update(active=active):
        audit.record(actor, Verb.WEBHOOK_RESUMED if active else Verb.WEBHOOK_PAUSED, webhook)
    webhook.active = active
    return webhook


@transaction.atomic
def renew_secret(actor: Actor, webhook: Webhook) -> Webhook:
    """Another secret, with which every further attempt is signed."""
    actor.require(Role.ADMIN)
    webhook.nonce = secrets.token_hex()
    webhook.save(update_fields=["nonce"])
    audit.record(actor, Verb.WEBHOOK_RENEWED, webhook)
    return webhook


@transaction.atomic
def delete(actor: Actor, webhook: Webhook) -> None:
    """Remove it with its deliveries; what waits is not sent any more."""
    actor.require(Role.ADMIN)
    audit.record(actor, Verb.WEBHOOK_DELETED, webhook)
    webhook.delete()


@transaction.atomic
def send_test(actor: Actor, webhook: Webhook) -> WebhookDelivery:
    """Have a worker send something, to see whether it arrives. Raises StateConflict for one that is paused."""
    actor.require(Role.ADMIN)
    if not webhook.active:
        raise StateConflict("This webhook is paused, so nothing is sent. Resume it first.")
    delivery = outbox.announce_test(webhook)
    audit.record(actor, Verb.WEBHOOK_TESTED, webhook)
    return delivery


@transaction.atomic
def send_again(actor: Actor, delivery: WebhookDelivery) -> WebhookDelivery:
    """Have a delivery that was given up tried again, as if it were new. Raises StateConflict for others."""
    actor.require(Role.ADMIN)
    given_up = WebhookDelivery.objects.filter(pk=delivery.pk, status=DeliveryStatus.GIVEN_UP)
    if not given_up.update(status=DeliveryStatus.WAITING, attempts=0, next_attempt=timezone.now()):
        raise StateConflict("Only a delivery that was given up is sent again. This one is not.")
    audit.record(actor, Verb.DELIVERY_REPEATED, delivery.webhook, delivery=delivery.pk)
    delivery.refresh_from_db()
    return delivery
