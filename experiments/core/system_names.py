"""Decide which name of a system a viewer reads.

The layer and name of a synthetic neuron are the answer. A person who has yet to judge a run of one blind
(`blindness` decides) reads a number instead, wherever that neuron is named: other runs of the same neuron would
reveal it as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import Exists, OuterRef, Q, QuerySet

from experiments.core import blindness, visibility
from experiments.models import Event, ReviewItem, ReviewQueue, Run
from workers import registry
from workers.record.decoding import encode
from workers.record.events import Forked, Payload, Started
from workers.record.systems import SystemSpec

Key = tuple[str, str, int]
"""Model, layer, unit."""
TELLING = frozenset({"system", "model", "layer", "unit"})
"""Keys of a fork's changes that would reveal the system."""


class SystemNameMasker:
    """The names that one viewer reads; without a viewer, the names that everyone may read.

    Runs one query, when a synthetic neuron first comes up. Use it for one response and do not keep it.
    """

    def __init__(self, viewer: User | AnonymousUser | None) -> None:
        self.viewer = viewer if isinstance(viewer, User) else None
        self.asked: set[Key] = set()
        """The systems asked about. A page drawn with these names fits everyone from whom the same ones are hidden."""

    @cached_property
    def hidden(self) -> frozenset[Key]:
        """Return the systems whose names are hidden from the viewer."""
        rows = _list_hidden_runs(self.viewer).values_list("model", "layer", "unit")
        return frozenset((model, layer, unit) for model, layer, unit in rows)

    def is_masked(self, run: Run) -> bool:
        """True if the run's system is hidden from the viewer."""
        return run.system_kind == registry.BLINDED_KIND and self.masks_unit(run.model, run.layer, run.unit)

    def masks_unit(self, model: str, layer: str, unit: int) -> bool:
        """True if the system at this place is hidden from the viewer."""
        # Recorded for `SharedUpdates`, which lends a drawing to viewers with the same permissions.
        self.asked.add((model, layer, unit))
        return (model, layer, unit) in self.hidden

    def of(self, run: Run) -> str:
        """Return the run's system in one line."""
        return self._number(run) if self.is_masked(run) else run.system

    def short(self, run: Run) -> str:
        """Return the run's system without the model."""
        return self._number(run) if self.is_masked(run) else run.short_system

    def _number(self, run: Run) -> str:
        return registry.blind_name(run.system_kind, run.model, run.layer, run.unit)

    def place(self, run: Run) -> dict[str, Any]:
        """Return `model`, `layer` and `unit` of a run as data; "", "" and None if they are hidden."""
        if self.is_masked(run):
            return {"model": "", "layer": "", "unit": None}
        return {"model": run.model, "layer": run.layer, "unit": run.unit}

    def versions(self, run: Run) -> dict[str, Any]:
        """Return the versions of what the run uses."""
        return _omit_model(run.versions) if self.is_masked(run) else run.versions

    def content(self, run: Run, event: Event) -> Payload:
        """Return an event's content. What the agent was told never names a synthetic neuron, but what we store
        beside it does."""
        content = event.content
        if not isinstance(content, Started | Forked) or not self.is_masked(run):
            return content
        if isinstance(content, Forked):
            kept = {name: value for name, value in content.changes.items() if name not in TELLING}
            return replace(content, changes=kept)
        # A spec with the number in place of the layer: readers of events expect one.
        system = SystemSpec(run.system_kind, "", self._number(run), 0)
        return replace(content, system=system, versions=_omit_model(content.versions))

    def payload(self, run: Run, event: Event) -> dict[str, Any]:
        """Return the same as plain JSON; for an event that cannot be read, whatever is stored."""
        if event.is_unreadable:
            return event.payload if isinstance(event.payload, dict) else {}
        return encode(self.content(run, event))

    def hide_any(self, queue: ReviewQueue) -> bool:
        """True if the queue holds a run whose system is hidden; then the criteria that chose its runs are hidden
        too."""
        return queue.items.filter(self.are_hidden("run__")).exists()

    def are_hidden(self, prefix: str = "") -> Q:
        """Return a filter for rows whose run, found by `prefix`, has a hidden system."""
        return self.are_hidden_at(f"{prefix}model", f"{prefix}layer", f"{prefix}unit")

    def are_hidden_at(self, model: str, layer: str, unit: str) -> Q:
        """Return a filter for rows that name a hidden system in these fields. If none is hidden, it adds no
        comparison."""
        same = {"model": OuterRef(model), "layer": OuterRef(layer), "unit": OuterRef(unit)}
        # A subquery compares all three columns of a row with one hidden run.
        return Q(Exists(_list_hidden_runs(self.viewer).filter(**same))) if self.hidden else Q(pk__in=[])


def _list_hidden_runs(viewer: User | None) -> QuerySet[Run]:
    """Return runs of synthetic neurons that this person, or without one any person, has yet to judge blind; and
    those that people write for an evaluation, until they have ended."""
    open_items = ReviewItem.objects.filter(complete=False, queue__blind=True, queue__closed=None).order_by()
    runs = blindness.list_blinded_runs(viewer) if viewer else open_items.values_list("run_id", flat=True)
    hidden = Q(pk__in=runs) | Q(pk__in=visibility.list_written().values("pk"))
    return Run.objects.filter(hidden, system_kind=registry.BLINDED_KIND).order_by()


def _omit_model(versions: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in versions.items() if name != "model"}
