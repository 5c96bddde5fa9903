"""Draw image cards as HTML: raw, masked and as a heat map, with title, activation and bar; edits beside their original.
The style sheet decides by the page's `data-images` which picture is visible."""

from __future__ import annotations

import math
from collections.abc import Sequence

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from experiments.core.thumbnails import ImageUrls
from experiments.display.image_cards import ImageCard, ImageSource
from experiments.display.plots import Scale
from experiments.models import Observation
from workers.record.experiments import ActivationMap
from workers.record.figures import change, figure, format_activation, is_same

HEAT_STEPS = 20
"""Steps of a heat map's strength relative to the others on the page; classes of the style sheet."""
CARD = (
    '<figure class="image-card" data-raw="{raw}" data-masked="{masked}"{map}'
    ' data-origin="{origin}" data-prompt="{prompt}"{seed}{original}>\n'
    '  <a class="frame" href="{page}">{pictures}</a>\n'
    '  <figcaption>\n    <span class="title" title="{title}">{shown}</span>\n'
    '    <span class="measure"><span class="activation">{activation}</span>{bar}</span>{claim}\n'
    "  </figcaption>\n</figure>\n"
)
SKETCH = (
    '<figure class="image-card"><span class="frame"></span><figcaption><span class="title">{}</span>'
    '<span class="measure"><span class="activation">{}</span></span>{}</figcaption></figure>\n'
)
"""As high as the card, with all its words, before its picture is loaded: a third of a card is addresses."""
THUMB = (
    '<img{kind} src="{small}" srcset="{small} 160w, {fine} 320w" sizes="160px"'
    ' alt="{alt}" width="160" height="160" loading="lazy" decoding="async">'
)
HEAT = (
    '<span class="heat at-{step}"><img src="{file}" alt="" width="160" height="160" loading="lazy" decoding="async">'
    "</span>"
)
MAP = ' data-map="{}" data-low="{}" data-high="{}" data-threshold="{}" data-top="{}"'
OUTSIDE = (
    '<figure tabindex="0">{frame}<figcaption><span class="title">{title}</span><span class="measure">'
    '<span class="activation">{activation}</span>{bar}</span>{claim}<span class="muted">{made}</span>'
    "</figcaption></figure>\n"
)
PICTURE = '<img{} src="{}" alt="{}" loading="lazy">'
WARM = '<span class="heat at-{}"><img src="{}" alt="" loading="lazy"></span>'
LINKED, FRAMED = '<a class="frame" href="{}">{}{}</a>', '<div class="frame">{}{}</div>'
UNSEEN = SafeString('<span class="skeleton"></span>')
EDITS = (
    '<div class="edits {size}"><div class="before"><p class="edit-head">Original</p>{before}</div>'
    '<div class="after-images">{afters}</div></div>'
)
AFTER = (
    '<div class="after"><p class="edit-head change {}" title="What the edit did to the activation">'
    '<span aria-hidden="true">→</span><b>{}</b></p>{}</div>'
)
BAR = '<svg class="bar" viewBox="{window}" preserveAspectRatio="none" aria-hidden="true"{mean}>{full}{tick}</svg>'
FULL = '<rect class="full" x="{}" y="0" width="{}" height="1"/>'
TICK = '<line class="tick" x1="{0}" x2="{0}" y1="0" y2="1"/>'
DIFFERS = (
    '\n    <span class="claim mismatch" title="The program logged another number than the system returned.">'
    "logged as {}</span>"
)
UNMEASURED = SafeString(
    '\n    <span class="claim" title="What the program logged; what the system returned is not known.">as logged</span>'
)
NOTHING = SafeString("")
MASKED, RAW = SafeString(' class="masked"'), SafeString(' class="raw"')


def draw_card(
    card: ImageCard, scale: Scale, pictures: ImageSource | None = None, *, edited: bool = False, sketched: bool = False
) -> SafeString:
    """Draw one image with title, activation and bar; with `pictures` of their own for viewers outside the team.

    An `edited` image beside its original is titled with the editor's instruction.
    """
    title = (card.prompt or card.title) if edited else card.title
    if sketched:
        return format_html(SKETCH, title or "untitled", figure(card.activation), draw_claim(card))
    if pictures:
        return _draw_outside(card, title, scale, pictures)
    raw = ImageUrls.of(card.image)
    return format_html(
        CARD,
        raw=raw.file,
        page=raw.page,
        # Without a mask, both addresses are equal, which the script recognises.
        masked=raw.file if card.masked == card.image else ImageUrls.of(card.masked).file,
        map=_describe_map(card, scale),
        pictures=_draw_pictures(card, raw, scale),
        origin=card.origin,
        prompt=card.prompt,
        seed=NOTHING if card.seed is None else format_html(' data-seed="{}"', card.seed),
        original=format_html(' data-original="{}"', ImageUrls.of(card.original).file) if card.original else NOTHING,
        title=card.title,
        shown=title or "untitled",
        activation=figure(card.activation),
        bar=draw_bar(card.activation, scale),
        claim=draw_claim(card),
    )


def _draw_pictures(card: ImageCard, raw: ImageUrls, scale: Scale) -> SafeString:
    """Draw the image in all views; the browser loads only what is visible."""
    alt, number = card.title or "untitled image", figure(card.activation)
    plain = {"small": raw.small, "fine": raw.fine, "alt": f"{alt}, activation {number}"}
    if card.masked == card.image:
        found = format_html(THUMB, kind=NOTHING, **plain)
    else:
        masked = ImageUrls.of(card.masked)
        said = f"{alt}, masked, activation {number}"
        found = format_html(THUMB, kind=MASKED, small=masked.small, fine=masked.fine, alt=said)
        found += format_html(THUMB, kind=RAW, **plain)
    if card.map:
        found += format_html(HEAT, step=_heat_step(card, card.map, scale), file=ImageUrls.of(card.map.image).file)
    return found


def _describe_map(card: ImageCard, scale: Scale) -> SafeString:
    """Return what the light box needs of the activation map."""
    known = card.map
    if known is None:
        return NOTHING
    # Six digits are more than a pixel can show.
    numbers = [f"{each:.6g}" for each in (known.low, known.high, known.threshold, _heat_top(card, known, scale))]
    return format_html(MAP, ImageUrls.of(known.image).file, *numbers)


def _heat_top(card: ImageCard, known: ActivationMap, scale: Scale) -> float:
    """Return the highest activation of the page, or the map's own maximum if it has another scale."""
    return max(scale.high, known.high) if is_same(known.high, card.activation) else known.high


def _heat_step(card: ImageCard, known: ActivationMap, scale: Scale) -> int:
    """Return the image's maximum, in steps of the page's maximum."""
    # A flat map has no span.
    span = _heat_top(card, known, scale) - known.low
    share = (known.high - known.low) / span if span > 0 else 0.0
    # In steps, since the policy of pages allows no inline style.
    return round(HEAT_STEPS * min(max(share, 0.0), 1.0)) if math.isfinite(share) else 0


def _draw_outside(card: ImageCard, title: str, scale: Scale, pictures: ImageSource) -> SafeString:
    """Draw the card without links into the site; pointing at the masked image shows the image itself."""
    alt, others = card.title or "untitled image", NOTHING
    masked = pictures.small(card.masked)
    small = format_html(PICTURE, NOTHING, masked, alt) if masked else UNSEEN
    if card.masked != card.image:
        others = format_html(PICTURE, RAW, pictures.small(card.image), "the same, not masked")
    if card.map and (grey := pictures.small(card.map.image)):
        others += format_html(WARM, _heat_step(card, card.map, scale), grey)
    whole = pictures.whole(card.masked)
    frame = format_html(LINKED, whole, small, others) if whole else format_html(FRAMED, small, others)
    # Outside the team there is no light box that would show the whole prompt.
    made = f": {card.prompt[:300]}" if card.prompt and card.prompt != title else ""
    return format_html(
        OUTSIDE,
        frame=frame,
        title=title or "untitled",
        activation=figure(card.activation),
        bar=draw_bar(card.activation, scale),
        claim=draw_claim(card),
        made=f"{card.origin}{made}" + ("" if card.seed is None else f" · seed {card.seed}"),
    )


def draw_edits(
    before: ImageCard,
    edits: Sequence[ImageCard],
    scale: Scale,
    pictures: ImageSource | None = None,
    *,
    sketched: bool = False,
) -> SafeString:
    """Draw an image with its edits, each with its change of the activation."""
    drawn = (
        (
            each.direction,
            change(each.change or 0.0),
            draw_card(each, scale, pictures, edited=True, sketched=sketched),
        )
        for each in edits
    )
    return format_html(
        EDITS,
        size="single" if len(edits) == 1 else "several",
        before=draw_card(before, scale, pictures, sketched=sketched),
        afters=format_html_join("", AFTER, drawn),
    )


def draw_pair(before: ImageCard, after: ImageCard, scale: Scale, pictures: ImageSource | None = None) -> SafeString:
    """Draw an edit beside its original, with its change of the activation."""
    return draw_edits(before, [after], scale, pictures)


def draw_claim(card: ImageCard | Observation) -> SafeString:
    """Draw what the program logged, if the system returned another value or it is unknown."""
    if card.differs and card.claimed is not None:
        return format_html(DIFFERS, figure(card.claimed))
    # Exemplars come from the dataset's index, so no program claimed them.
    return NOTHING if card.measured or card.origin == "exemplar" else UNMEASURED


def draw_bar(activation: float, scale: Scale) -> SafeString:
    """Draw an activation on the run's own scale, with a tick at the exemplar threshold."""
    # SVG has no negative widths.
    start, length = (activation, -activation) if activation < 0 else (0.0, activation)
    full = tick = mean = NOTHING
    if math.isfinite(activation):
        full = format_html(FULL, f"{start:g}", f"{length:g}")
    if scale.exemplar_mean is not None:
        mean = format_html(' data-exemplar-mean="{}"', format_activation(scale.exemplar_mean))
        tick = format_html(TICK, f"{scale.exemplar_mean:.6g}")
    return format_html(BAR, window=scale.view_box, mean=mean, full=full, tick=tick)
