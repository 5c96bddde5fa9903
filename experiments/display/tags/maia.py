"""How templates write numbers, times, words and programs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import Any

from django import template
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from experiments.display import help_text
from experiments.display import prose as words
from experiments.display.image_cards import draw_bar, draw_card, draw_claim, draw_pair
from experiments.models import Run
from workers import registry
from workers.record.figures import change, figure

register = template.Library()

CHIP = '<span class="chip status-{}">{}{}</span>'
DOT = SafeString('<span class="dot"></span>')
MARKS = {"concluded": "check", "failed": "cross"}
WAYS_OF_TIME = ((86400, "day"), (3600, "hour"), (60, "minute"))


@register.filter
def prose(text: str) -> SafeString:
    """Untrusted Markdown as safe HTML."""
    return words.prose(text)


@register.filter
def highlight(code: str) -> SafeString:
    """An untrusted program as safe, coloured HTML."""
    return words.highlight(code)


register.filter(figure)
register.filter(change)


@register.filter
def compact(value: float | None) -> str:
    """A count in few characters: 950, 18.2k, 1M."""
    number = float(value or 0)
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= unit:
            return f"{number / unit:.1f}".removesuffix(".0") + name
    return f"{number:g}"


@register.filter
def size(count: float | None) -> str:
    """Bytes of memory: 12 kB, 3.4 MB, 120 MB, 1.25 GB; steps of 1,024."""
    value = float(count or 0)
    for unit, name in ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "kB")):
        if value >= unit:
            share = value / unit
            digits = 0 if share >= 100 or name == "kB" else 1 if share >= 10 or name == "MB" else 2
            return f"{share:.{digits}f} {name}"
    return f"{value:.0f} bytes"


@register.filter
def clock(seconds: float | None) -> str:
    """A duration as a clock shows it: 0:48 or 1:02:03."""
    whole = int(seconds or 0)
    hours, minutes = whole // 3600, whole // 60 % 60
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"


@register.filter
def took(seconds: float | None) -> str:
    """A duration in words: 0.8 s, 42 s, 3 min 5 s."""
    value = float(seconds or 0)
    if value < 10:
        return f"{value:.1f} s"
    if value < 60:
        return f"{value:.0f} s"
    hours, minutes = int(value) // 3600, int(value) // 60 % 60
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {int(value) % 60} s"


@register.filter
def ago(time: datetime | None) -> str:
    """How long ago, to one unit; "" where nobody knows."""
    if time is None:
        return ""
    seconds = (timezone.now() - time).total_seconds()
    for unit, name in WAYS_OF_TIME:
        if seconds >= unit:
            count = int(seconds // unit)
            return f"{count} {name}{'s' if count > 1 else ''} ago"
    return "just now"


@register.filter
def moment(time: datetime) -> str:
    """A day and a time, as 5 Nov 2026, 14:03; what `date` makes of "j M Y, H:i", for lists of many."""
    return f"{time.day} {time:%b %Y, %H:%M}"


@register.filter
def thousands(count: int) -> str:
    """12340 as 12,340."""
    return f"{count:,}"


@register.filter
def dollars(value: float | None) -> str:
    """An amount of money; four decimals while it is less than a cent. None is one that nobody knows."""
    if value is None:
        return "price unknown"
    amount = float(value or 0)
    return f"${amount:.4f}" if 0 < amount < 0.01 else f"${amount:.2f}"


@register.filter
def counted(count: int, noun: str) -> str:
    """`3|counted:"image"` is "3 images"."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


@register.filter
def pairs(stored: Any) -> list[tuple[str, Any]]:
    """Names and values of stored data, whose keys are not ours: `stored.items` would look up a key of that name first.
    Empty for what is no mapping."""
    return [(str(name), value) for name, value in stored.items()] if isinstance(stored, Mapping) else []


@register.filter
def share(value: float | None) -> str:
    """A part of 1 in per cent; a small one is not called 0."""
    percent = 100 * float(value or 0)
    return "under 1 %" if 0 < percent < 1 else f"{percent:.0f} %"


@register.filter
def remedy(text: str) -> SafeString:
    """What is missing and how to get it, with its commands set as code."""
    return help_text.as_html(text)


@register.inclusion_tag("display/remedy.html")
def remedy_box(text: str) -> dict[str, Any]:
    """The same with a Copy button beside each command."""
    return {"pieces": help_text.paragraphs(text)}


@register.inclusion_tag("display/gauge.html")
def gauge(value: float, limit: float | None) -> dict[str, Any]:
    """How much of a limit is used; nothing where there is no limit."""
    share = min(value / limit, 1.0) * 100 if limit else None
    return {"share": None if share is None else f"{share:g}", "full": share is not None and share >= 90}


@register.filter
def whole(command: str) -> SafeString:
    """A command whose options are not broken at their hyphens where its lines are."""
    words = (('<span class="whole">{}</span>' if word.startswith("--") else "{}", word) for word in command.split(" "))
    return SafeString(" ".join(format_html(shape, word) for shape, word in words))


@register.filter
def said(value: Any) -> str:
    """A name or a value of something recorded, as a person would say it."""
    return (
        {True: "yes", False: "no", None: "none"}[value]
        if value is None or isinstance(value, bool)
        else str(value).replace("_", " ")
    )


@register.filter
def agent(run: Run) -> str:
    """Who writes the replies of a run, in few words: the model, where its backbone has several."""
    return run.backbone_model or registry.label(registry.BACKBONES, run.backbone).partition(" (")[0]


@register.simple_tag
def status(run: Run) -> SafeString:
    """How a run is; one that was told to stop, or to pause, says so until its worker has let go of it."""
    if run.cancel_requested and not run.has_ended:
        return format_html(CHIP, "stopping", DOT, "Stopping…")
    if run.is_pausing:
        return format_html(CHIP, "pausing", DOT, "Pausing…")
    mark = icon(MARKS[run.status]) if run.status in MARKS else DOT
    return format_html(CHIP, run.status, mark, run.get_status_display())


@register.simple_tag
@cache
def icon(name: str) -> SafeString:
    """A line drawing beside a word; never alone."""
    return render_to_string("display/icon.html", {"name": name})


register.simple_tag(draw_card, name="image_card")
register.simple_tag(draw_pair, name="image_pair")
register.simple_tag(draw_bar, name="bar")
register.simple_tag(draw_claim, name="claim")
