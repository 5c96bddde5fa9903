"""What a system is called before one person. The layer and the name of a synthetic neuron are the answer: whoever is to
judge a run of one unseen (`blindness` says who) reads a number in their place, wherever that neuron is named.

It is the neuron that is hidden, not the run alone: other runs of the same one would tell as well.
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
"""What the changes of a fork name."""


class Names:
    """The names that one viewer reads; without a viewer, those that everybody may. One query, the first time that a
    synthetic neuron comes up: for one answer, not to be kept."""

    def __init__(self, viewer: User | AnonymousUser | None) -> None:
        self.viewer = viewer if isinstance(viewer, User) else None
        self.asked: set[Key] = set()
        """The systems asked about. What was drawn with these names is for all from whom the same of them are hidden."""

    @cached_property
    def hidden(self) -> frozenset[Key]:
        """The systems whose names are not for these eyes yet."""
        rows = _hidden_runs(self.viewer).values_list("model", "layer", "unit")
        return frozenset((model, layer, unit) for model, layer, unit in rows)

    def hides(self, run: Run) -> bool:
        """Whether the viewer does not read what the run studies."""
        return run.system_kind == registry.BLINDED_KIND and self.holds_back(run.model, run.layer, run.unit)

    def holds_back(self, model: str, layer: str, unit: int) -> bool:
        """The same of a system by its place."""
        self.asked.add((model, layer, unit))
        return (model, layer, unit) in self.hidden

    def of(self, run: Run) -> str:
        """What the run studies, in one line."""
        return self._number(run) if self.hides(run) else run.system

    def short(self, run: Run) -> str:
        """The same without the model."""
        return self._number(run) if self.hides(run) else run.short_system

    def _number(self, run: Run) -> str:
        return registry.blind_name(run.system_kind, run.model, run.layer, run.unit)

    def place(self, run: Run) -> dict[str, Any]:
        """`model`, `layer` and `unit` of a run as data: empty, empty and None where they are hidden."""
        if self.hides(run):
            return {"model": "", "layer": "", "unit": None}
        return {"model": run.model, "layer": run.layer, "unit": run.unit}

    def versions(self, run: Run) -> dict[str, Any]:
        """What the run is made with."""
        return _without_model(run.versions) if self.hides(run) else run.versions

    def content(self, run: Run, event: Event) -> Payload:
        """What an event of the run says: what the agent was told never names a synthetic neuron, what we keep beside it
        does."""
        content = event.content
        if not isinstance(content, Started | Forked) or not self.hides(run):
            return content
        if isinstance(content, Forked):
            kept = {name: value for name, value in content.changes.items() if name not in TELLING}
            return replace(content, changes=kept)
        system = SystemSpec(run.system_kind, "", self._number(run), 0)
        return replace(content, system=system, versions=_without_model(content.versions))

    def payload(self, run: Run, event: Event) -> dict[str, Any]:
        """The same as plain JSON; of an event that cannot be read, whatever is stored."""
        if event.is_unreadable:
            return event.payload if isinstance(event.payload, dict) else {}
        return encode(self.content(run, event))

    def hide_any(self, queue: ReviewQueue) -> bool:
        """Whether the queue holds a run whose system is hidden: then what its runs were chosen by is, too."""
        return queue.items.filter(self.are_hidden("run__")).exists()

    def are_hidden(self, prefix: str = "") -> Q:
        """Of rows that lead to their run by `prefix`: those whose system is hidden."""
        return self.are_hidden_at(f"{prefix}model", f"{prefix}layer", f"{prefix}unit")

    def are_hidden_at(self, model: str, layer: str, unit: str) -> Q:
        """The same of rows that name a system in these fields. Where none is hidden, databases compare nothing."""
        same = {"model": OuterRef(model), "layer": OuterRef(layer), "unit": OuterRef(unit)}
        return Q(Exists(_hidden_runs(self.viewer).filter(**same))) if self.hidden else Q(pk__in=[])


def _hidden_runs(viewer: User | None) -> QuerySet[Run]:
    """Runs of synthetic neurons that this person, or without one anybody, is to judge unseen; and those that people
    write for an evaluation, until they have ended."""
    open_items = ReviewItem.objects.filter(complete=False, queue__blind=True, queue__closed=None).order_by()
    runs = blindness.blinded_runs(viewer) if viewer else open_items.values_list("run_id", flat=True)
    hidden = Q(pk__in=runs) | Q(pk__in=visibility.list_written().values("pk"))
    return Run.objects.filter(hidden, system_kind=registry.BLINDED_KIND).order_by()


def _without_model(versions: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in versions.items() if name != "model"}
