"""Synthetic neurons: units with known selectivity, computed from the concepts that a detector finds.

`workers.detectors` finds concepts; this module converts them to maps. Loaded through the registry as
"synthetic:DETECTOR". Cost: a call searches each image once for each concept, however many neurons share it. A whole
layer (as for an index) needs all concepts of its neurons; `unit_maps` needs those of one neuron, one or two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256

import numpy as np
import torch
from numpy.typing import NDArray
from PIL.Image import Image

from workers import registry
from workers.protocols import Detector, LabSettings, LayerInfo, check_layers
from workers.vision_models.synthetic.neuron import (
    RELEASED_NEURONS,
    TABLE_A4,
    ConceptMask,
    Neuron,
    NeuronTable,
    build_table,
)

PAPER = "grounding-dino:paper"
"""The detector of the published code with its thresholds. Masks are dilated as there."""

GRID = 56
"""Side of the maps. Every image is divided into this many rows and columns, whatever its shape."""
REACH = 2
"""Cells by which masks are dilated. The paper gives no number; this is 1/28 of the image to each side."""
PUBLISHED_SIDE, PUBLISHED_STEPS = 224, 9
"""The published code dilates masks of this side this many times by an ellipse that reaches 2 pixels, 18 in all."""


def load(settings: LabSettings, name: str) -> SyntheticModel:
    """Return the neurons on the detector called `name`. Raises UnknownName with the existing detectors, MissingPart."""
    detector: Detector = registry.load(registry.DETECTORS, name)(settings)
    own: Mapping[str, str] | None = getattr(detector, "neurons", None)
    # A detector that knows few concepts brings neurons of its own; others get the paper's table.
    table = RELEASED_NEURONS if name == PAPER else build_table(**own) if own else TABLE_A4
    return SyntheticModel(detector, table, settings.batch_size, published=name == PAPER)


def missing(settings: LabSettings, name: str) -> str:
    """Say what keeps the detector from loading, and how to get it; "" if nothing does."""
    return registry.missing(registry.DETECTORS, name, settings)


class SyntheticModel:
    """A `protocols.ConceptModel` with the layers of its table. The detector has its own lock.

    `published` dilates masks as the published code does, instead of by `REACH`.
    """

    def __init__(self, detector: Detector, table: NeuronTable, batch_size: int, *, published: bool = False) -> None:
        self.name = f"synthetic:{detector.name}"
        # Part of the revision: other neurons or another dilation give other maps, which must not be mixed in an index.
        made = f"{table} {GRID} {f'{PUBLISHED_SIDE} {PUBLISHED_STEPS}' if published else REACH}"
        self.revision = f"{detector.revision}-{sha256(made.encode()).hexdigest()[:8]}"
        self._on_grid = _dilate_as_published if published else _resize_to_grid
        self._detector = detector
        self._table = table
        self._batch_size = batch_size

    def layers(self) -> Sequence[LayerInfo]:
        """Return the kinds of neurons in the order of the table."""
        named = {kind: tuple(neuron.name for neuron in neurons) for kind, neurons in self._table.items()}
        return [LayerInfo(kind, kind, "concept", len(names), names) for kind, names in named.items()]

    def maps(self, images: Sequence[Image], layers: Sequence[str]) -> Mapping[str, torch.Tensor]:
        """Return (batch, units, 56, 56) for each layer: a neuron's value inside its dilated mask, 0 elsewhere."""
        check_layers(self.name, layers, self._table)
        wanted = {layer: self._table[layer] for layer in layers}
        seen = self._look(images, [neuron for neurons in wanted.values() for neuron in neurons])
        return {layer: _maps(neurons, seen) for layer, neurons in wanted.items()}

    def unit_maps(self, images: Sequence[Image], layer: str, unit: int) -> torch.Tensor:
        """Return (batch, 56, 56): the maps of one neuron, at the cost of its own concepts."""
        check_layers(self.name, [layer], self._table)
        neuron = self._table[layer][unit]
        return _maps([neuron], self._look(images, [neuron]))[:, 0]

    def _look(self, images: Sequence[Image], neurons: Sequence[Neuron]) -> list[dict[str, ConceptMask]]:
        """Return which of the neurons' concepts each image shows."""
        # Each concept once: detection is the slow part.
        concepts = list(dict.fromkeys(concept for neuron in neurons for concept in neuron.concepts))
        found: list[dict[str, ConceptMask]] = []
        for start in range(0, len(images), self._batch_size):
            for places in self._detector.detect(images[start : start + self._batch_size], concepts):
                seen = {}
                for concept, here in places.items():
                    if here:
                        # Mean, not maximum, as in the published code; so it stays in [0, 1].
                        value = sum(each.confidence for each in here) / len(here)
                        seen[concept] = ConceptMask(value, self._on_grid(each.mask for each in here))
                found.append(seen)
        return found


def _resize_to_grid(masks: Iterable[NDArray[np.bool_]]) -> NDArray[np.bool_]:
    """Return the union of the masks, dilated, (56, 56). A cell belongs to a mask if any of its pixels does."""
    # Maximum, not mean: small objects must not vanish on the grid.
    cells = [torch.nn.functional.adaptive_max_pool2d(torch.from_numpy(mask).float()[None], GRID) for mask in masks]
    together = torch.stack(cells).amax(0)  # (1, 56, 56)
    wide = torch.nn.functional.max_pool2d(together, 2 * REACH + 1, stride=1, padding=REACH)
    return wide[0].numpy() > 0


def _dilate_as_published(masks: Iterable[NDArray[np.bool_]]) -> NDArray[np.bool_]:
    """Return the same, (56, 56), dilated at 224 x 224 pixels by OpenCV's ellipse of 5 x 5, nine times."""
    pool, side = torch.nn.functional.max_pool2d, (PUBLISHED_SIDE, PUBLISHED_SIDE)
    # Nearest pixels, so masks stay 0 or 1.
    scaled = [torch.nn.functional.interpolate(torch.from_numpy(mask).float()[None, None], side) for mask in masks]
    wide = torch.cat(scaled).amax(0)
    for _ in range(PUBLISHED_STEPS):  # the ellipse: three rows of 5 pixels, and one pixel above and below
        wide = torch.maximum(pool(wide, (3, 5), 1, (1, 2)), pool(wide, (5, 1), 1, (2, 0)))
    return torch.nn.functional.adaptive_max_pool2d(wide, GRID)[0].numpy() > 0


def _maps(neurons: Sequence[Neuron], images: Sequence[Mapping[str, ConceptMask]]) -> torch.Tensor:
    """Return (images, neurons, 56, 56)."""
    maps = torch.zeros(len(images), len(neurons), GRID, GRID, dtype=torch.float32)
    for row, seen in enumerate(images):
        for unit, neuron in enumerate(neurons):
            if response := neuron.respond(seen):
                maps[row, unit] = torch.from_numpy(response.mask) * response.value
    return maps
