"""Define form fields that Django lacks: numbers as text, and forms that are checked while they are filled in."""

from __future__ import annotations

from collections.abc import Iterable

from django import forms
from django.forms.boundfield import BoundField
from django.utils.html import format_html

from experiments.core.errors import ActionRefused, InvalidInput
from experiments.display.number_format import count_noun


class NumberText(forms.TextInput):
    """A number as text, so that a wrong entry stays for correction; phones show their digits."""

    def __init__(self, attrs: dict[str, str] | None = None) -> None:
        super().__init__({"inputmode": "numeric", "autocomplete": "off", **(attrs or {})})


class LiveField(BoundField):
    """A field whose place for errors is always on the page, so that a preview can fill it."""

    is_live = True

    @property
    def aria_describedby(self) -> str:
        # Django's own version names the errors only once there are some.
        help_id = f"{self.auto_id}_helptext " if self.help_text else ""
        return f"{help_id}{self.auto_id}_error"


class LiveForm(forms.Form):
    """A form whose page shows a preview, which is drawn again while the form is filled in."""

    bound_field_class = LiveField

    @property
    def problems(self) -> list[str]:
        """Return sentences that name the field."""
        return [
            f"{self[name].label}: {message}" if name in self.fields else str(message)
            for name, messages in self.errors.items()
            for message in messages
        ]


def add_refusal(form: forms.Form, refusal: ActionRefused, **names: str) -> None:
    """Put the reason why an action was refused beside its field, or above the form if it has none. `names` are those
    of parameters of the action whose fields are called otherwise."""
    field = refusal.field if isinstance(refusal, InvalidInput) else ""
    field = names.get(field, field)
    form.add_error(field if field in form.fields else None, str(refusal))


def limit_field(label: str, most: float, least: float | None = None) -> forms.FloatField:
    """Return the field of a limit that need not be given."""
    typed = NumberText(attrs={"inputmode": "decimal", "placeholder": "no limit"})
    return forms.FloatField(label=label, required=False, min_value=least, max_value=most, widget=typed)


def offer_counted(rows: Iterable[tuple[str, str, int]]) -> list[tuple[str, str]]:
    """Return choices of sources of labels, each with how many labels it has, from (key, words, labels)."""
    return [
        (key, format_html('{} <span class="muted">{}</span>', words, count_noun(labels, "label")))
        for key, words, labels in rows
    ]
