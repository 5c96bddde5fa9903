"""Units as links that show a card: every page that names one draws it with these."""

from __future__ import annotations

from django import template
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from experiments.core.system_names import Names
from experiments.display.tags.people import names_in
from experiments.models import Run

register = template.Library()
LINK = '<a class="unit-link" href="{}" data-card="{}">{}</a>'


@register.simple_tag(takes_context=True)
def unit_link(context: template.Context, run: Run, short: bool = False) -> SafeString | str:
    """What a run studies, as the viewer may read it: a link to the unit with its card, unless that is hidden from
    them. `short` leaves the model out."""
    names = names_in(context)
    words = names.short(run) if short else names.of(run)
    return words if names.hides(run) else unit_at(run.model, run.layer, run.unit, words)


@register.simple_tag
def unit_at(model: str, layer: str, number: int | None, words: str = "") -> SafeString | str:
    """A unit by its place, under these words or its own. It is for pages that have seen whether it is hidden."""
    words = str(words or f"{model} / {layer} / unit {number}")
    try:
        places = (reverse(page, args=[model, layer, number]) for page in ("unit", "unit-card"))
        return format_html(LINK, *places, words)
    except NoReverseMatch:  # it names no unit, as the system of an import may
        return words


def card_at(names: Names, run: Run) -> SafeString:
    """For a link that names what a run studies and leads elsewhere: the attribute that gives it the unit's card."""
    if names.hides(run):
        return SafeString("")
    try:
        return format_html(' data-card="{}"', reverse("unit-card", args=[run.model, run.layer, run.unit]))
    except NoReverseMatch:
        return SafeString("")
