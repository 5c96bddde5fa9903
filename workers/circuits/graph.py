"""Measure the graph of a circuit: each member's effect on a class and on the members of later layers, by exact mean
ablation.

A member is held at its mean over all places of the probe images that are looked at, up to `LOOKED` of them. Figures are
measured on the `MAX_IMAGES` of these on which the circuit is most active: the sum of its members' activations, each
divided by its standard deviation. What one member does is measured on those of them on which it is itself more active
than on average: over the others too, what it adds above its mean and what it lacks below would cancel, and a member
that is weak wherever the circuit is strong would be given the wrong sign.

A pass for each member gives its effect on the class and its edges to all later members at once, whatever the way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from workers.causal.activity import sum_activity
from workers.causal.rewrites import PlaceMeans, scale_units
from workers.circuits.curves import is_near
from workers.circuits.finding import find_target
from workers.circuits.tracing import MemberTrace, Place, TracedImages
from workers.errors import RequestError
from workers.lab.imaging import map_in_parallel
from workers.metrics.intervals import estimate_gap, estimate_mean
from workers.protocols import Dataset, Progress, Rewrite, find_classes
from workers.record.circuit_graphs import CircuitGraphReport, GraphEdge, GraphNode, find_graph_problem
from workers.record.estimates import Estimate

LOOKED = 500
"""Probe images that are examined."""
MAX_IMAGES = 200
_MIN_IMAGES = 8
_ROUNDING = 1e-6
"""A change below this share of the largest value is rounding, and counts as 0."""
_NO_CLASS = Estimate(why="the network knows no classes")
_OUTPUT = Estimate(why="a class is the output itself")
Floats = NDArray[np.float64]
Rows = NDArray[np.bool_]


def measure_graph(
    trace: MemberTrace, dataset: Dataset, positions: Sequence[int], target: str, batch_size: int, progress: Progress
) -> CircuitGraphReport:
    """Return the graph over probe images, which are at these positions. `target` is the name or number of a class, or
    "": then it is the class whose logit changes most on average when all members are held.

    Raises RequestError for a class that is not there, too many members or too few images, and what `progress` raises.
    """
    # 1. What cannot be measured is refused before a pass is run
    if problem := find_graph_problem(trace.members):
        raise RequestError(problem)
    if len(positions) < _MIN_IMAGES:
        raise RequestError(
            f"{len(positions)} probe images are too few: {_MIN_IMAGES} are needed. Name a larger dataset."
        )
    # 2. Without a name the class is chosen by the measurement
    number = find_target(trace.network, target) if target else None
    # 3. Classes alone leave nothing to hold
    if not trace.places:
        return CircuitGraphReport(
            why="All members are classes, the output itself, so nothing follows from holding one."
        )
    return _GraphMeasurement(trace, dataset, positions, batch_size, progress).measure(number)


class _GraphMeasurement:
    """One graph while it is measured."""

    def __init__(
        self, trace: MemberTrace, dataset: Dataset, positions: Sequence[int], batch_size: int, progress: Progress
    ) -> None:
        self._trace = trace
        self._dataset = dataset
        self._batch_size = batch_size
        self._progress = progress
        self._looked = list(positions)
        means = {place: PlaceMeans() for place in trace.places}
        # 1. One pass over the probe images reads the members and the means of all units
        seen = self._run("Reading the members", {place: each.read for place, each in means.items()}, self._looked)
        self._means = {place: each.find(range(trace.count_units(place))) for place, each in means.items()}
        # By `ptp`, since the deviation of equal numbers may be a rounding above 0
        self._spread = np.where(np.ptp(seen.activations, axis=0) > 0, seen.activations.std(axis=0), 0.0)
        # 2. The images on which the circuit is most active, in the order of the dataset
        chosen = sorted(np.argsort(-sum_activity(seen.activations), kind="stable")[:MAX_IMAGES])
        self._chosen = [self._looked[at] for at in chosen]
        self._is_active = seen.activations[chosen] > seen.activations.mean(axis=0)
        """(chosen images, members)"""
        # Anew, since in other batches the same image gives other roundings
        self._own = self._run("Reading the most active images", {}, self._chosen)

    def measure(self, number: int | None) -> CircuitGraphReport:
        """Return the report with this class, or the one that is moved most."""
        places = self._trace.places
        # 1. All members held at once: for the choice of the class, and what the circuit gives together
        off = self._run("Holding all members", self._hold_members(places), self._chosen).outputs
        was_chosen = number is None
        classes = find_classes(self._trace.network)
        if classes is None:
            logit, fallen = _NO_CLASS, _NO_CLASS
        else:
            # In either direction: a circuit may also suppress a class
            number = int(np.abs((self._own.outputs - off).mean(0)).argmax()) if number is None else number
            logit, fallen = estimate_mean(self._own.outputs[:, number]), self._estimate_fall(off, number)
        # 2. Each member by itself
        nodes, edges = self._measure_members(number)
        # 3. The circuit against all other units of its layers
        faithfulness, completeness = self._explain(off, number)
        names = classes.names if classes else ()
        return CircuitGraphReport(
            class_number=number,
            class_name=names[number] if number is not None and number < len(names) else "",
            was_chosen=was_chosen and number is not None,
            looked=len(self._looked),
            images=len(self._chosen),
            nodes=tuple(nodes),
            edges=tuple(edges),
            logit=logit,
            all_off=fallen,
            faithfulness=faithfulness,
            completeness=completeness,
        )

    def _measure_members(self, number: int | None) -> tuple[list[GraphNode], list[GraphEdge]]:
        """Return each member held by itself."""
        nodes, edges = [], []
        for at, member in enumerate(self._trace.members):
            # A constant member has no edge that could be measured, but stays in the graph
            place, is_constant = (member.model, member.layer), not self._spread[at]
            about = (member.model, member.layer, member.unit)
            if not self._trace.can_hold(member):
                nodes.append(GraphNode(*about, _OUTPUT, None, is_constant))
                continue
            what = f"Holding member {at + 1} of {len(self._trace.members)}"
            held = self._run(what, self._hold_members({place: [at]}), self._chosen)
            # Only where the member itself is active: see the module
            rows = self._is_active[:, at]
            effect = _NO_CLASS if number is None else self._estimate_fall(held.outputs, number, rows)
            nodes.append(GraphNode(*about, effect, self._means[place][member.unit], is_constant))
            edges += [GraphEdge(at, later, self._estimate_edge(held, later, rows)) for later in self._list_later(at)]
        return nodes, edges

    def _list_later(self, at: int) -> list[int]:
        """Return the members of later layers that vary."""
        ranks = [self._trace.rank(each) for each in self._trace.members]
        # In the same layer, a member cannot change another
        return [later for later, rank in enumerate(ranks) if rank > ranks[at] and self._spread[later]]

    def _estimate_fall(self, outputs: Floats, number: int, rows: Rows | None = None) -> Estimate:
        fallen = _drop_rounding(self._own.outputs[:, number], outputs[:, number])
        return _estimate(fallen if rows is None else fallen[rows])

    def _estimate_edge(self, held: TracedImages, later: int, rows: Rows) -> Estimate:
        fallen = _drop_rounding(self._own.activations[:, later], held.activations[:, later])
        # In deviations of the later one, so that edges into different layers compare
        return _estimate(fallen[rows] / self._spread[later])

    def _explain(self, off: Floats, number: int | None) -> tuple[Estimate, Estimate]:
        """Return faithfulness and completeness, as `curves` defines them, with an interval over images."""
        if number is None:
            return _NO_CLASS, _NO_CLASS
        layers = [layer for _, layer in self._trace.places]
        # A latent is made of the units below it
        if len(layers) > len(set(layers)):
            why = Estimate(why="units and latents of one layer are members, and neither are apart from the other")
            return why, why
        every = {place: range(self._trace.count_units(place)) for place in self._trace.places}
        members = {place: {self._trace.members[at].unit for at in some} for place, some in self._trace.places.items()}
        others = {place: [unit for unit in units if unit not in members[place]] for place, units in every.items()}
        # M, 0 and C of `CircuitGraphReport.faithfulness`
        whole = self._own.outputs[:, number]
        nothing = self._run("Holding all units", self._hold(every), self._chosen).outputs[:, number]
        alone = self._run("Holding all others", self._hold(others), self._chosen).outputs[:, number]
        if is_near(float(whole.mean()), float(nothing.mean())):
            why = Estimate(n=len(whole), why="holding all units of these layers does not change the logit")
            return why, why
        sign = np.sign(whole.mean() - nothing.mean())  # the layers may speak against the class
        return (
            estimate_gap(sign * alone, sign * nothing, sign * whole),
            estimate_gap(sign * off[:, number], sign * nothing, sign * whole),
        )

    def _hold_members(self, chosen: Mapping[Place, Sequence[int]]) -> dict[Place, Rewrite]:
        """Hold these members, by place and position in the circuit, at their means."""
        return self._hold({place: [self._trace.members[at].unit for at in some] for place, some in chosen.items()})

    def _hold(self, units: Mapping[Place, Sequence[int]]) -> dict[Place, Rewrite]:
        return {
            place: scale_units(some, 0.0, [self._means[place][unit] for unit in some])
            for place, some in units.items()
            # A rewrite of no unit would only cost time
            if len(some)
        }

    def _run(self, what: str, changes: Mapping[Place, Rewrite], positions: Sequence[int]) -> TracedImages:
        """Trace the images batch after batch."""
        parts = []
        for start in range(0, len(positions), self._batch_size):
            self._progress(what, start, len(positions))
            # Decoding images is slow in one thread
            images = map_in_parallel(lambda at: self._dataset[at].image, positions[start : start + self._batch_size])
            parts.append(self._trace.run(images, changes))
        self._progress(what, len(positions), len(positions))
        return TracedImages(
            np.concatenate([each.outputs for each in parts]), np.concatenate([each.activations for each in parts])
        )


def _estimate(values: Floats) -> Estimate:
    return estimate_mean(values) if len(values) else Estimate(why="never more active than on average in these images")


def _drop_rounding(own: Floats, held: Floats) -> Floats:
    """Return what was lost, own - held; rounding counts as 0."""
    lost = own - held
    # The smallest number guards against an output that is 0 everywhere
    return np.where(np.abs(lost) <= _ROUNDING * max(float(np.abs(own).max()), 1e-30), 0.0, lost)
