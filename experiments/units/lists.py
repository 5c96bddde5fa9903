"""Find units by filters, or by number, name or words of a label; find labels by filters and of units; and the units
most similar to one, which a worker computes, with labels and pictures."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from typing import Any

from django.core.cache import cache
from django.db.models import Count, Max, Q, QuerySet
from django.http import Http404
from django.urls import reverse

from experiments.api.fields import RowNumber, Words
from experiments.core import compatibility, queue
from experiments.core.params import parse_number
from experiments.core.system_names import SystemNameMasker
from experiments.core.visibility import visible_to
from experiments.display.narrowing import (
    Filter,
    Narrowed,
    contain_words,
    equal,
    equal_number,
    index_filters,
    narrow_down,
    require_known,
)
from experiments.models import (
    Dataset,
    Exemplar,
    Hypothesis,
    Label,
    Layer,
    LayerIndex,
    Run,
    Unit,
    UnitProfile,
    VisionModelRow,
)
from experiments.runs.filters import place_filters

MAX_WORDS_CHARS = 200
"""Maximum characters of a search."""
MAX_WORDS = 10
SHORT = 60
"""Maximum characters of a label in a drawing."""
LISTED = 60
"""Units that a page lists with their labels."""
ASK_AGAIN = 30
"""Seconds after which a missing comparison is requested again."""
PICTURES = 3
_OF_UNITS = {each.name: each for each in place_filters("layer__model__name", "layer__name", "number")}
_ANSWERS = {"true": "Yes", "false": "No"}
UNIT_FILTERS = index_filters(
    _OF_UNITS["model"],
    _OF_UNITS["layer"],
    replace(_OF_UNITS["unit"], name="number", label="Number"),
    Filter(
        "labelled",
        "Labelled",
        lambda text: Q(labels__isnull=require_known("answer", text.lower(), _ANSWERS) == "false"),
        bool,
        choices=list(_ANSWERS.items()),
    ),
    Filter("label", "Label", contain_words("labels__text"), Words, "words of a label"),
)
"""Of units that were asked about, for the API."""
_OF_LABELS = index_filters(
    Filter("source", "Source", equal("source"), Words),
    Filter("run", "Run", equal_number("run", "run"), RowNumber, hint="its number", input="numeric"),
    Filter("q", "Words", contain_words("text"), Words, "words of the label"),
)
LABEL_FILTERS = {**_OF_UNITS, **_OF_LABELS}
"""Of labels, for the API and exports."""

Numbers = Mapping[int, Collection[int]]
"""Id of a layer -> numbers of units."""


@dataclass(frozen=True)
class PlacedUnit:
    """A unit, with its name and its page."""

    layer: Layer
    number: int

    @property
    def name(self) -> str:
        return self.layer.name_of(self.number)

    @property
    def url(self) -> str:
        return reverse("unit", args=[self.layer.model.name, self.layer.name, self.number])


@dataclass(frozen=True)
class ListedUnit(PlacedUnit):
    """A unit in a list, with its labels."""

    labels: Sequence[str]


def find_layer(name: str, layer_name: str, number: int = 0) -> Layer:
    """Return the layer with its model. Raises Http404, with the choices, if there is none or it has no such unit."""
    row = Layer.objects.select_related("model").filter(model__name=name, name=layer_name).first()
    if row is None:
        raise Http404(f"{name} has no layer {layer_name} here.")
    if number >= row.units:
        raise Http404(f"{layer_name} of {name} has units 0 to {row.units - 1}.")
    return row


def list_breadcrumbs(
    row: VisionModelRow, layer: Layer | None = None, number: int | None = None
) -> list[tuple[str, str]]:
    found = [("Units", reverse("units")), (row.name, reverse("units-model", args=[row.name]))]
    if layer:
        found.append((layer.name, reverse("units-layer", args=[row.name, layer.name])))
    if layer and number is not None:
        found.append((f"{layer.noun.capitalize()} {number}", reverse("unit", args=[row.name, layer.name, number])))
    return found


def units_from(rows: QuerySet[Unit], params: Mapping[str, str], names: SystemNameMasker) -> Narrowed:
    """Return the units that an address selects. Filters by label do not find hidden systems."""
    found = narrow_down(rows, params, UNIT_FILTERS)
    if not found.values.keys() & {"label", "labelled"}:
        return found
    hidden = names.are_hidden_at("layer__model__name", "layer__name", "number")
    # A filter by label would reveal whether a hidden run gave the unit a label.
    return replace(found, rows=visible_to(found.rows).exclude(hidden))


def labels_from(rows: QuerySet[Label], params: Mapping[str, str], names: SystemNameMasker) -> Narrowed:
    """Return the labels that an address selects. Filters by system do not find labels of runs of hidden systems."""
    # On one unit together: a label may have several
    units = narrow_down(Unit.objects.all(), params, _OF_UNITS)
    found = narrow_down(visible_to(rows), params, _OF_LABELS)
    rows = found.rows
    if units.values:
        rows = rows.filter(pk__in=units.rows.order_by().values("labels")).exclude(names.are_hidden("run__"))
    return Narrowed(rows, units.values | found.values, units.problems | found.problems)


def find(typed: str, layers: Sequence[Layer], names: SystemNameMasker) -> dict[int, set[int]]:
    """Return the units of these layers with this number, or whose name or one of whose labels contains all the
    words."""
    words = typed.split()[:MAX_WORDS]
    folded = [word.casefold() for word in words]
    number = parse_number(words[0]) if len(words) == 1 else None
    found: dict[int, set[int]] = {}
    for layer in layers:
        # Names of units come from JSON, so they may be other things than text.
        named = ((n, str(name).casefold()) for n, name in enumerate(layer.names))
        found[layer.pk] = {n for n, name in named if all(word in name for word in folded)}
        found[layer.pk] |= {number} & {*range(layer.units)} if number is not None else set()
    # Units whose labels the viewer must not see are not found by them.
    holds = Q(layer__in=found) & ~names.are_hidden_at("layer__model__name", "layer__name", "number")
    for word in words:
        holds &= Q(labels__text__icontains=word)
    # One filter, so that all the words are in one label.
    for layer_id, number in (
        visible_to(Unit.objects.filter(holds)).order_by().values_list("layer_id", "number").distinct()
    ):
        found[layer_id].add(number)
    return {layer: numbers for layer, numbers in found.items() if numbers}


def find_labels(numbers: Numbers, names: SystemNameMasker) -> dict[tuple[int, int], list[str]]:
    """Return the labels of these units, newest first; without labels of runs for units that the viewer has yet to
    judge blind."""
    if not any(numbers.values()):
        return {}
    meant = reduce(or_, (Q(layer=layer, number__in=list(some)) for layer, some in numbers.items() if some))
    units = {
        pk: (layer, number) for pk, layer, number in Unit.objects.filter(meant).values_list("pk", "layer", "number")
    }
    pairs = (
        visible_to(Label.units.through.objects.filter(unit__in=units))
        .exclude(names.are_hidden("label__run__"))
        .order_by("-label_id")
        .values_list("unit_id", "label__text")
    )
    found: dict[tuple[int, int], list[str]] = {}
    for unit, text in pairs:
        found.setdefault(units[unit], []).append(text)
    return found


def shorten_labels(labels: Sequence[str]) -> str:
    """Shorten the labels to the room in a drawing."""
    text = "; ".join(dict.fromkeys(labels))
    # One character less, for the ellipsis.
    return text if len(text) <= SHORT else f"{text[: SHORT - 1]}…"


def list_units(numbers: Numbers, layers: Sequence[Layer], names: SystemNameMasker) -> list[ListedUnit]:
    """Return the first of these units with their labels."""
    pairs = [(layer, number) for layer in layers for number in sorted(numbers.get(layer.pk, ()))][:LISTED]
    some: dict[int, list[int]] = {}
    for layer, number in pairs:
        some.setdefault(layer.pk, []).append(number)
    labels = find_labels(some, names)
    return [
        ListedUnit(layer, number, list(dict.fromkeys(labels.get((layer.pk, number), ())))) for layer, number in pairs
    ]


def choose_dataset(layer: Layer) -> Dataset | None:
    """Return the default dataset for exemplars of the layer: one over which most of its units were measured, one
    that it is indexed over, or one that suits the model; None if none can be used."""
    measured = dict(
        UnitProfile.objects.filter(unit__layer=layer, written__isnull=False)
        .order_by()
        .values_list("dataset")
        .annotate(Count("pk"))
    )
    indexed = set(LayerIndex.objects.filter(layer=layer).values_list("dataset_id", flat=True))
    fitting = compatibility.dataset_for(layer.model.name)

    # False sorts before True: each item prefers datasets that are indexed, suit the model, or are available.
    def rank(each: Dataset) -> tuple[int | bool, ...]:
        return -measured.get(each.pk, 0), each.pk not in indexed, each.key != fitting, not each.available

    there = [each for each in Dataset.objects.all() if each.available or each.pk in measured]
    return min(there, key=rank, default=None)


def count_measured(layer: Layer, dataset: Dataset) -> int:
    """Return how many units of the layer have exemplars over the dataset."""
    return UnitProfile.objects.filter(unit__layer=layer, dataset=dataset, written__isnull=False).count()


# --- similar units ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class SimilarUnit(ListedUnit):
    """Another unit: its similarity, its shared exemplars, and what is known of it."""

    similarity: float
    shared: int
    pictures: Sequence[Exemplar]


@dataclass(frozen=True)
class SimilarUnits:
    measure: str
    images: int
    layers: int
    same: Sequence[SimilarUnit]
    others: Sequence[SimilarUnit]
    problem: str = ""


def find_similar(profile: UnitProfile, layers: Mapping[int, Layer], names: SystemNameMasker) -> SimilarUnits | None:
    """Return similar units; None while a worker computes them. Results older than an index are computed again, and
    shown meanwhile."""
    of_model = LayerIndex.objects.filter(dataset=profile.dataset_id, layer__in=layers)
    newest = of_model.aggregate(newest=Max("written"))["newest"]
    stale = profile.compared is None or (newest is not None and profile.compared < newest)
    # Pages poll: only one of them asks, again after a while.
    if stale and cache.add(f"asked-for-similar:{profile.pk}", True, ASK_AGAIN):
        queue.ask_for("write_neighbours", profile.pk)
    return None if profile.compared is None else _read_similar(profile, layers, names)


def _read_similar(profile: UnitProfile, layers: Mapping[int, Layer], names: SystemNameMasker) -> SimilarUnits:
    neighbours: dict[str, Any] = profile.neighbours
    # A layer may have been deleted since the worker compared it.
    rows = [row for kind in ("same", "others") for row in neighbours.get(kind, ()) if row[0] in layers]
    numbers: dict[int, list[int]] = {}
    for layer, number, *_ in rows:
        numbers.setdefault(layer, []).append(number)
    labels, pictures = find_labels(numbers, names), _pictures(profile, numbers)

    def units(kind: str) -> list[SimilarUnit]:
        found = []
        for layer, number, similarity, shared in neighbours.get(kind, ()):
            if layer in layers:
                known = labels.get((layer, number), ()), similarity, shared, pictures.get((layer, number), ())
                found.append(SimilarUnit(layers[layer], number, *known))
        return found

    about = (neighbours.get("measure", ""), neighbours.get("images", 0), neighbours.get("layers", 0))
    return SimilarUnits(*about, units("same"), units("others"), neighbours.get("problem", ""))


def _pictures(profile: UnitProfile, numbers: Mapping[int, Sequence[int]]) -> dict[tuple[int, int], list[Exemplar]]:
    """Return the first exemplars of these units over the same dataset, if a worker has written them."""
    if not numbers:
        return {}
    units = reduce(
        or_, (Q(profile__unit__layer=layer, profile__unit__number__in=some) for layer, some in numbers.items())
    )
    rows = Exemplar.objects.filter(units, profile__dataset=profile.dataset_id, rank__lte=PICTURES)
    found: dict[tuple[int, int], list[Exemplar]] = {}
    for row in rows.select_related("profile__unit").order_by("rank"):
        found.setdefault((row.profile.unit.layer_id, row.profile.unit.number), []).append(row)
    return found


def list_last_hypotheses(runs: Sequence[Run]) -> list[Hypothesis]:
    """Return the hypotheses of these runs as each run last listed them, decided ones first; one query."""
    rows = Hypothesis.objects.filter(run__in=[run.pk for run in runs]) if runs else Hypothesis.objects.none()
    # By round, so that the last list of each run wins.
    last: dict[tuple[int, int], Hypothesis] = {
        (row.run_id, row.number): row for row in rows.order_by("run_id", "round")
    }
    order: Mapping[str, int] = {"supported": 0, "refuted": 1}
    return sorted(last.values(), key=lambda row: (order.get(row.status, 2), -row.run_id, row.number))
