"""The texts of a round, and the note of handing over. The actions check them, for pages and API alike."""

from __future__ import annotations

from django import forms
from django.utils.html import format_html

from experiments.runs.human.actions import NOTE_CHARS
from experiments.runs.human.drafts import TEXTS

ANSWER = ("description", "labels", "bias", "reasoning")
"""Parts of a conclusion."""
_KEYS = format_html(
    '<span class="keyboard-hint"><kbd>{0}</kbd> and <kbd>{1}</kbd> <kbd>{0}</kbd> indent, <kbd>{2}</kbd> leaves the '
    "field, <kbd>{3}</kbd> <kbd>{4}</kbd> runs it. It runs in the sandbox of the programs of agents.</span>",
    *("Tab", "Shift", "Esc", "Ctrl", "Enter"),
)
_AS_TYPED = dict.fromkeys(("autocapitalize", "autocomplete", "autocorrect", "wrap"), "off") | {"spellcheck": "false"}


def _text(label: str, help_text: str, rows: int = 5, **attrs: object) -> forms.CharField:
    widget = forms.Textarea({"rows": rows, **attrs})
    return forms.CharField(label=label, help_text=help_text, required=False, strip=False, widget=widget)


class ReplyForm(forms.Form):
    """The texts of a round; its hypotheses are a table."""

    prose = _text("Your interpretation", "optional", rows=3, maxlength=TEXTS["prose"])
    program = _text("Program", _KEYS, rows=14, **_AS_TYPED)
    description = _text("Description", "What the unit responds to, what it does not, and the figures behind both.")
    labels = _text("Labels, one a line", "A short phrase for each concept; “none” if there is none.", rows=2)
    bias = _text("Bias", "Each setting or subset, the mean activation there and elsewhere, how many images.")
    reasoning = _text("Reasoning", "Why, with the figures.")


class HandOver(forms.Form):
    """Who writes next; `model` is that of the chosen backbone."""

    backbone = forms.CharField(required=False)
    note = _text(
        "A note to it",
        "optional; shown in the transcript with your name, which the agent does not see",
        rows=3,
        maxlength=NOTE_CHARS,
    )
