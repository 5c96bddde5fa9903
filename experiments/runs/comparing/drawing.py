"""Draw runs side by side: their activations as strips on one axis, and their exemplars and best images in rows.

The number of queries depends on neither the runs nor what they logged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from django.db.models import F, Window
from django.db.models.functions import RowNumber
from django.urls import reverse

from experiments.core.thumbnails import picture_of
from experiments.display.image_cards import CARD_FIELDS, ImageCard
from experiments.display.plots import Level, Plot, PlotLine, PlotValue, Scale, ValueGroup, draw_groups
from experiments.models import Observation, Run
from workers.record.figures import figure

MAX_STRIP_IMAGES = 3_000
"""Images of a run that its strip takes, the strongest."""
MAX_ROW_IMAGES = 5
"""Images of a run in a row."""
LOOKED_AT = 60
"""Observations among which these are looked for: programs log the same image again and again."""


@dataclass(frozen=True)
class ImageRow:
    """The same kind of image of every run, each with the scale that its bars are drawn on."""

    name: str
    cells: Sequence[tuple[Run, Scale, Sequence[ImageCard]]]


def draw_activations(runs: Sequence[Run]) -> Plot | None:
    """Draw a strip of dots for each run that logged images, and a line if all have one exemplar threshold."""
    values = _list_values(runs)
    groups = [ValueGroup(f"Run {run.pk}", f"part-{place % 6}", values[run.pk]) for place, run in enumerate(runs)]
    # Runs on one unit and dataset share a threshold; others get a mark on each strip.
    thresholds = {run.exemplar_mean for run in runs}
    one = next(iter(thresholds)) if len(thresholds) == 1 else None
    level = Level(one, "Exemplar threshold") if one is not None else None
    plot = draw_groups(groups, f"Activations of {len(runs)} runs on one axis", "Activation", level=level)
    if plot is None:
        return None
    cut = [str(run.pk) for run in runs if run.observation_count > MAX_STRIP_IMAGES]
    if cut:
        plot.note = f"Of run {', '.join(cut)} the strongest {MAX_STRIP_IMAGES:,} images are drawn, and counted here."
    if one is None:
        _mark_thresholds(plot, [run for run, group in zip(runs, groups, strict=True) if group.numbers])
    return plot


def _list_values(runs: Sequence[Run]) -> Mapping[int, list[PlotValue]]:
    """Return what each run logged, the strongest first, with a single query."""
    place = Window(RowNumber(), partition_by=F("run"), order_by=[F("activation").desc(), F("pk").desc()])
    rows = Observation.objects.filter(run__in=runs).annotate(place=place).filter(place__lte=MAX_STRIP_IMAGES)
    found: dict[int, list[PlotValue]] = {run.pk: [] for run in runs}
    columns = ("run", "activation", "title", "experiment__number", "image_id")
    for run, value, title, number, image in rows.order_by("run", "place").values_list(*columns):
        link = reverse("experiment", args=[run, number])
        found[run].append(PlotValue(value, f"Run {run}, {title or 'untitled'}", link, picture_of(image)))
    return found


def _mark_thresholds(plot: Plot, runs: Sequence[Run]) -> None:
    """Draw each run's own threshold, on its strip."""
    height = (plot.shape.floor - plot.shape.top) / len(runs)
    told = []
    for place, run in enumerate(runs):
        if run.exemplar_mean is not None:
            at, top = plot.x.at(run.exemplar_mean), plot.shape.top + height * place
            plot.lines.append(PlotLine(at, at, top + height * 0.35, top + height, "upright"))
            told.append(f"run {run.pk} {figure(run.exemplar_mean)}")
    if told:
        plot.note = f"{plot.note} Dashed: each run's exemplar threshold: {', '.join(told)}.".strip()


def read_images(runs: Sequence[Run]) -> list[ImageRow]:
    """Return rows of exemplars that the runs looked at, and of the strongest images that they made; no empty rows."""
    # One scale for all, so that bars can be compared from run to run.
    ends = [run.best_activation for run in runs]
    scales = {run.pk: Scale.of([*ends, *(each.exemplar_mean for each in runs)], run.exemplar_mean) for run in runs}
    found = []
    for name, is_exemplar in (("Exemplars", True), ("Top generated images", False)):
        cards = _read_cards(runs, is_exemplar=is_exemplar)
        if any(cards.values()):
            found.append(ImageRow(name, [(run, scales[run.pk], cards.get(run.pk, [])) for run in runs]))
    return found


def _read_cards(runs: Sequence[Run], *, is_exemplar: bool) -> Mapping[int, Sequence[ImageCard]]:
    """Return the strongest images of each run, each image once, with a single query."""
    rows = Observation.objects.filter(run__in=runs)
    rows = rows.filter(origin="exemplar") if is_exemplar else rows.exclude(origin="exemplar")
    place = Window(RowNumber(), partition_by=F("run"), order_by=[F("activation").desc(), F("pk").desc()])
    strongest = rows.annotate(place=place).filter(place__lte=LOOKED_AT).only("run", *CARD_FIELDS)
    found: dict[int, list[ImageCard]] = defaultdict(list)
    for run, some in groupby(strongest.order_by("run", "place"), lambda row: row.run_id):
        # Weakest first: of the rows of one image, the strongest is kept.
        cards = {row.image_id: ImageCard.from_row(row) for row in reversed(list(some))}
        found[run] = sorted(cards.values(), key=lambda card: -card.activation)[:MAX_ROW_IMAGES]
    return found
