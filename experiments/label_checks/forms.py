"""The form that starts a label check. The actions check its values, for pages and API alike."""

from __future__ import annotations

from django import forms
from django.utils.html import format_html

from experiments.display.form_fields import NumberText
from experiments.label_checks.questions import MAX_JUDGES
from experiments.label_checks.requests import PEOPLE

_DEFAULT_JUDGE = "toybox knows its scenes; elsewhere a network or a language model, as this installation is set"
_EXPLAINED = (
    ("", "The usual judge", _DEFAULT_JUDGE),
    (PEOPLE, "People", "reviewers are shown about 70 images, one after the other"),
)
_JUDGES = [(key, format_html('{} <span class="muted">{}</span>', *words)) for key, *words in _EXPLAINED]


class StartCheck(forms.Form):
    """Who judges the natural images."""

    judge = forms.ChoiceField(
        label="Judge of natural images", required=False, choices=_JUDGES, widget=forms.RadioSelect
    )
    judges = forms.CharField(
        label="People for each image",
        help_text=f"where people judge, 1 to {MAX_JUDGES}",
        required=False,
        initial="1",
        widget=NumberText,
    )
