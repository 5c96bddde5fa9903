"""Provide template filters and tags for numbers, times, text, programs and images."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any
from urllib.parse import urlencode

from django import template
from django.template.loader import render_to_string
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from experiments.core import parts
from experiments.display import number_format as numbers
from experiments.display.card_drawing import draw_bar, draw_card, draw_claim, draw_edits, draw_pair
from experiments.display.plots.marks import draw_marks
from experiments.display.prose import first_sentence, highlight, prose, set_commands, split_lines
from experiments.models import Run
from workers.record.figures import change, figure

register = template.Library()

CHIP = '<span class="chip status-{}">{}{}</span>'
DOT = SafeString('<span class="dot"></span>')
POLL = 'hx-get="{}" hx-trigger="every {}"{} hx-target="this" hx-swap="outerHTML" hx-sync="this:drop" data-while-visible'
MARKS = {"concluded": "check", "failed": "cross"}
_HEADS = {"#": ' class="number">{}', "*": ' class="pictures"><span class="sr-only">{}</span>'}


for _written in (
    figure,
    change,
    prose,
    first_sentence,
    highlight,
    numbers.compact,
    numbers.size,
    numbers.clock,
    numbers.duration,
):
    register.filter(_written)
for _counted in (
    numbers.ago,
    numbers.timestamp,
    numbers.thousands,
    numbers.dollars,
    numbers.count_noun,
    numbers.share,
    numbers.shorten_value,
    numbers.percent,
):
    register.filter(_counted)
register.filter("remedy", set_commands)


@register.filter
def pairs(stored: Any) -> list[tuple[str, Any]]:
    """Return names and values of stored data; empty unless it is a mapping."""
    # Keys are arbitrary: in a template, `stored.items` would look up a key "items" first.
    return [(str(name), value) for name, value in stored.items()] if isinstance(stored, Mapping) else []


@register.filter
def not_installed(rows: Iterable[Any]) -> list[Any]:
    """Return the models, datasets, toolsets or backbones that no worker can use yet."""
    return [row for row in rows or () if not row.available]


@register.inclusion_tag("display/remedy.html")
def remedy_box(text: str) -> dict[str, Any]:
    """Show a remedy with a Copy button beside each command."""
    return {"pieces": split_lines(text)}


@register.inclusion_tag("display/gauge.html")
def gauge(value: float, limit: float | None) -> dict[str, Any]:
    """Show how much of a limit is used; nothing without a limit."""
    # A run may exceed its limit by its last reply.
    share = min(value / limit, 1.0) * 100 if limit else None
    return {"share": None if share is None else f"{share:g}", "full": share is not None and share >= 90}


@register.filter
def nobreak(command: str) -> SafeString:
    """Prevent line breaks at the hyphens of a command's options."""
    words = (
        ('<span class="no-wrap">{}</span>' if word.startswith("--") else "{}", word) for word in command.split(" ")
    )
    return SafeString(" ".join(format_html(shape, word) for shape, word in words))


@register.filter
def humanize(value: Any) -> str:
    """Write a recorded name or value as a person would say it."""
    if value is None or isinstance(value, bool):
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, list):
        return ", ".join(str(each) for each in value)
    return str(value).replace("_", " ")


@register.filter
def backbone(run: Run) -> str:
    """Return the name of a run's backbone: its model, if the backbone has several."""
    return run.backbone_model or parts.label_backbone(run.backbone).partition(" (")[0]


@register.simple_tag
def status(run: Run) -> SafeString:
    """Show a run's status; a run that was told to stop or pause shows that until its worker has released it."""
    if run.cancel_requested and not run.has_ended:
        return format_html(CHIP, "stopping", DOT, "Stopping…")
    if run.is_pausing:
        return format_html(CHIP, "pausing", DOT, "Pausing…")
    mark = icon(MARKS[run.status]) if run.status in MARKS else DOT
    return format_html(CHIP, run.status, mark, run.get_status_display())


@register.simple_tag
@cache
def icon(name: str) -> SafeString:
    """Draw an icon beside a word; never alone."""
    return render_to_string("display/icon.html", {"name": name})


register.simple_tag(draw_card, name="image_card")
register.simple_tag(draw_pair, name="image_pair")
register.simple_tag(draw_edits, name="image_edits")
register.simple_tag(draw_bar, name="bar")
register.simple_tag(draw_claim, name="claim")
register.simple_tag(draw_marks, name="plot_marks")


@register.simple_block_tag
def empty_state(content: str, title: str, url: str = "", action: str = "", *, primary: bool = False) -> SafeString:
    """Say that nothing is here yet, or that nothing matches: the block says why, `action` is the one thing to do."""
    context = {"title": title, "words": content.strip(), "url": url, "action": action, "primary": primary}
    return render_to_string("display/empty.html", context)


@register.simple_tag(takes_context=True)
def poll(context: template.Context, every: str, url: str = "", *, select: str = "", **given: Any) -> SafeString:
    """Write the attributes of an element that fetches itself again every so long: from the page, or from `url`.

    `select` finds the element in a whole page; `given` are parameters of `url`.
    """
    selected = format_html(' hx-select="{}"', select) if select else ""
    address = url or context["request"].get_full_path()
    return format_html(POLL, f"{address}{parameters(**given)}", every, selected)


@register.inclusion_tag("display/fact.html")
def fact(name: str, value: Any, *, mono: bool = False) -> dict[str, Any]:
    """Show one row of a list of facts."""
    return {"name": name, "value": value, "mono": mono}


@register.simple_block_tag
def shown_once(content: str, noun: str, text: str) -> SafeString:
    """Show a new secret or link with a Copy button; the block says what it is for."""
    return render_to_string("display/shown_once.html", {"noun": noun, "text": text, "words": content})


@register.simple_tag
def table_head(*columns: str) -> SafeString:
    """Write the head of a table. "#" before a title: a column of numbers; "*": of pictures, whose title is hidden."""
    titles = ((_HEADS.get(each[:1], ">{}"), each.lstrip("#*")) for each in columns)
    cells = format_html_join(
        "", "{}", ((format_html(f'<th scope="col"{shape}</th>', title),) for shape, title in titles)
    )
    return format_html("<thead><tr>{}</tr></thead>", cells)


@register.simple_tag
def parameters(**given: Any) -> str:
    """Write the parameters of an address; those without a value are left out, a list gives one for each element."""
    left = {name: value for name, value in given.items() if value not in (None, "")}
    return f"?{urlencode(left, doseq=True)}" if left else ""
