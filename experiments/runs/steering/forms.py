"""The forms of steering: a message to the agent, other limits."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import QueryDict

from experiments.models import Run
from experiments.runs.asking.form import LimitFields
from experiments.runs.steering import actions


class MessageForm(forms.Form):
    """A message to the agent. The browser keeps what is written until it is sent."""

    text = forms.CharField(
        label="Message to agent",
        help_text="It reads this with its next message; everybody sees it in the transcript, with your name.",
        required=False,
        widget=forms.Textarea(
            {
                "rows": 2,
                "maxlength": actions.MAX_CHARS,
                "required": True,
                "placeholder": "What should it look at, or do otherwise?",
                "data-send": True,
            }
        ),
    )

    def __init__(self, run: Run, data: QueryDict | None = None) -> None:
        super().__init__(data, auto_id="note-%s")
        # Under this name the browser keeps an unsent message.
        self.fields["text"].widget.attrs["data-keep"] = f"note-{run.pk}"


class LimitsForm(LimitFields):
    """`seen` holds the limits that the form was filled with."""

    why = forms.CharField(help_text="for the record", required=False, max_length=actions.WHY_CHARS)
    seen = forms.JSONField(required=False)

    def clean_seen(self) -> dict[str, Any] | None:
        seen = self.cleaned_data["seen"]
        return seen if isinstance(seen, dict) else None
