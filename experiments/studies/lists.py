"""List studies, and the items of a study that a reader may see."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db.models import Count, Q, QuerySet

from experiments.api.fields import Words
from experiments.core.system_names import SystemNameMasker
from experiments.core.visibility import visible_to
from experiments.display.narrowing import Filter, Narrowed, contain_words, index_filters, narrow_down
from experiments.display.run_pictures import find_pictures
from experiments.models import Exemplar, Layer, Role, Run, Study, StudyItem
from experiments.units.tiles import read_tiles

MAX_STUDIES = 200
"""Maximum studies that a form offers, the newest."""
ROW_PICTURES = 4
"""Items of a study whose pictures are in its row of the list."""
FILTERS = index_filters(
    Filter("q", "Words", contain_words("title"), Words, "words of the title", in_fields=False),
)
"""By name in the address, for the page and the API."""


@dataclass(frozen=True)
class StudySummary:
    """A study in the list; `pictures` are keys of images."""

    row: Study
    size: int
    pictures: Sequence[str]


def studies_from(params: Mapping[str, str]) -> Narrowed:
    """Return the studies that an address selects, newest first."""
    return narrow_down(list_studies(), params, FILTERS)


def list_studies() -> QuerySet[Study]:
    """Return studies, newest first."""
    return Study.objects.select_related("owner").annotate(size=Count("items"))


def list_studies_for(user: User, role: Role | None) -> QuerySet[Study]:
    """Return the studies that a user may change."""
    rows = list_studies()
    return (rows if role == Role.ADMIN else rows.filter(owner=user))[:MAX_STUDIES]


def list_studies_of(layer: Layer, number: int) -> QuerySet[Study]:
    """Return the studies that contain a unit, newest first."""
    rows = Study.objects.filter(items__unit__layer=layer, items__unit__number=number)
    # The join would list a study once for each matching item.
    return rows.distinct()[:MAX_STUDIES]


def draw_rows(rows: Iterable[Study], names: SystemNameMasker) -> list[StudySummary]:
    """Return rows of the list, with the same number of queries for a page as for one."""
    some = list(rows)
    # By position: the first items of all studies in one query.
    items = StudyItem.objects.filter(study__in=some, position__lte=ROW_PICTURES)
    shown = _hold_back(list(items.select_related("unit__layer__model").order_by("study", "position", "pk")), names)
    pictures = find_item_pictures(shown, names)
    # Without the default order, which would become part of the grouping.
    counted = StudyItem.objects.filter(study__in=some).order_by().values_list("study").annotate(Count("pk"))
    sizes = dict(counted)
    return [StudySummary(row, sizes.get(row.pk, 0), _choose(row, shown, pictures)) for row in some]


def _choose(row: Study, items: Sequence[StudyItem], pictures: dict[int, str]) -> list[str]:
    return [pictures[each.pk] for each in items if each.study_id == row.pk and each.pk in pictures]


def find_item_pictures(items: Sequence[StudyItem], names: SystemNameMasker) -> dict[int, str]:
    """Return by key of the item its picture: the first exemplar of a unit, masked; the strongest image of a run."""
    runs = find_pictures(each.run_id for each in items if each.run_id)
    tiles = read_tiles(list(dict.fromkeys(each.place for each in items if each.place)), names)
    units = {(each.layer.pk, each.number): each.pictures[0].masked for each in tiles if each.pictures}
    found = {}
    for each in items:
        key = runs[each.run_id].key if each.run_id and each.run_id in runs else ""
        if each.place:
            key = units.get((each.place[0].pk, each.place[1]), "")
        if key:
            found[each.pk] = key
    return found


# --- visible items ---


def list_items(study: Study, names: SystemNameMasker) -> list[StudyItem]:
    """Return the items of a study in order, without those that are hidden from the reader of these names."""
    return _hold_back(list(study.items.select_related("unit__layer__model")), names)


def _hold_back(items: Sequence[StudyItem], names: SystemNameMasker) -> list[StudyItem]:
    """Leave out hidden runs, and units whose name is an answer that people have yet to judge."""
    keys = {each.run_id for each in items if each.run_id}
    visible = set(visible_to(Run.objects.filter(pk__in=keys)).order_by().values_list("pk", flat=True))
    return [each for each in items if (each.run_id in visible if each.run_id else not _is_held_back(each, names))]


def _is_held_back(item: StudyItem, names: SystemNameMasker) -> bool:
    # By the names that the item keeps, and by the place of its unit, which may have been renamed since.
    if names.masks_unit(item.model, item.layer, item.number or 0):
        return True
    return item.place is not None and names.masks_unit(item.place[0].model.name, item.place[0].name, item.place[1])


def find_run(study: Study, pk: int) -> Run | None:
    """Return a run of a study, for its readers."""
    rows = Run.objects.filter(pk=pk, study_items__study=study).select_related("owner")
    return visible_to(rows).first()


def list_runs(study: Study) -> QuerySet[Run]:
    """Return the runs of a study that its readers may see."""
    return visible_to(Run.objects.filter(study_items__study=study).order_by())


def has_exemplar(study: Study, key: str, names: SystemNameMasker) -> bool:
    """True if the image is an exemplar, raw, masked or as a map, of a unit in the study that readers may see."""
    units = [each.unit_id for each in list_items(study, names) if each.unit_id]
    # Keys are hashes of pixels: the same image elsewhere has the same key, so only exemplars of these units count.
    same = Q(image=key) | Q(masked=key) | Q(map=key)
    return Exemplar.objects.filter(same, profile__unit__in=units).exists()
