"""Webhooks, and the outbox of what is sent to each of them."""

from __future__ import annotations

import base64
import secrets
from typing import TypedDict
from urllib.parse import urlsplit

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.crypto import salted_hmac

from experiments.models import stored

ADDRESS_CHARS = 500
ANSWER_CHARS = 300
SECRET_PREFIX = "whsec_"  # noqa: S105 - what Standard Webhooks has a secret begin with


class WebhookEvent(models.TextChoices):
    """Events that a webhook can subscribe to."""

    RUN_CONCLUDED = "run.concluded", "A run concluded"
    RUN_ENDED = "run.ended", "A run ended without a conclusion: limit reached, cancelled or failed"
    RUN_WAITING = "run.waiting", "A run waits for a person"
    REVIEW_WAITING = "review.waiting", "Runs wait for review"
    SWEEP_ENDED = "sweep.ended", "A sweep is done, was stopped, or is out of budget"
    EVALUATION_ENDED = "evaluation.ended", "An evaluation is done, was stopped, or failed"
    LABEL_CHECKED = "label.checked", "A label of a run was tested on held-out images"


TEST_EVENT = "test"
"""The kind of a test delivery, which an admin asks for."""


class WebhookShape(models.TextChoices):
    JSON = "json", "JSON"
    SLACK = "slack", "Slack message"


class DeliveryStatus(models.TextChoices):
    WAITING = "waiting", "Waiting"
    DELIVERED = "delivered", "Delivered"
    GIVEN_UP = "given_up", "Given up"


class StoredPayload(TypedDict, total=False):
    """The body of a delivery in the format “JSON”."""

    type: str
    timestamp: str
    data: dict[str, object]


class Webhook(models.Model):
    """An address that an admin added."""

    address = models.CharField(max_length=ADDRESS_CHARS)
    kinds = stored.ShapedJSONField(shape=list[str], default=list, help_text="values of `WebhookEvent`")
    shape = models.CharField(max_length=10, choices=WebhookShape.choices, default=WebhookShape.JSON)
    nonce = models.CharField(max_length=64, default=secrets.token_hex, help_text="what its secret is derived from")
    active = models.BooleanField(default=True)
    site = models.CharField(max_length=300, help_text="origin under which the site was open when it was added")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    created = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        # Without the path: a Slack address's path is a password, and the audit keeps this text.
        return f"webhook to {self.host}"

    @property
    def host(self) -> str:
        return urlsplit(self.address).netloc.rpartition("@")[2]

    @property
    def key(self) -> bytes:
        """Return the key that signs its deliveries."""
        # Derived from the installation's secret key, so that no backup of the database holds it.
        return salted_hmac("experiments.models.Webhook", self.nonce, algorithm="sha256").digest()

    @property
    def secret(self) -> str:
        """Return the key in the form that receivers are given."""
        return SECRET_PREFIX + base64.b64encode(self.key).decode()


class WebhookDelivery(models.Model):
    """One event for one webhook, written in the transaction of the change that it reports, and sent by a worker.

    It is due once `next_attempt` is over. The sender moves `next_attempt` ahead first, so that no other worker
    sends it meanwhile.
    """

    webhook = models.ForeignKey(Webhook, models.CASCADE, related_name="deliveries", db_index=False)
    message = models.CharField(max_length=40, unique=True, help_text="its id, the same at each attempt")
    kind = models.CharField(max_length=20, help_text="a `WebhookEvent`, or “test”")
    payload = stored.ShapedJSONField(shape=StoredPayload, default=dict)
    run = models.ForeignKey("experiments.Run", models.CASCADE, null=True, related_name="webhook_deliveries")
    created = models.DateTimeField(default=timezone.now)

    status = models.CharField(max_length=10, choices=DeliveryStatus.choices, default=DeliveryStatus.WAITING)
    attempts = models.PositiveIntegerField(default=0, help_text="begun since it was written, or asked for again")
    next_attempt = models.DateTimeField(default=timezone.now)
    tried = models.DateTimeField(null=True)
    code = models.PositiveIntegerField(null=True, help_text="status of the last answer")
    answer = models.CharField(max_length=ANSWER_CHARS, blank=True, help_text="its words, or why none came")
    delivered = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-pk"]
        verbose_name = "webhook delivery"
        indexes = [
            models.Index(fields=["webhook", "-id"], name="deliveries_of_a_webhook"),
            models.Index(fields=["next_attempt"], condition=Q(status="waiting"), name="waiting_deliveries"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} for webhook {self.webhook_id}"
