"""Run a causal check: change units of a layer, and compare the model's own output with what it was."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from workers.causal.activity import UnitActivity, draw_controls, find_activity
from workers.causal.outputs import OutputChange
from workers.causal.rewrites import PlaceMeans, scale_units
from workers.errors import MissingPart, RequestError
from workers.lab.imaging import map_in_parallel
from workers.protocols import (
    Dataset,
    LayerInfo,
    Progress,
    RewritableModel,
    Rewrite,
    Scale,
    VisionModel,
    check_rewritable,
    find_classes,
)
from workers.record.causal import CausalQuestion, CausalReport, ControlEffect, ImageEffect, find_problem

MAX_IMAGES = 500
"""Number of images of the probe split in a check."""
_OWN, _CHANGED = "own", "changed"


def check_question(model: VisionModel, layer: str, question: CausalQuestion) -> RewritableModel:
    """Return the model, if it can answer the question.

    Raises UnknownName for a layer that it does not have, MissingPart for a model or layer that cannot be rewritten,
    RequestError for units or a factor that make no sense.
    """
    # 1. The layer
    layers = model.layers()
    check_rewritable(model.name, layer, layers)
    if not hasattr(model, "outputs"):
        raise MissingPart(
            f"{model.name} has no output of its own that follows from {layer}, so no unit there can be shown to change "
            "it. Choose a unit of a classifier or of an image encoder."
        )
    # 2. The model
    rewritable = cast("RewritableModel", model)
    rewritable.outputs([], layer)  # latents, whose model below may have no output, say so here
    units = next(info.units for info in layers if info.name == layer)
    # 3. The units and the change
    if problem := find_problem(question, units):
        raise RequestError(problem[1])
    return rewritable


def measure_causal_effect(
    model: VisionModel,
    layer: str,
    question: CausalQuestion,
    dataset: Dataset,
    positions: Sequence[int],
    activations: NDArray[np.floating[Any]],
    batch_size: int,
    progress: Progress,
) -> CausalReport:
    """Measure the change of the output over the images at these positions, which `activations` (images, units) are of.

    Raises what `check_question` raises, MissingPart for outputs that are the same for all images, BrokenImage, and
    Cancelled if `progress` does.
    """
    rewritable = check_question(model, layer, question)
    activity = find_activity(activations, question.units)
    # 1. Constant units say nothing, and no pass is needed
    if len(activity.constant) == len(question.units):
        return CausalReport(constant=activity.constant, why=_explain_constant(activity, len(positions)))
    # The same change to as many random live units tells what any change would do
    draws = draw_controls(activity.live_others, len(question.units), question.seed)
    # 2. The references, if they are means
    reader = _OutputReader(rewritable, layer, dataset, positions, batch_size, progress)
    means = reader.read_means() if question.reference == "mean" else PlaceMeans()
    # 3. The change and its controls: one rewrite each
    rewrites = {
        str(name): scale_units(units, question.factor, means.find(units))
        for name, units in [(_CHANGED, question.units), *enumerate(draws)]
    }
    # 4. Run the model, and compare
    found = reader.read(rewrites)
    classes = find_classes(model)
    effects = _compare(found, classes, activity)
    scale = classes.scale if classes else None
    return CausalReport(
        measure="change" if scale is None else "binary_kl" if scale == "sigmoid" else "kl",
        everywhere=effects[0],
        most_active=effects[1],
        active_images=activity.active_images,
        constant=activity.constant,
        references=tuple(means.find(question.units)),
        draws=tuple(map(tuple, draws)),
    )


def _explain_constant(activity: UnitActivity, images: int) -> str:
    what = "never active" if activity.is_dead else "equally active"
    return (
        f"No unit of the set tells one image from another: each is {what} in all {images:,} probe images. A change of "
        "it would say nothing of what the model uses it for. Choose another unit or dataset."
    )


def _compare(
    found: Mapping[str, Tensor], classes: LayerInfo | None, activity: UnitActivity
) -> tuple[ImageEffect, ImageEffect]:
    """Compare over all images, and over those that activate the units most."""
    own = found[_OWN]
    scale: Scale | None = classes.scale if classes else None
    # Without classes the change is measured against the variance among images
    if scale is None and not bool((own - own[0]).any()):
        raise MissingPart("The model's output is the same for all images. Choose another dataset.")
    changed = OutputChange(own, found[_CHANGED], scale)
    controls = [OutputChange(own, each, scale) for name, each in found.items() if name not in (_OWN, _CHANGED)]
    names = classes.names if classes else ()
    all_images = np.ones(len(own), bool)
    # Also over the images that activate the units most: a silent unit cannot change the output
    effects = [changed.estimate(rows, controls, names) for rows in (all_images, activity.top)]
    if not controls:
        few = ControlEffect(why=f"only {len(activity.live_others):,} other units of the layer are live")
        effects = [replace(each, control=few) for each in effects]
    return effects[0], effects[1]


class _OutputReader:
    """Runs the model over the images, batch after batch."""

    def __init__(
        self,
        model: RewritableModel,
        layer: str,
        dataset: Dataset,
        positions: Sequence[int],
        batch_size: int,
        progress: Progress,
    ) -> None:
        self._model = model
        self._layer = layer
        self._dataset = dataset
        self._positions = [int(each) for each in positions]
        self._batch_size = batch_size
        self._progress = progress

    def read_means(self) -> PlaceMeans:
        """Return the mean of every unit over all places."""
        means = PlaceMeans()
        self._walk(f"Reading the means of {self._layer}", lambda batch: self._run(batch, means.read))
        return means

    def read(self, rewrites: Mapping[str, Rewrite]) -> dict[str, Tensor]:
        """Return outputs (images, outputs) by name: the model's own, and those of each rewrite."""
        parts: dict[str, list[Tensor]] = {name: [] for name in (_OWN, *rewrites)}

        def measure_batch(batch: Sequence[Any]) -> None:
            # All rewrites of a batch while its images are decoded
            parts[_OWN].append(self._run(batch, None))
            for name, rewrite in rewrites.items():
                parts[name].append(self._run(batch, rewrite))

        self._walk(f"Running {self._model.name} with units of {self._layer} changed", measure_batch)
        return {name: torch.cat(each) for name, each in parts.items()}

    def _run(self, batch: Sequence[Any], rewrite: Rewrite | None) -> Tensor:
        # On the CPU, so that outputs of many images do not fill the device
        return self._model.outputs(batch, self._layer, rewrite).cpu()

    def _walk(self, what: str, look: Callable[[Sequence[Any]], object]) -> None:
        count = len(self._positions)
        for start in range(0, count, self._batch_size):
            self._progress(what, start, count)
            batch = self._positions[start : start + self._batch_size]
            look(map_in_parallel(lambda at: self._dataset[at].image, batch))
        self._progress(what, count, count)
