"""Draw the marks of a plot as HTML: bars and dots, each with its text, link and picture.

The arrow keys move between marks (js/display/plots.js), so only the first is in the tab order. A plot has hundreds:
each is one escaped string, not a template.
"""

from __future__ import annotations

from collections.abc import Iterator

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from experiments.display.plots.geometry import Bar, Dot, Plot

LINKED = '<a class="{} {}" href="{}" tabindex="{}"{}><title>{}</title>{}</a>'
PLAIN = '<g class="{} {}" role="img" tabindex="{}"{}><title>{}</title>{}</g>'
PICTURE = ' data-picture="{}"'
RECT = '<rect class="{}" x="{}" y="{}" width="{}" height="{}"/>'
CELL_TEXT = '<text class="cell-text" x="{}" y="{}" dy=".35em" text-anchor="middle" aria-hidden="true">{}</text>'
CIRCLE = '<circle class="dot {}" cx="{}" cy="{}" r="3.4"/>'
FOOT = '<line x1="{0}" x2="{0}" y1="{1}" y2="{2}"/>'
PATH = '<path class="dot {}" transform="translate({} {})" d="{}"/>'
PATHS = {
    "edited": "M0-4.4L4.2 3.2H-4.2Z",
    "original": "M-3.2-3.2H3.2V3.2H-3.2Z",
    "external": "M-3-3L3 3M3-3L-3 3",
}
"""Shapes of dots that are not circles."""
NOTHING = SafeString("")


def draw_marks(plot: Plot, drawn: str) -> SafeString:
    """Draw its bars or its dots; only the first mark is in the tab order."""
    bars, dots = plot.bars, plot.dots
    if drawn == "bars":
        return _join(_draw_bar(each, not place) for place, each in enumerate(bars))
    return _join(_draw_dot(each, not place and not bars) for place, each in enumerate(dots))


def _join(parts: Iterator[SafeString]) -> SafeString:
    return format_html_join("", "{}", ((each,) for each in parts))


def _draw_bar(bar: Bar, is_first: bool) -> SafeString:
    inner = format_html(RECT, bar.kind, bar.x, bar.y, bar.width, bar.height)
    if bar.text:
        inner += format_html(CELL_TEXT, *bar.middle, bar.text)
    return _draw("bar", bar.kind, bar.words, bar.link, "", inner, is_first)


def _draw_dot(dot: Dot, is_first: bool) -> SafeString:
    inner = NOTHING if dot.foot is None else format_html(FOOT, dot.x, dot.y, dot.foot)
    if dot.kind in PATHS:
        inner += format_html(PATH, dot.kind, dot.x, dot.y, PATHS[dot.kind])
    else:
        inner += format_html(CIRCLE, dot.kind, dot.x, dot.y)
    name = "spot" if dot.foot is None else "mark"
    return _draw(name, dot.kind, dot.words, dot.link, dot.picture, inner, is_first)


def _draw(name: str, kind: str, words: str, link: str, picture: str, inner: SafeString, is_first: bool) -> SafeString:
    tab = 0 if is_first else -1
    shown = format_html(PICTURE, picture) if picture else NOTHING
    if link:
        return format_html(LINKED, name, kind, link, tab, shown, words, inner)
    return format_html(PLAIN, name, kind, tab, shown, words, inner)
