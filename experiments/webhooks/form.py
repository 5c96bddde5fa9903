"""Form of a webhook. The actions validate its values, for pages and API alike."""

from __future__ import annotations

from typing import Any

from django import forms

from experiments.models import Webhook, WebhookEvent, WebhookShape
from experiments.models.webhook import ADDRESS_CHARS

DEFAULT_KINDS = (WebhookEvent.RUN_CONCLUDED, WebhookEvent.SWEEP_ENDED, WebhookEvent.EVALUATION_ENDED)


class WebhookForm(forms.Form):
    """The fields of a new or changed webhook."""

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
    def fresh(cls) -> WebhookForm:
        return cls(initial={"kinds": [*DEFAULT_KINDS], "shape": WebhookShape.JSON})

    @classmethod
    def of(cls, webhook: Webhook) -> WebhookForm:
        known: dict[str, Any] = {name: getattr(webhook, name) for name in ("address", "kinds", "shape")}
        return cls(initial=known)
