"""Show units as links with a card; every page that names one uses these tags."""

from __future__ import annotations

from django import template
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from experiments.core.system_names import SystemNameMasker
from experiments.display.tags.people import names_in
from experiments.models import Run

register = template.Library()
LINK = '<a class="unit-link" href="{}" data-card="{}">{}</a>'


@register.simple_tag(takes_context=True)
def unit_link(context: template.Context, run: Run, short: bool = False) -> SafeString | str:
    """Show a run's system as the viewer may read it: a link to the unit with its card, unless hidden. `short`
    leaves out the model."""
    names = names_in(context)
    words = names.short(run) if short else names.of(run)
    return words if names.is_masked(run) else unit_at(run.model, run.layer, run.unit, words)


@register.simple_tag
def unit_at(model: str, layer: str, number: int | None, words: str = "") -> SafeString | str:
    """Show a unit by its place, under these words or its own. Only for pages that have checked whether it is hidden."""
    words = str(words or f"{model} / {layer} / unit {number}")
    try:
        places = (reverse(page, args=[model, layer, number]) for page in ("unit", "unit-card"))
        return format_html(LINK, *places, words)
    except NoReverseMatch:  # it names no unit, as an imported run's system may
        return words


def card_at(names: SystemNameMasker, run: Run) -> SafeString:
    """Return the attribute that adds the unit's card to a link that names a run's system and leads elsewhere."""
    if names.is_masked(run):
        return SafeString("")
    try:
        return format_html(' data-card="{}"', reverse("unit-card", args=[run.model, run.layer, run.unit]))
    except NoReverseMatch:
        return SafeString("")
