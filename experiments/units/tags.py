"""Units of a drawing as links."""

from __future__ import annotations

from collections.abc import Mapping

from django import template
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from experiments.units.drawing import Drawing

register = template.Library()


@register.simple_tag
def unit_links(drawing: Drawing, titles: Mapping[tuple[int, int], str]) -> SafeString:
    """The units of a layer that somebody asked about, each a square that leads to its page and says its labels."""
    layer, side, url = drawing.layer, drawing.pitch, escape(drawing.url)
    return mark_safe(  # noqa: S308 - names and labels are escaped
        "".join(
            f'<a href="{url}{cell.number}/"><rect x="{cell.x}" y="{cell.y}" width="{side}" height="{side}"/>'
            f"<title>{escape(join_names(layer.name_of(cell.number), titles.get((layer.pk, cell.number), '')))}"
            f"unit {cell.number}, {cell.state.words.lower()}</title></a>"
            for cell in drawing.cells
        )
    )


def join_names(name: str, label: str) -> str:
    return "".join(f"{each} · " for each in (label, name) if each)
