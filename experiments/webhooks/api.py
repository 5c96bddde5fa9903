"""API of webhooks for admins, as on the page Settings, Webhooks."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from django.db import transaction
from django.http import HttpRequest
from ninja import Field, Query, Router, Status
from pydantic import StringConstraints

from experiments.api.auth import authorize
from experiments.api.cursors import ListPage, Paging, page
from experiments.api.fields import NO_NUL, Body, Given, Id, RowOut, UserName, find
from experiments.api.versions import lock_as_read
from experiments.core.actors import Actor
from experiments.core.visibility import visible_to
from experiments.models import Role, TokenScope, Webhook, WebhookDelivery, WebhookEvent, WebhookShape
from experiments.models.webhook import ADDRESS_CHARS
from experiments.webhooks import actions, lists

router = Router(tags=["Webhooks"])

Kind = Annotated[WebhookEvent, Field(strict=False)]
Shape = Annotated[WebhookShape, Field(strict=False)]


class WebhookIn(Body):
    """Address, kinds of events, and shape."""

    address: Annotated[str, StringConstraints(min_length=1, max_length=ADDRESS_CHARS, pattern=NO_NUL)] = Field(
        examples=["https://example.org/hook"]
    )
    kinds: list[Kind] = Field(min_length=1, max_length=len(WebhookEvent))
    shape: Shape = Field(WebhookShape.JSON, description="“slack” sends one line of text")


class WebhookOut(RowOut):
    id: int
    address: str
    kinds: list[str]
    shape: str
    active: bool = Field(description="false while it is paused")
    created_by: UserName | None
    created: datetime


class WebhookMade(WebhookOut):
    secret: str = Field(description="key that signs deliveries; shown only here")


class DeliveryOut(RowOut):
    """One event for one webhook."""

    id: int
    webhook: int = Field(validation_alias="webhook_id")
    message: str = Field(description="the header `webhook-id`, the same at each attempt")
    kind: str
    payload: dict[str, Any]
    created: datetime
    status: str = Field(description="waiting, delivered or given_up")
    attempts: int
    tried: datetime | None
    next_attempt: datetime
    code: int | None = Field(description="status of the last answer")
    answer: Given = Field(description="its words, or why there was none")
    delivered: datetime | None


def _build_with_secret(row: Webhook) -> WebhookMade:
    return WebhookMade(secret=row.secret, **WebhookOut.from_orm(row).dict())


@router.get("/webhooks", response=ListPage[WebhookOut], summary="List webhooks")
def list_webhooks(request: HttpRequest, paging: Query[Paging]) -> ListPage[WebhookOut]:
    """Oldest first, without secrets."""
    authorize(request, Role.ADMIN)
    return page(request, lists.list_webhooks(), ["pk"], paging, WebhookOut.from_orm)


@router.get("/webhooks/{pk}", response=WebhookOut, summary="Read a webhook")
def read_webhook(request: HttpRequest, pk: Id) -> WebhookOut:
    authorize(request, Role.ADMIN)
    return WebhookOut.from_orm(find(lists.list_webhooks(), pk=pk))


@router.post("/webhooks", response={201: WebhookMade}, summary="Add a webhook")
def create_webhook(request: HttpRequest, wanted: WebhookIn) -> Status[WebhookMade]:
    """An Idempotency-Key has no effect, because repeating the answer would mean storing the secret."""
    actor = Actor.behind(request, authorize(request, Role.ADMIN, TokenScope.WRITE))
    # Stored with the webhook: workers have no request to take it from
    site = request.build_absolute_uri("/").rstrip("/")
    return Status(201, _build_with_secret(actions.add(actor, wanted.address, wanted.kinds, wanted.shape, site)))


@router.put("/webhooks/{pk}", response=WebhookOut, summary="Change a webhook")
def change_webhook(request: HttpRequest, pk: Id, wanted: WebhookIn) -> WebhookOut:
    """Waiting deliveries go to the new address. Needs its ETag in If-Match."""
    actor = Actor.behind(request, authorize(request, Role.ADMIN, TokenScope.WRITE))
    with transaction.atomic():
        # Two admins must not overwrite each other's change
        row = lock_as_read(request, Webhook.objects.all(), pk, WebhookOut)
        return WebhookOut.from_orm(actions.change(actor, row, wanted.address, wanted.kinds, wanted.shape))


@router.delete("/webhooks/{pk}", response={204: None}, summary="Delete a webhook")
def delete_webhook(request: HttpRequest, pk: Id) -> Status[None]:
    """Deletes its deliveries too. Waiting ones are not sent."""
    actor = Actor.behind(request, authorize(request, Role.ADMIN, TokenScope.WRITE))
    actions.delete(actor, find(Webhook.objects.all(), pk=pk))
    return Status(204, None)


@router.post("/webhooks/{pk}/pause", response=WebhookOut, summary="Pause a webhook")
def pause_webhook(request: HttpRequest, pk: Id) -> WebhookOut:
    """Nothing is sent, and no new events are recorded for it. Pausing twice is harmless."""
    actor = Actor.behind(request, authorize(request, Role.ADMIN, TokenScope.WRITE))
    return WebhookOut.from_orm(actions.set_active(actor, find(lists.list_webhooks(), pk=pk), active=False))


@router.post("/webhooks/{pk}/resume", response=WebhookOut, summary="Resume a webhook")
def resume_webhook(request: HttpRequest, pk: Id) -> WebhookOut:
    actor = Actor.behind(request, authorize(request, Role.ADMIN, TokenScope.WRITE))
    return WebhookOut.from_orm(actions.set_active(actor, find(lists.list_webhooks(), pk=pk), active=True))


@router.post("/webhooks/{pk}/secret", response=WebhookMade, summary="Renew the secret of a webhook")
def renew_webhook_secret(request: HttpRequest, pk: Id) -> WebhookMade:
    """All further attempts are signed with the new secret."""
    actor = Actor.behind(request, authorize(request, Role.ADMIN, TokenScope.WRITE))
    return _build_with_secret(actions.renew_secret(actor, find(lists.list_webhooks(), pk=pk)))


@router.post("/webhooks/{pk}/test", response=DeliveryOut, summary="Send a test")
def test_webhook(request: HttpRequest, pk: Id) -> DeliveryOut:
    """A worker sends it within seconds. List its deliveries to see the answer."""
    actor = Actor.behind(request, authorize(request, Role.ADMIN, TokenScope.WRITE))
    return DeliveryOut.from_orm(actions.send_test(actor, find(Webhook.objects.all(), pk=pk)))


@router.get("/webhooks/{pk}/deliveries", response=ListPage[DeliveryOut], summary="List the deliveries of a webhook")
def list_deliveries(request: HttpRequest, pk: Id, paging: Query[Paging]) -> ListPage[DeliveryOut]:
    """Newest first."""
    authorize(request, Role.ADMIN)
    rows = lists.list_deliveries(find(Webhook.objects.all(), pk=pk))
    return page(request, rows, ["-pk"], paging, DeliveryOut.from_orm)


@router.post("/webhook-deliveries/{pk}/again", response=DeliveryOut, summary="Send a delivery again")
def send_delivery_again(request: HttpRequest, pk: Id) -> DeliveryOut:
    """Only for a delivery that was given up."""
    actor = Actor.behind(request, authorize(request, Role.ADMIN, TokenScope.WRITE))
    rows = visible_to(WebhookDelivery.objects.select_related("webhook"))
    return DeliveryOut.from_orm(actions.send_again(actor, find(rows, pk=pk)))
