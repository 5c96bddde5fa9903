"""Sources of labels, and what each says of a unit.

A key names a source: `agent` is any agent, `agent:openai:gpt-4o` one of them, `person`, `baseline`, `correction` is
a reviewer's corrected label, `sweep:7` is a sweep's conclusion, and `import:milan` are labels of a file. Evaluations
have further sources.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Count, Q, QuerySet

from experiments.core import parts
from experiments.core.params import parse_key
from experiments.models import Label, Review, ReviewState, Sweep, Unit

AGENT, PERSON, CORRECTION, IMPORT, SWEEP = "agent", "person", "correction", "import", "sweep"
OURS = {
    AGENT: "Any agent",
    PERSON: "Person",
    "baseline": "One-shot baseline",
    CORRECTION: "Reviewers' corrections",
    IMPORT: "Imported",
}
"""Sources with a display name of their own."""
OF_EVALUATIONS = {"one-shot": "One-shot labeller", "shuffled": "Shuffled labels"}
"""Sources that only evaluations have; no label of a unit has them."""
BY_LATENT = "sae:"
"""Prefix of auto-encoders as sources: a unit is labelled by the latent that adds most to it. Only evaluations have
them."""


@dataclass(frozen=True)
class LabelSource:
    """A source that users can choose: its key, display name and number of labels."""

    key: str
    words: str
    labels: int


@dataclass(frozen=True)
class SourceLabel:
    """A label from a source. `order` is higher for newer labels; `label` is None for a correction."""

    text: str
    label: int | None
    order: int
    run: int | None = None


LabelsBySource = Mapping[int, Mapping[str, SourceLabel]]
"""Id of a unit -> key of a source -> label."""


def words(key: str) -> str:
    """Return the display name of a source."""
    if known := OURS.get(key) or OF_EVALUATIONS.get(key):
        return known
    if key.startswith(BY_LATENT):
        return f"By its latent of {key}"
    family, _, rest = key.partition(":")
    if family == IMPORT:
        return f"{rest} (imported)"
    if family == SWEEP:
        return _name_sweeps([key])[key]
    backbone, _, model = rest.partition(":")
    return model or (parts.label_backbone(backbone) if backbone else key)


def _name_sweeps(keys: Iterable[str]) -> dict[str, str]:
    """Return the display names of these sweeps by key of the source."""
    numbers = {key: parse_key(key.partition(":")[2]) for key in keys if key.startswith(f"{SWEEP}:")}
    names = dict(Sweep.objects.filter(pk__in=numbers.values()).values_list("pk", "name")) if numbers else {}
    return {key: f"Sweep {number}: {names.get(number, 'deleted')}" for key, number in numbers.items()}


def _keys_of(source: str, backbone: str, model: str, sweep: int | None) -> list[str]:
    """Return the keys that a label counts under, from its source and from the backbone and sweep of its run."""
    if source != "run":
        # A file may call its method "agent": that is still an import.
        return [source if source in OURS and source != AGENT else f"{IMPORT}:{source}"]
    if backbone == PERSON:
        return [PERSON]
    own = [f"{SWEEP}:{sweep}"] if sweep else []
    return [AGENT, f"{AGENT}:{backbone}:{model}" if model else f"{AGENT}:{backbone}", *own]


def list_sources() -> list[LabelSource]:
    """Return every source that labels of units have; those with display names come first."""
    counts: Counter[str] = Counter()
    rows = Label.objects.filter(units__isnull=False).order_by()
    of_run = ("run__backbone", "run__backbone_model", "run__sweep")
    # Distinct: the join repeats a label for each of its units.
    kinds = rows.values_list("source", *of_run).annotate(Count("pk", distinct=True))
    for source, backbone, model, sweep, count in kinds:
        counts.update(dict.fromkeys(_keys_of(source, backbone or "", model or "", sweep), count))
    if corrected := _corrections().count():
        counts[CORRECTION] = corrected
    places = {key: place for place, key in enumerate(OURS)}
    ordered = sorted(counts, key=lambda key: (places.get(key, len(OURS)), key))
    named = _name_sweeps(ordered)
    return [LabelSource(key, named.get(key) or words(key), counts[key]) for key in ordered]


def labels_of(units: QuerySet[Unit], keys: Sequence[str]) -> LabelsBySource:
    """Return the newest label of each source for each unit. Labels of one run are joined in their order."""
    found: dict[tuple[int, str], list[SourceLabel]] = defaultdict(list)
    for unit, key, label in _all_labels(units, keys):
        found[unit, key].append(label)
    said: dict[int, dict[str, SourceLabel]] = {}
    for (unit, key), some in found.items():
        ordered = sorted(some, key=lambda each: each.order)
        last = ordered[-1]
        # A run may conclude with several labels, which belong together.
        together = [last] if last.run is None else [each for each in ordered if each.run == last.run]
        text = "; ".join(dict.fromkeys(each.text for each in together))
        said.setdefault(unit, {})[key] = SourceLabel(text, together[0].label, last.order, last.run)
    return said


def _all_labels(units: QuerySet[Unit], keys: Sequence[str]) -> Iterable[tuple[int, str, SourceLabel]]:
    """Yield unit, key and label for everything that these sources ever said."""
    # What labels of these sources have in their column `source`
    # The database narrows down by the source; the exact keys are compared below.
    columns = {key.removeprefix(f"{IMPORT}:") for key in keys}
    if any(key.partition(":")[0] in {AGENT, PERSON, SWEEP} for key in keys):
        columns.add("run")
    rows = Label.units.through.objects.filter(unit__in=units.order_by().values("pk"), label__source__in=columns)
    names = ("unit_id", "label_id", "label__text", "label__source", "label__run_id")
    backbone = ("label__run__backbone", "label__run__backbone_model", "label__run__sweep")
    for unit, label, text, source, run, *by in rows.order_by("label_id").values_list(*names, *backbone).iterator():
        for key in _keys_of(source, by[0] or "", by[1] or "", by[2]):
            if key in keys and text.strip():
                yield unit, key, SourceLabel(text.strip(), label, label, run)
    if CORRECTION in keys:
        yield from _list_corrected(units)


def _corrections() -> QuerySet[Review]:
    """Return the submitted reviews with a corrected label."""
    return Review.objects.filter(state=ReviewState.SUBMITTED).exclude(corrected_label="").order_by("submitted", "pk")


def _list_corrected(units: QuerySet[Unit]) -> Iterable[tuple[int, str, SourceLabel]]:
    """Yield the corrected labels of runs on these units, found by the names that runs store."""
    places = {
        (model, layer, number): pk
        for pk, model, layer, number in units.values_list("pk", "layer__model__name", "layer__name", "number")
    }
    run = ("item__run__model", "item__run__layer", "item__run__unit")
    known = Q(item__run__model__in={model for model, _, _ in places})
    for pk, text, *place in _corrections().filter(known).values_list("pk", "corrected_label", *run):
        unit = places.get((place[0], place[1], place[2]))
        if unit is not None and text.strip():
            yield unit, CORRECTION, SourceLabel(text.strip(), None, pk)
