"""Find the units of a layer that a class rests on, and compare them with sets of the same size that are no circuit.

For each seed the images are halved: one half chooses the order of the units, the other measures. Units are held at
their means over all images.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL.Image import Image

from workers.causal.rewrites import PlaceMeans
from workers.circuits.ablation import AblatedLogit, find_effects, integrate_gradients, rank_by_effect
from workers.circuits.coactivation import find_lift, rank_by_lift
from workers.circuits.curves import CircuitPoint, measure_curve
from workers.errors import RequestError
from workers.metrics.intervals import estimate_mean
from workers.protocols import Progress, RewritableModel, find_classes
from workers.record.circuits import MIN_IMAGES, CircuitCurve, CircuitReport, FoundMember

Positions = NDArray[np.int64]
"""Of images among those of the activations."""
SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
"""Sizes of circuits, as shares of the nodes."""
EXACT = 1_024
"""Maximum number of nodes for ablating each by itself, a pass for each."""
_MEMBERS = 20
"""Members that a report names."""


@dataclass(frozen=True)
class CircuitSide:
    """A model with the activations (images, units) of a layer on the images: latents, or the neurons below them."""

    model: RewritableModel
    layer: str
    activations: NDArray[np.floating[Any]]
    bare: RewritableModel | None = None
    """The same model without what its latents leave unexplained."""

    @property
    def nodes(self) -> list[int]:
        """Units that vary among the images."""
        # Constant units explain nothing: held at their means they are what they were
        return [int(unit) for unit in np.flatnonzero(np.ptp(self.activations, axis=0) > 0)]


@dataclass(frozen=True)
class CircuitWish:
    """The parameters of a search."""

    target: int
    """Number of the class."""
    images: int = 100
    """On which the class is seen most."""
    seeds: int = 3
    exact: bool = True
    """True if each node is ablated by itself, up to `EXACT` of them; otherwise gradients are used, which is faster."""


def find_target(model: RewritableModel, name: str) -> int:
    """Return the number of a class, by its name or number. Raises RequestError."""
    classes = find_classes(model)
    if classes is None:
        raise RequestError(f"{model.name} knows no classes, so nothing of it rests on a circuit. Choose a classifier.")
    if name in classes.names:
        return classes.names.index(name)
    # `isdigit` accepts digits of other scripts too
    if name.isascii() and name.isdigit() and int(name) < classes.units:
        return int(name)
    some = ", ".join(classes.names[:8])
    raise RequestError(f"{model.name} has no class {name[:60]!r}. Choose one such as {some}; or a number.")


def find_circuit(
    side: CircuitSide, below: CircuitSide | None, images: Sequence[Image], wish: CircuitWish, progress: Progress
) -> CircuitReport:
    """Return the report on a class: `images` are those of the activations; `below` are the neurons, where units are
    latents.

    Raises RequestError where too few images are there, and what `progress` raises.
    """
    search = _CircuitSearch(side, images, wish, progress)
    beside = _CircuitSearch(below, images, wish, progress) if below else None
    own = side.model.outputs(images, side.layer)[:, wish.target].double().numpy()
    # 1. The images that show the class most; stable, so that equal logits keep the order
    chosen = np.argsort(-own, kind="stable")[: wish.images]
    if len(chosen) < MIN_IMAGES:
        raise RequestError(f"{len(chosen)} images are too few: {MIN_IMAGES} are needed. Name a larger dataset.")
    shown = np.isin(np.arange(len(images)), chosen)
    # A small layer gives the same size for several shares
    sizes = sorted({max(1, round(share * len(side.nodes))) for share in SHARES})
    points: dict[str, list[list[CircuitPoint]]] = defaultdict(list)
    effects = []
    for seed in range(wish.seeds):
        # 2. For each seed: one half chooses, the other measures
        choosing, measuring = _halve(chosen, seed)
        whole = search.measure_whole(measuring)
        found = search.find_effects(choosing, seed)
        effects.append(found)
        by_effect = rank_by_effect(side.nodes, found)
        # Orders that are compared, each of all nodes
        orders = {
            "effect" if search.is_exact else "gradients": by_effect,
            "lift": search.order_by_lift(shown, measuring),
            "random": np.random.default_rng([seed, 46]).permutation(side.nodes).tolist(),
        }
        # Beside exact effects, gradients show how good they are
        if search.is_exact:
            orders["gradients"] = rank_by_effect(side.nodes, search.find_gradients(choosing, seed))
        for method, order in orders.items():
            points[method] += search.measure(measuring, order, sizes, whole, f"{method}, seed {seed}")
        if side.bare:
            what = f"error left out, seed {seed}"
            points["bare"] += search.measure(measuring, by_effect, sizes, whole, what, side.bare)
        if beside:
            order = rank_by_effect(beside.side.nodes, beside.find_effects(choosing, seed))
            points["neurons"] += beside.measure(measuring, order, sizes, whole, f"neurons, seed {seed}")
    # 3. Curves over the seeds
    curves = tuple(_summarise(method, sizes, some) for method, some in points.items() if some)
    return search.report(len(chosen), curves, np.mean(effects, axis=0), find_lift(side.activations, shown))


def _halve(chosen: Positions, seed: int) -> tuple[Positions, Positions]:
    mixed = np.random.default_rng([seed, 45]).permutation(chosen)
    return mixed[: len(mixed) // 2], mixed[len(mixed) // 2 :]


class _CircuitSearch:
    """One side's part of the search."""

    def __init__(self, side: CircuitSide, images: Sequence[Image], wish: CircuitWish, progress: Progress) -> None:
        self.side = side
        self._images = images
        self._wish = wish
        self._progress = progress
        # Means over all images, also those that do not show the class
        means = PlaceMeans()
        side.model.outputs(images, side.layer, means.read)
        self._means = means.find(range(side.activations.shape[1]))

    def _read_logit(self, positions: Positions, model: RewritableModel | None = None) -> AblatedLogit:
        images = [self._images[at] for at in positions]
        return AblatedLogit(model or self.side.model, self.side.layer, self._wish.target, images, self._means)

    @property
    def is_exact(self) -> bool:
        """True if each node is ablated by itself; of many nodes only gradients are computed."""
        return self._wish.exact and len(self.side.nodes) <= EXACT

    def find_effects(self, choosing: Positions, seed: int) -> NDArray[np.float64]:
        """Return the effect of each node, on the images that choose."""
        if not self.is_exact:
            return self.find_gradients(choosing, seed)
        what = f"Ablating {self.side.model.name}, seed {seed}"
        return find_effects(self._read_logit(choosing), self.side.nodes, what, self._progress)

    def find_gradients(self, choosing: Positions, seed: int) -> NDArray[np.float64]:
        """Return the same to first order."""
        what = f"Gradients of {self.side.model.name}, seed {seed}"
        return integrate_gradients(self._read_logit(choosing), what, self._progress)[self.side.nodes]

    def order_by_lift(self, shown: NDArray[np.bool_], measuring: Positions) -> list[int]:
        """Rank all nodes, by the images that choose, not by those that measure."""
        # Images that measure must not choose
        seen = np.ones(len(shown), bool)
        seen[measuring] = False
        return rank_by_lift(self.side.nodes, find_lift(self.side.activations[seen], shown[seen]))

    def measure_whole(self, measuring: Positions) -> float:
        """Return the mean logit with nothing held, the same at every layer and for latents and neurons."""
        return self._read_logit(measuring).measure([])

    def measure(
        self,
        measuring: Positions,
        order: Sequence[int],
        sizes: Sequence[int],
        whole: float,
        what: str,
        model: RewritableModel | None = None,
    ) -> list[list[CircuitPoint]]:
        """Return the curve of an order, as a list of one; empty where there is nothing to explain. `model` takes the
        side's place, and explains what that one says."""
        logit = self._read_logit(measuring, model)
        found = measure_curve(logit, order, sizes, f"Measuring circuits, {what}", self._progress, whole)
        # A list, so that several seeds add up; empty where nothing changes the logit
        return [found] if found else []

    def report(
        self, images: int, curves: tuple[CircuitCurve, ...], effects: NDArray[np.float64], lift: NDArray[np.float64]
    ) -> CircuitReport:
        """Return the report with the strongest members, by effect."""
        side, target = self.side, self._wish.target
        classes = find_classes(side.model)
        name = classes.names[target] if classes and target < len(classes.names) else str(target)
        # In either direction: a member may also suppress the class
        strongest = np.argsort(-np.abs(effects), kind="stable")[:_MEMBERS]
        return CircuitReport(
            model=side.model.name,
            layer=side.layer,
            target=name,
            nodes=len(side.nodes),
            images=images,
            seeds=self._wish.seeds,
            curves=curves,
            members=tuple(
                FoundMember(side.nodes[at], float(effects[at]), float(lift[side.nodes[at]])) for at in strongest
            ),
            why="" if curves else f"Units of {side.layer} held at their means do not change the logit of {name}.",
        )


def _summarise(method: str, sizes: Sequence[int], found: Sequence[Sequence[CircuitPoint]]) -> CircuitCurve:
    """Return the curve over seeds, each of which has a point for each size."""
    by_size = list(zip(*found, strict=True))
    return CircuitCurve(
        method,
        tuple(sizes),
        tuple(estimate_mean([each.faithfulness for each in some]) for some in by_size),
        tuple(estimate_mean([each.completeness for each in some]) for some in by_size),
    )
