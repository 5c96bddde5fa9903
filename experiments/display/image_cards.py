"""Images as HTML: a card with title, activation and bar; the card of the gallery, with the run it comes from.

A page shows a hundred of them. Each is one string whose values are escaped, not a template that includes templates:
that took most of a page's time.
"""

from __future__ import annotations

import math
from typing import Protocol

from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from experiments.core.system_names import Names
from experiments.core.thumbnails import Addresses
from experiments.display.image_groups import Shot
from experiments.display.number_format import change, digits, figure
from experiments.display.plots import Scale
from experiments.gallery.observations import Sighting

CARD = (
    '<figure class="shot" data-raw="{raw}" data-raw-small="{raw_fine}" data-masked="{masked}"'
    ' data-origin="{origin}" data-prompt="{prompt}"{seed}>\n'
    '  <a class="frame" href="{page}"><img src="{small}" srcset="{small} 160w, {fine} 320w" sizes="160px"'
    ' alt="{alt}, masked, activation {activation}" width="160" height="160" loading="lazy" decoding="async"></a>\n'
    '  <figcaption>\n    <span class="title" title="{title}">{shown}</span>\n'
    '    <span class="measure"><span class="activation">{activation}</span>{bar}</span>{claim}\n'
    "  </figcaption>\n</figure>\n"
)
PAIR = (
    '<div class="pair">{before}<div class="change {direction}"><span aria-hidden="true">→</span><b>{change}</b></div>'
    "{after}</div>"
)
SIGHTING = (
    '<div class="sighting{two}">\n  {cards}\n  <p class="where"><a href="{run}?at={seq}#e{seq}"'
    ' title="{system}: the event in the transcript">Run {pk} #{seq}</a> <a class="system" href="{experiment}"'
    ' title="Experiment {number}" data-says="Experiment {number}">{short}</a></p>\n</div>'
)
BAR = '<svg class="bar" viewBox="{window}" preserveAspectRatio="none" aria-hidden="true"{threshold}>{full}{tick}</svg>'
FULL = '<rect class="full" x="{}" y="0" width="{}" height="1"/>'
TICK = '<line class="tick" x1="{0}" x2="{0}" y1="0" y2="1"/>'
DIFFERS = (
    '\n    <span class="claim differs" title="The program logged another number than the system returned.">'
    "logged as {}</span>"
)
UNMEASURED = SafeString(
    '\n    <span class="claim" title="What the program logged; what the system returned is not known.">as logged</span>'
)
NOTHING = SafeString("")


class Claim(Protocol):
    """An image as far as its claim is concerned."""

    @property
    def claimed(self) -> float | None: ...
    @property
    def measured(self) -> bool: ...
    @property
    def differs(self) -> bool: ...
    @property
    def origin(self) -> str: ...


def card(shot: Shot, scale: Scale) -> SafeString:
    """One image with its title, activation and bar."""
    raw = Addresses.of(shot.image)
    masked = raw if shot.masked == shot.image else Addresses.of(shot.masked)
    return format_html(
        CARD,
        raw=raw.file,
        raw_fine=raw.fine,
        page=raw.page,
        masked=masked.file,
        small=masked.small,
        fine=masked.fine,
        origin=shot.origin,
        prompt=shot.prompt,
        seed=NOTHING if shot.seed is None else format_html(' data-seed="{}"', shot.seed),
        alt=shot.title or "untitled image",
        title=shot.title,
        shown=shot.title or "untitled",
        activation=figure(shot.activation),
        bar=bar(shot.activation, scale),
        claim=claim(shot),
    )


def claim(shot: Claim) -> SafeString:
    """What the program said of the image, where that is not what the system returned or nobody knows."""
    if shot.differs and shot.claimed is not None:
        return format_html(DIFFERS, figure(shot.claimed))
    return NOTHING if shot.measured or shot.origin == "exemplar" else UNMEASURED


def sighting(seen: Sighting, names: Names) -> SafeString:
    """The card of the gallery: an edit beside its original, and where it was logged."""
    row, after = seen.row, card(seen.shot, seen.scale)
    cards = after if seen.before is None else pair(card(seen.before, seen.scale), after, seen.shot)
    run, logged = row.run, row.experiment
    page = reverse("run", args=[row.run_id])
    return format_html(
        SIGHTING,
        two=" two" if seen.before else "",
        cards=cards,
        run=page,
        pk=row.run_id,
        seq=logged.seq,
        system=names.of(run),
        experiment=f"{page}experiments/{logged.number}/",
        number=logged.number,
        short=names.short(run),
    )


def pair(before: SafeString, after: SafeString, edit: Shot) -> SafeString:
    """Two cards with what the edit between them did to the activation."""
    return format_html(PAIR, before=before, after=after, direction=edit.direction, change=change(edit.change or 0.0))


def bar(activation: float, scale: Scale) -> SafeString:
    """An activation on the run's own scale, with a tick at the exemplar threshold."""
    start, length = (activation, -activation) if activation < 0 else (0.0, activation)
    full = tick = threshold = NOTHING
    if math.isfinite(activation):
        full = format_html(FULL, f"{start:g}", f"{length:g}")
    if scale.threshold is not None:
        threshold = format_html(' data-threshold="{}"', digits(scale.threshold))
        tick = format_html(TICK, f"{scale.threshold:.6g}")
    return format_html(BAR, window=scale.view_box, threshold=threshold, full=full, tick=tick)
