"""Template tags for the card of the gallery and for stored data."""

from __future__ import annotations

import json
from typing import Any

from django import template
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from experiments.display.card_drawing import draw_card, draw_edits
from experiments.display.tags.people import names_in
from experiments.display.tags.units import card_at
from experiments.gallery.observations import GalleryItem

register = template.Library()

ITEM = (
    '<div class="gallery-item{two}">\n  {cards}\n  <p class="location"><a href="{run}?at={seq}#e{seq}"'
    ' title="{system}: the event in the transcript">Run {pk} #{seq}</a> <a class="system" href="{experiment}"{card}'
    ' title="Experiment {number}" data-says="Experiment {number}">{short}</a></p>\n</div>'
)


@register.simple_tag(takes_context=True)
def gallery_item(context: template.Context, item: GalleryItem) -> SafeString:
    """Draw an image, or an edit beside its original, and where it was logged."""
    run, logged, names = item.row.run, item.row.experiment, names_in(context)
    # Reversed once: the address of the experiment begins with it.
    page = reverse("run", args=[run.pk])
    return format_html(
        ITEM,
        two=(" group several" if item.more else " group") if item.before else "",
        cards=draw_edits(item.before, [item.card, *item.more], item.scale)
        if item.before
        else draw_card(item.card, item.scale),
        run=page,
        pk=run.pk,
        seq=logged.seq,
        card=card_at(names, run),
        system=names.of(run),
        experiment=f"{page}experiments/{logged.number}/",
        number=logged.number,
        short=names.short(run),
    )


@register.filter
def format_json(data: Any) -> str:
    """Format JSON with indents."""
    return json.dumps(data, indent=2, ensure_ascii=False)
