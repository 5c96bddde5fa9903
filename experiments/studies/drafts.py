"""Check the items that people choose for a study, and turn them into rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from django.http import QueryDict

from experiments.core.errors import InvalidInput
from experiments.core.params import clean_text, parse_key
from experiments.core.visibility import visible_to
from experiments.models import Layer, Run, StudyItem, Unit
from experiments.units.chosen import read_places

MAX_ITEMS = 200
MAX_CAPTION = 1_000
MAX_CHOSEN = 1_000
"""Maximum runs that are read from an address or a form."""
Place = tuple[Layer, int]
Key = tuple[int | None, str, str, int | None]
"""What identifies an item: its run, or model, layer and number."""


@dataclass(frozen=True)
class ItemDraft:
    """A run, or a unit by layer and number, with its caption."""

    run: Run | None = None
    place: Place | None = None
    caption: str = ""

    @property
    def key(self) -> Key:
        if self.run is not None:
            return self.run.pk, "", "", None
        # For the type checker: the class has no invariant of its own.
        assert self.place is not None, "a draft has a run or a unit"
        layer, number = self.place
        return None, layer.model.name, layer.name, number


def key_of(item: StudyItem) -> Key:
    return item.run_id, item.model, item.layer, item.number


def read_drafts(given: QueryDict) -> list[ItemDraft]:
    """Return the units and runs that a form or an address names, each once. Units as `read_places` reads them; runs
    as `run`, one or several separated by commas. Missing and hidden ones are left out."""
    # The address of a filtered list of runs may name very many.
    typed = [each for text in given.getlist("run") for each in text.split(",")][:MAX_CHOSEN]
    keys = list(dict.fromkeys(filter(None, map(parse_key, typed))))
    known = visible_to(Run.objects.filter(pk__in=keys)).in_bulk()
    runs = [ItemDraft(run=known[key]) for key in keys if key in known]
    return [*(ItemDraft(place=place) for place in read_places(given)), *runs]


def find_fresh(drafts: Iterable[ItemDraft], there: Collection[Key]) -> list[ItemDraft]:
    """Return those that are not there yet, each once."""
    # A dictionary drops repeats and keeps the order.
    return list({each.key: each for each in drafts if each.key not in there}.values())


def build_items(drafts: Sequence[ItemDraft], after: int = 0) -> list[StudyItem]:
    """Return rows without their study, at the positions that follow. Raises InvalidInput."""
    units = _find_units([each.place for each in drafts if each.place])
    return [_build_item(each, position, units) for position, each in enumerate(drafts, after + 1)]


def _build_item(draft: ItemDraft, position: int, units: dict[tuple[int, int], Unit]) -> StudyItem:
    row = StudyItem(position=position, caption=check_caption(draft.caption), run=draft.run)
    if draft.place:
        layer, number = draft.place
        row.unit, row.number = units[layer.pk, number], number
        # Names are copied: the item still says what it was when its model is deleted.
        row.model, row.layer = layer.model.name, layer.name
    return row


def _find_units(places: Sequence[Place]) -> dict[tuple[int, int], Unit]:
    """Return the rows of these units by layer and number; missing rows are created."""
    # With `ignore_conflicts` Django sets no keys, so the rows are read afterwards.
    Unit.objects.bulk_create([Unit(layer=layer, number=number) for layer, number in places], ignore_conflicts=True)
    rows = Unit.objects.filter(layer__in={layer.pk for layer, _ in places}, number__in={number for _, number in places})
    return {(row.layer_id, row.number): row for row in rows}


def check_size(count: int) -> None:
    """Raise InvalidInput for more items than the maximum."""
    if count > MAX_ITEMS:
        raise InvalidInput(f"A study has at most {MAX_ITEMS} items, not {count:,}.", "items")


def check_caption(text: str) -> str:
    """Raise InvalidInput for a caption that is too long."""
    caption = clean_text(text).strip()
    if len(caption) > MAX_CAPTION:
        words = f"A caption has {len(caption):,} characters; an item takes at most {MAX_CAPTION:,}."
        raise InvalidInput(words, "caption")
    return caption
