"""Images as cards with title, activation and bar: what a card shows, which images come first, and its HTML.

A page shows a hundred of them. Each is one string whose values are escaped, not a template that includes templates:
that took most of a page's time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import Protocol, TypeVar

from django.db.models import Q, QuerySet
from django.utils.html import format_html
from django.utils.safestring import SafeString

from experiments.core.thumbnails import ImageUrls
from experiments.display.plots import Scale
from experiments.models import Observation, Run
from workers.record.experiments import Observation as Logged
from workers.record.figures import change, figure, format_activation, is_same

T = TypeVar("T")

CARD_FIELDS = (
    *("title", "activation", "image", "masked", "origin", "prompt", "seed"),
    *("original", "change", "claimed", "measured", "differs"),
)
"""What a card takes of an observation."""
STRONGEST = 5
"""Images that stand beside a conclusion."""
REPEATED = 10
"""Rows read for each image that is wanted: programs log the same image again and again."""
CARD = (
    '<figure class="image-card" data-raw="{raw}" data-raw-small="{raw_fine}" data-masked="{masked}"'
    ' data-origin="{origin}" data-prompt="{prompt}"{seed}>\n'
    '  <a class="frame" href="{page}"><img src="{small}" srcset="{small} 160w, {fine} 320w" sizes="160px"'
    ' alt="{alt}, masked, activation {activation}" width="160" height="160" loading="lazy" decoding="async"></a>\n'
    '  <figcaption>\n    <span class="title" title="{title}">{shown}</span>\n'
    '    <span class="measure"><span class="activation">{activation}</span>{bar}</span>{claim}\n'
    "  </figcaption>\n</figure>\n"
)
OUTSIDE = (
    '<figure tabindex="0">{frame}<figcaption><span class="title">{title}</span><span class="measure">'
    '<span class="activation">{activation}</span>{bar}</span>{claim}<span class="quiet">{made}</span>'
    "</figcaption></figure>\n"
)
PICTURE = '<img class="{}" src="{}" alt="{}" width="160" height="160" loading="lazy">'
LINKED, FRAMED = '<a class="frame" href="{}">{}{}</a>', '<div class="frame">{}{}</div>'
UNSEEN = SafeString('<span class="skeleton"></span>')
PAIR = (
    '<div class="pair">{before}<div class="change {direction}"><span aria-hidden="true">→</span><b>{change}</b></div>'
    "{after}</div>"
)
BAR = '<svg class="bar" viewBox="{window}" preserveAspectRatio="none" aria-hidden="true"{mean}>{full}{tick}</svg>'
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


@dataclass(frozen=True)
class ImageCard:
    """One logged image. `change` is what an edit did to the activation; None for all that is no edit."""

    title: str
    activation: float
    image: str
    masked: str
    origin: str
    prompt: str
    seed: int | None
    original: str = ""
    change: float | None = None
    claimed: float | None = None
    """What the program logged; None if it named no number."""
    measured: bool = False
    """Whether `activation` is what the system returned; else it is what the program claimed."""
    differs: bool = False

    @classmethod
    def from_log(cls, logged: Logged) -> ImageCard:
        """An observation of an event."""
        given = ("title", "activation", "image", "origin", "prompt", "seed", "claimed", "measured", "differs")
        known = {name: getattr(logged, name) for name in given}
        return cls(**known, masked=logged.masked or logged.image, original=logged.original or "")

    @classmethod
    def from_row(cls, row: Observation) -> ImageCard:
        """An observation as the database has it."""
        same = {name: getattr(row, name) for name in CARD_FIELDS if name not in {"image", "masked"}}
        return cls(**same, image=row.image_id, masked=row.masked_id or row.image_id)

    @classmethod
    def exemplar(cls, rank: int, activation: float, image: str, masked: str) -> ImageCard:
        """An image of a dataset, which no run has logged."""
        return cls(f"Exemplar {rank}", activation, image, masked, "exemplar", "", None)

    @property
    def direction(self) -> str:
        """Which way the edit moved it: "up", "down", or "same"."""
        change = self.change or 0.0
        if is_same(self.activation - change, self.activation):
            return "same"
        return "up" if change > 0 else "down"


@dataclass(frozen=True)
class LoggedImage:
    """An image, and the numbers of the run, the experiment and the round that logged it."""

    card: ImageCard
    run: int
    experiment: int
    round: int

    @classmethod
    def from_row(cls, row: Observation) -> LoggedImage:
        return cls(ImageCard.from_row(row), row.experiment.run_id, row.experiment.number, row.experiment.round)


class ImageSource(Protocol):
    """Where those who may not enter the site find its images."""

    def small(self, key: str) -> str: ...

    def whole(self, key: str) -> str:
        """The image in full; "" if there is none."""
        ...


# --- which images -----------------------------------------------------------------------------------


def first_of_each(ordered: Iterable[T], image: Callable[[T], str], count: int) -> list[T]:
    """The first of these, each image once."""
    found: dict[str, T] = {}
    for each in ordered:
        found.setdefault(image(each), each)
        if len(found) == count:
            break
    return list(found.values())


def find_strongest(rows: QuerySet[Observation], count: int = STRONGEST) -> list[ImageCard]:
    """The images that excited the unit most, each once."""
    ordered = rows.order_by("-activation", "pk")[: count * REPEATED]
    return [ImageCard.from_row(row) for row in first_of_each(ordered, attrgetter("image_id"), count)]


def newest_logged(run: Run, experiments: int) -> QuerySet[Observation]:
    """What the newest experiments of the run logged, the last first."""
    # By way of the experiments: their index finds the newest at once, however much the run has logged.
    newest = Q(experiment__run=run, experiment__number__gt=run.experiment_count - experiments)
    return Observation.objects.filter(newest).order_by("-experiment__number", "-position")


# --- as HTML ----------------------------------------------------------------------------------------


def draw_card(card: ImageCard, scale: Scale, pictures: ImageSource | None = None) -> SafeString:
    """One image with its title, activation and bar; with `pictures` of their own for those who may not enter."""
    if pictures:
        return _draw_outside(card, scale, pictures)
    raw = ImageUrls.of(card.image)
    masked = raw if card.masked == card.image else ImageUrls.of(card.masked)
    return format_html(
        CARD,
        raw=raw.file,
        raw_fine=raw.fine,
        page=raw.page,
        masked=masked.file,
        small=masked.small,
        fine=masked.fine,
        origin=card.origin,
        prompt=card.prompt,
        seed=NOTHING if card.seed is None else format_html(' data-seed="{}"', card.seed),
        alt=card.title or "untitled image",
        title=card.title,
        shown=card.title or "untitled",
        activation=figure(card.activation),
        bar=draw_bar(card.activation, scale),
        claim=draw_claim(card),
    )


def _draw_outside(card: ImageCard, scale: Scale, pictures: ImageSource) -> SafeString:
    """The same without a way into the site; the image itself appears where somebody points at its masked one."""
    alt, raw = card.title or "untitled image", NOTHING
    small = format_html(PICTURE, "", pictures.small(card.masked), alt) if pictures.small(card.masked) else UNSEEN
    if card.masked != card.image:
        raw = format_html(PICTURE, "raw", pictures.small(card.image), "the same, not masked")
    whole = pictures.whole(card.masked)
    frame = format_html(LINKED, whole, small, raw) if whole else format_html(FRAMED, small, raw)
    made = f": {card.prompt[:300]}" if card.prompt else ""
    return format_html(
        OUTSIDE,
        frame=frame,
        title=card.title or "untitled",
        activation=figure(card.activation),
        bar=draw_bar(card.activation, scale),
        claim=draw_claim(card),
        made=f"{card.origin}{made}" + ("" if card.seed is None else f" · seed {card.seed}"),
    )


def draw_pair(before: ImageCard, after: ImageCard, scale: Scale, pictures: ImageSource | None = None) -> SafeString:
    """An edit beside its original, with what it did to the activation."""
    return format_html(
        PAIR,
        before=draw_card(before, scale, pictures),
        after=draw_card(after, scale, pictures),
        direction=after.direction,
        change=change(after.change or 0.0),
    )


def draw_claim(card: ImageCard | Observation) -> SafeString:
    """What the program said of the image, where that is not what the system returned or nobody knows."""
    if card.differs and card.claimed is not None:
        return format_html(DIFFERS, figure(card.claimed))
    return NOTHING if card.measured or card.origin == "exemplar" else UNMEASURED


def draw_bar(activation: float, scale: Scale) -> SafeString:
    """An activation on the run's own scale, with a tick at the exemplar mean."""
    start, length = (activation, -activation) if activation < 0 else (0.0, activation)
    full = tick = mean = NOTHING
    if math.isfinite(activation):
        full = format_html(FULL, f"{start:g}", f"{length:g}")
    if scale.exemplar_mean is not None:
        mean = format_html(' data-exemplar-mean="{}"', format_activation(scale.exemplar_mean))
        tick = format_html(TICK, f"{scale.exemplar_mean:.6g}")
    return format_html(BAR, window=scale.view_box, mean=mean, full=full, tick=tick)
