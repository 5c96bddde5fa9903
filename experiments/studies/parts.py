"""Show the parts of a study: a unit with its exemplars, its label and the label check; a run with its answer. The
same for the team, by link and in files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from django.utils.safestring import SafeString

from experiments.core.system_names import SystemNameMasker
from experiments.core.thumbnails import ImageUrls
from experiments.display.answers import render_answer
from experiments.display.image_cards import ImageCard, ImageSource
from experiments.display.label_checks import fetch_checks
from experiments.display.plots import Scale
from experiments.models import Exemplar, Label, LabelCheck, Run, StudyItem
from experiments.studies.lists import find_item_pictures
from experiments.units.tiles import UnitTile, read_tiles
from workers.record import tasks
from workers.record.events import Audience

PAGE_SIZE = 20
"""Parts of a page."""
EXEMPLARS = 6
"""Exemplars of a unit that are shown."""
RunAddress = Callable[[Run], str]


@dataclass(frozen=True)
class UnitPart:
    """A unit. `check` is that of its current label; `dataset` is the source of the exemplars."""

    tile: UnitTile
    check: LabelCheck | None
    cards: Sequence[ImageCard]
    scale: Scale
    dataset: str


@dataclass(frozen=True)
class RunPart:
    run: Run
    answer: SafeString
    system: str
    task: str
    address: str
    """Address of its transcript."""
    check: LabelCheck | None


@dataclass(frozen=True)
class StudyPart:
    """An item of a study; without `unit` and `run`, its unit is no longer in the catalogue."""

    item: StudyItem
    number: int
    picture: str
    """Address of its small picture; "" if it has none."""
    unit: UnitPart | None = None
    run: RunPart | None = None

    @property
    def label(self) -> str:
        """Return its label; "" if unknown."""
        if self.run:
            labels = self.run.run.labels
            return labels[0] if labels else ""
        return self.unit.tile.label.text if self.unit and self.unit.tile.label else ""

    @property
    def check(self) -> LabelCheck | None:
        """Return the check of its label."""
        part = self.run or self.unit
        return part.check if part else None


@dataclass(frozen=True)
class StudyReader:
    """The reader of a study, and the source of its images; for the team, images are at their own addresses."""

    names: SystemNameMasker
    audience: Audience
    find_run_address: RunAddress
    pictures: ImageSource | None = None
    hides_checks: frozenset[int] = frozenset()
    """Runs whose label check is hidden from the reader."""


def draw_parts(items: Sequence[StudyItem], reader: StudyReader, first: int = 1) -> list[StudyPart]:
    """Return the parts of these items, counted from `first`."""
    pictures = find_item_pictures(items, reader.names)
    keys = [each.run_id for each in items if each.run_id]
    runs = Run.objects.select_related("owner", "label_check").in_bulk(keys)
    units = _read_units(items, reader.names)
    found = []
    for number, item in enumerate(items, first):
        run = runs.get(item.run_id) if item.run_id else None
        picture = _address_of(pictures.get(item.pk, ""), reader.pictures)
        found.append(
            StudyPart(item, number, picture, units.get(item.pk), _draw_run(run, reader) if run else None),
        )
    return found


def _address_of(key: str, pictures: ImageSource | None) -> str:
    if not key:
        return ""
    # A link and a folder have addresses of their own; the team's are those of the site.
    return pictures.small(key) if pictures else ImageUrls.of(key).small


def _draw_run(run: Run, reader: StudyReader) -> RunPart:
    # The reader has still to judge the run: neither check nor score may show.
    judges = run.pk in reader.hides_checks
    answer = render_answer(run, reader.names, reader.audience, reader.pictures, acts=False, judges=judges)
    # A run without labels may keep the check of an earlier answer.
    check = None if judges or not run.labels else run.label_check
    return RunPart(run, answer, reader.names.of(run), tasks.label(run.task), reader.find_run_address(run), check)


def _read_units(items: Sequence[StudyItem], names: SystemNameMasker) -> Mapping[int, UnitPart]:
    """Return units by key of the item, in a constant number of queries."""
    placed = [(each, each.place) for each in items if each.place]
    tiles = read_tiles([place for _, place in placed if place], names)
    keys = [tile.label.key for tile in tiles if tile.label]
    labels = Label.objects.filter(pk__in=keys).prefetch_related(fetch_checks()).in_bulk()
    exemplars = _find_exemplars([each.unit_id for each, _ in placed if each.unit_id])
    found = {}
    for (item, _), tile in zip(placed, tiles, strict=True):
        rows = exemplars.get(item.unit_id or 0, [])
        scale = Scale.of((row.activation for row in rows), None)
        check = labels[tile.label.key].label_check if tile.label and tile.label.key in labels else None
        dataset = rows[0].profile.dataset.label if rows else ""
        found[item.pk] = UnitPart(tile, check, [ImageCard.exemplar(row) for row in rows], scale, dataset)
    return found


def _find_exemplars(units: Sequence[int]) -> dict[int, list[Exemplar]]:
    """Return by key of the unit its first exemplars, over the dataset over which it was measured first."""
    # Activations over two datasets have no common order: only the first profile's exemplars are shown.
    rows = Exemplar.objects.filter(profile__unit__in=units, rank__lte=EXEMPLARS)
    found: dict[int, list[Exemplar]] = {}
    for row in rows.select_related("profile__dataset").order_by("profile_id", "rank"):
        some = found.setdefault(row.profile.unit_id, [])
        if not some or some[0].profile_id == row.profile_id:
            some.append(row)
    return found
