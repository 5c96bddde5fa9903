"""Find observations for the gallery, filtered, ordered and paged; and the list of experiments of all runs, each
with its strongest images.

Every order has an index with all filtered columns, so a page is found without reading rows. If one filter leaves
few observations, these are gathered and sorted; otherwise the index of the order is walked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import F, OrderBy, QuerySet, Sum
from django.db.models.expressions import RawSQL
from django.db.models.functions import Coalesce

from experiments.core import tagging
from experiments.core.paging import Count, Page, count
from experiments.core.visibility import visible_to
from experiments.display.image_cards import CARD_FIELDS, ImageCard
from experiments.display.plots import Scale
from experiments.gallery.lists import LIST_SORTS, Filters
from experiments.models import Experiment, Observation, SearchText, TextKind
from experiments.runs.page.experiments import list_experiments
from experiments.search import finding

PER_PAGE, EXPERIMENTS_PER_PAGE = 48, 40
MAX_SORTED = 20_000
"""Maximum observations that are gathered and sorted."""
FOUND = 1_000
"""Maximum images that words find, the newest."""
MANY = 100
"""If the newest images include this many, the words are common, and older ones are not searched."""
ORDERS = {
    "recent": ("-experiment_id", "-position"),
    "strongest": ("-activation", "-pk"),
    "weakest": ("activation", "pk"),
    "rise": ("-change", "-pk"),
    "drop": ("change", "pk"),
}
EXPERIMENT_ORDERS = {"recent": ("-run_id", "-number"), "strongest": ("-best_activation", "-pk")}
SHOWN_FIELDS = (
    *CARD_FIELDS,
    "run__system_kind",
    "run__model",
    "run__layer",
    "run__unit",
    "run__exemplar_mean",
    "run__best_activation",
    "experiment__number",
    "experiment__seq",
)


@dataclass(frozen=True)
class GalleryItem:
    """An observation in the gallery; `before` is the original of an edit."""

    row: Observation
    card: ImageCard
    scale: Scale
    before: ImageCard | None
    more: Sequence[ImageCard] = ()
    """Other edits of the same image, by the same experiment."""

    @property
    def place(self) -> tuple[int, str]:
        """Return the experiment, and the image that it edited."""
        return self.row.experiment_id, self.row.original if self.before else ""


def find(filters: Filters, number: int) -> dict[str, Any]:
    """Return a page of the gallery. `common` is true if the words occur in more images than are searched."""
    rows, common, known = select_observations(filters)
    # Runs know how many images they logged, which spares the count over all rows.
    page = Page(number, PER_PAGE, Count(known) if known is not None else count(rows), filters.params())
    keys = list(rows.values_list("pk", flat=True)[page.start : page.end])
    items = gallery_items(keys)
    return {"page": page, "common": common, "items": gather_edits(items) if filters.sorted_by == "recent" else items}


def select_observations(filters: Filters) -> tuple[QuerySet[Observation], bool, int | None]:
    """Return the observations in order, whether the words' results were cut, and their number if the runs' rows
    tell it."""
    # 1. The filters on observations themselves.
    rows, common, known = visible_to(Observation.objects.filter(filters.on_images())), False, None
    if filters.sorted_by in {"rise", "drop"}:
        rows = rows.filter(change__isnull=False)
    # 2. Decide whether to gather: any filter that leaves few rows makes sorting them cheaper than a walk.
    runs = filters.runs()
    gather = _has_few_in_range(filters)
    if filters.terms:
        keys, common = _find_titled(filters)
        rows, gather = rows.filter(pk__in=keys), True
    if filters.get("tag"):
        rows = rows.filter(tagging.images(filters.get("tag")))
        gather = gather or _is_few(rows)
    if filters.get("differs") or filters.get("parameter") or filters.get("origin") == "original":
        gather = gather or _is_few(rows)
    # 3. The runs: few of their images are gathered, many are compared along the index.
    if runs is not None:
        logged = runs.aggregate(Sum("observation_count"))["observation_count__sum"] or 0
        if not gather and logged <= MAX_SORTED:
            rows, gather = rows.filter(run__in=runs.values("pk")), True
        else:
            rows = _restrict_to_runs(rows, list(runs.values_list("pk", flat=True)))
            known = None if filters.on_observations else logged
    return rows.order_by(*order(filters.sorted_by, gather)), common, known


def _has_few_in_range(filters: Filters) -> bool:
    """True if the range of activations alone leaves few."""
    # These orders have an index by activation, which serves the range as well.
    if filters.sorted_by in {"strongest", "weakest"} or (filters.get("low") is None and filters.get("high") is None):
        return False
    return _is_few(Observation.objects.filter(filters.in_range("activation")))


def _is_few(rows: QuerySet[Observation]) -> bool:
    # The slice stops counting as soon as there are too many.
    return rows.order_by()[: MAX_SORTED + 1].count() <= MAX_SORTED


def _find_titled(filters: Filters) -> tuple[list[int], bool]:
    """Return the keys of the newest observations with these words in titles and prompts, and whether there are more."""
    known = {name: filters.get(name) for name in ("model", "layer", "unit", "run")}
    scope = finding.SearchScope(
        kind=TextKind.TITLE, **{name: value for name, value in known.items() if value is not None}
    )
    # One more than is shown tells whether there are more.
    passages, _, whole = finding.find_newest(filters.terms, scope, finding.ALL, FOUND + 1, MANY)
    keys = SearchText.objects.filter(pk__in=passages[:FOUND]).values_list("anchor", flat=True)
    return [key for key in keys if key], len(passages) > FOUND or not whole


def _restrict_to_runs(rows: QuerySet[Observation], runs: Sequence[int]) -> QuerySet[Observation]:
    """Return those of these runs, compared one by one while the index of the order is walked."""
    if not runs:
        return rows.none()
    # `+ 0` bars the index on runs: the database would gather and sort everything that they logged.
    listed = ",".join(str(int(run)) for run in runs)
    is_listed = RawSQL(f"experiments_observation.run_id + 0 IN ({listed})", [])  # noqa: S611 - integers alone
    return rows.alias(is_listed=is_listed).filter(is_listed=True)


def order(name: str, gather: bool) -> list[Any]:
    """Return the order; if rows are gathered, as expressions that no index serves."""
    if not gather:
        return list(ORDERS[name])
    # Databases often walk the index of the order nevertheless, but cannot use it for an expression.
    columns = [(column.removeprefix("-"), column.startswith("-")) for column in ORDERS[name]]
    return [OrderBy(Coalesce(F(column), F(column)), descending=descending) for column, descending in columns]


def gallery_items(keys: Sequence[int]) -> list[GalleryItem]:
    """Return the observations with these keys, in their order; edits with their originals. Two queries."""
    # `in_bulk` returns a dictionary, so the order of the keys is restored below.
    rows = Observation.objects.select_related("run", "experiment").only(*SHOWN_FIELDS).order_by().in_bulk(list(keys))
    ordered = [rows[key] for key in keys if key in rows]
    before = originals(ordered)
    items = []
    for row in ordered:
        run, card, first = row.run, ImageCard.from_row(row), before.get((row.run_id, row.original))
        if row.change is not None:
            # Only edits have a change; it is part of the card's caption.
            card = replace(card, change=row.change)
        reached = [run.best_activation, row.activation, first.activation if first else None]
        scale = Scale.of(reached, run.exemplar_mean)
        items.append(GalleryItem(row, card, scale, ImageCard.from_row(first) if first else None))
    return items


def gather_edits(items: Sequence[GalleryItem]) -> list[GalleryItem]:
    """Group edits that one experiment made of one image into one item, at the position of the first."""
    groups: dict[tuple[int, str], list[GalleryItem]] = {}
    for item in items:
        if item.before:
            groups.setdefault(item.place, []).append(item)
    found = []
    for item in items:
        group = groups.get(item.place, [item]) if item.before else [item]
        # An image that is shown before its edits is not listed by itself as well.
        if group[0] is item and (item.before or (item.row.experiment_id, item.card.image) not in groups):
            scale = Scale.of([each.scale.high for each in group], item.scale.exemplar_mean)
            found.append(replace(item, scale=scale, more=[each.card for each in group[1:]]))
    return found


def originals(rows: Sequence[Observation]) -> dict[tuple[int, str], Observation]:
    """Return what the edits among these were made from, as their runs first logged it."""
    # An edit without a change was logged without its original.
    edits = [row for row in rows if row.original and row.change is not None]
    if not edits:
        return {}
    # Newest first: the first log of an image is the last row, and stays in the dictionary.
    found = Observation.objects.filter(
        run__in={row.run_id for row in edits}, image__in={row.original for row in edits}
    ).order_by("-pk")
    return {(row.run_id, row.image_id): row for row in found}


# --- experiments ------------------------------------------------------------------------------------


def find_experiments(filters: Filters, number: int) -> dict[str, Any]:
    """Return a page of the list; `common` as in the gallery."""
    rows, common = select_experiments(filters)
    page = Page(number, EXPERIMENTS_PER_PAGE, count(rows), filters.params())
    keys = list(rows.values_list("pk", flat=True)[page.start : page.end])
    # Columns that may hold megabytes, and that the list does not show.
    rows = Experiment.objects.select_related("run").defer("state", "output", "calls", "run__versions").order_by()
    found = rows.in_bulk(keys)
    listed = []
    for each in list_experiments([found[key] for key in keys if key in found]):
        run = each.experiment.run
        listed.append((each, Scale.of([run.best_activation, each.experiment.best_activation], run.exemplar_mean)))
    return {"page": page, "common": common, "listed": listed}


def select_experiments(filters: Filters) -> tuple[QuerySet[Experiment], bool]:
    """Return the experiments in order; by words and origin, those that logged such an image."""
    keys, common = _find_titled(filters) if filters.terms else (None, False)
    rows = visible_to(Experiment.objects.filter(filters.on_experiments(keys)))
    # The other orders are of single images.
    sort = filters.sorted_by if filters.sorted_by in LIST_SORTS else "recent"
    if sort == "strongest":
        rows = rows.filter(best_activation__isnull=False)
    if (runs := filters.runs()) is not None:
        rows = rows.filter(run__in=runs.values("pk"))
    return rows.order_by(*EXPERIMENT_ORDERS[sort]), common
