"""Pages of webhooks for admins: the list under Settings, and one webhook with its deliveries."""

from __future__ import annotations

import json
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from experiments.core import access
from experiments.core.actors import Actor
from experiments.core.errors import ActionRefused
from experiments.core.paging import Page
from experiments.display.form_fields import add_refusal
from experiments.models import Role, Webhook, WebhookDelivery, WebhookEvent, WebhookShape
from experiments.models.webhook import ADDRESS_CHARS
from experiments.webhooks import actions, lists

PER_PAGE = 25
_KINDS = dict(WebhookEvent.choices)
_DEFAULT_KINDS = (WebhookEvent.RUN_CONCLUDED, WebhookEvent.SWEEP_ENDED, WebhookEvent.EVALUATION_ENDED)


class _WebhookForm(forms.Form):
    """The fields of a new or changed webhook. The actions validate its values, for pages and API alike."""

    address = forms.CharField(
        max_length=ADDRESS_CHARS,
        widget=forms.URLInput(
            attrs={"autocomplete": "off", "spellcheck": "false", "placeholder": "https://example.org/hook"}
        ),
        error_messages={"required": "Write an address such as https://example.org/hook."},
    )
    kinds = forms.MultipleChoiceField(
        label="Tell it when",
        choices=WebhookEvent.choices,
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Choose at least one kind of event."},
    )
    shape = forms.ChoiceField(label="Send it as", choices=WebhookShape.choices, widget=forms.RadioSelect)

    @classmethod
    def build_empty(cls) -> _WebhookForm:
        return cls(initial={"kinds": [*_DEFAULT_KINDS], "shape": WebhookShape.JSON})

    @classmethod
    def from_row(cls, webhook: Webhook) -> _WebhookForm:
        known: dict[str, Any] = {name: getattr(webhook, name) for name in ("address", "kinds", "shape")}
        return cls(initial=known)


@require_safe
@never_cache
def webhooks(request: HttpRequest) -> HttpResponse:
    """List webhooks with their latest delivery, and a form for a new one."""
    access.require(request, Role.ADMIN)
    return _show_all(request, _WebhookForm.build_empty())


def _show_all(request: HttpRequest, form: _WebhookForm, status: int = 200) -> HttpResponse:
    context = {"webhooks": lists.list_with_last(), "form": form}
    return render(request, "webhooks/index.html", context, status=status)


@require_POST
@never_cache
def add(request: HttpRequest) -> HttpResponse:
    """Add a webhook. Its secret is shown only in this answer."""
    actor, form = Actor.of(request, Role.ADMIN), _WebhookForm(request.POST)
    if form.is_valid():
        try:
            row = actions.add(actor, **form.cleaned_data, site=request.build_absolute_uri("/").rstrip("/"))
        except ActionRefused as refusal:
            add_refusal(form, refusal)
        else:
            return _show_one(request, row, _WebhookForm.from_row(row), secret=row.secret)
    return _show_all(request, form, 400)


@require_safe
@never_cache
def webhook(request: HttpRequest, pk: int) -> HttpResponse:
    """Show one webhook with its deliveries."""
    access.require(request, Role.ADMIN)
    row = get_object_or_404(lists.list_webhooks(), pk=pk)
    return _show_one(request, row, _WebhookForm.from_row(row))


def _show_one(
    request: HttpRequest, row: Webhook, form: _WebhookForm, status: int = 200, secret: str = ""
) -> HttpResponse:
    rows = lists.list_deliveries(row)
    page = Page.of(request.GET.dict(), rows.count(), PER_PAGE)
    context: dict[str, Any] = {
        "webhook": row,
        "form": form,
        "secret": secret,
        "page": page,
        "deliveries": [
            (each, _KINDS.get(each.kind, "Test"), json.dumps(each.payload, indent=1, ensure_ascii=False))
            for each in rows[page.start : page.end]
        ],
        "here": reverse("settings-webhook", args=[row.pk]),
    }
    return render(request, "webhooks/page.html", context, status=status)


@require_POST
def change(request: HttpRequest, pk: int) -> HttpResponse:
    """Change address, events or shape."""
    actor, form = Actor.of(request, Role.ADMIN), _WebhookForm(request.POST)
    row = get_object_or_404(lists.list_webhooks(), pk=pk)
    if form.is_valid():
        try:
            actions.change(actor, row, **form.cleaned_data)
        except ActionRefused as refusal:
            add_refusal(form, refusal)
        else:
            messages.success(request, "The webhook is changed.")
            return redirect("settings-webhook", pk)
    # Read again, so that the page shows the saved values
    return _show_one(request, get_object_or_404(lists.list_webhooks(), pk=pk), form, 400)


@require_POST
def set_active(request: HttpRequest, pk: int) -> HttpResponse:
    """Pause or resume it."""
    actor = Actor.of(request, Role.ADMIN)
    active = request.POST.get("active") == "yes"
    actions.set_active(actor, get_object_or_404(Webhook, pk=pk), active=active)
    messages.success(request, "The webhook is active." if active else "The webhook is paused.")
    return redirect("settings-webhook", pk)


@require_POST
@never_cache
def renew_secret(request: HttpRequest, pk: int) -> HttpResponse:
    """Create a new secret, shown only in this answer."""
    actor = Actor.of(request, Role.ADMIN)
    row = actions.renew_secret(actor, get_object_or_404(lists.list_webhooks(), pk=pk))
    return _show_one(request, row, _WebhookForm.from_row(row), secret=row.secret)


@require_POST
def send_test(request: HttpRequest, pk: int) -> HttpResponse:
    """Queue a test delivery."""
    actor, row = Actor.of(request, Role.ADMIN), get_object_or_404(Webhook, pk=pk)
    try:
        actions.send_test(actor, row)
    except ActionRefused as refusal:
        messages.error(request, str(refusal))
    else:
        messages.success(request, "A test is being sent. Refresh the page to see the answer.")
    return redirect("settings-webhook", pk)


@require_POST
def delete(request: HttpRequest, pk: int) -> HttpResponse:
    """Delete it with its deliveries."""
    actor, row = Actor.of(request, Role.ADMIN), get_object_or_404(Webhook, pk=pk)
    actions.delete(actor, row)
    # The row in memory still has its name.
    messages.success(request, f"The {row} is deleted.")
    return redirect("settings-webhooks")


@require_POST
def send_again(request: HttpRequest, pk: int, delivery: int) -> HttpResponse:
    """Try a given-up delivery again."""
    actor = Actor.of(request, Role.ADMIN)
    row = get_object_or_404(WebhookDelivery.objects.select_related("webhook"), pk=delivery, webhook=pk)
    try:
        actions.send_again(actor, row)
    except ActionRefused as refusal:
        messages.error(request, str(refusal))
    return redirect("settings-webhook", pk)
