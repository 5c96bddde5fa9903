"""Latents instead of units (AIM): a sparse auto-encoder of a classifier's features, trained once and kept.

It learns from the unbalanced training split alone, as the classifier did.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL.Image import Image

from workers.errors import RequestError
from workers.protocols import Dataset, LabSettings, Progress, VisionModel
from workers.record.evaluation_kinds import explain_latents
from workers.sparse.recipe import SparseRecipe, check_recipe, fingerprint
from workers.sparse.storage import SparseCard
from workers.sparse.training import find_source, train_sparse

_MAX_ACTIVE, _ACTIVE_SHARE = 8, 4
"""k is 8, but at most a quarter of few latents."""
_STEPS = 500


class LatentReader:
    """How active the latents of an auto-encoder are in images, for `features.measure_features`."""

    def __init__(self, model: VisionModel, layer: str) -> None:
        self.name = model.name
        self.revision = model.revision
        self._model = model
        self._layer = layer

    def read_features(self, images: Sequence[Image]) -> NDArray[np.float32]:
        """Return (images, latents): the highest value of each map, as runs see it."""
        # The maximum over places, the value that runs are shown
        return self._model.maps(images, [self._layer])[self._layer].amax((2, 3)).numpy(force=True)


def train_latents(
    settings: LabSettings,
    model: VisionModel,
    layer: str,
    dataset_key: str,
    dataset: Dataset,
    latents: int,
    seed: int,
    progress: Progress,
) -> SparseCard:
    """Return the card of an auto-encoder with so many latents of a layer; the same for the same classifier and seed.

    Raises RequestError for a number that cannot be learnt, or too small a dataset; Cancelled if `progress` does.
    """
    if why := explain_latents(latents):
        raise RequestError(why)
    source = find_source(model.name, model, layer, dataset_key, dataset)
    # Few latents cannot have eight active at once
    recipe = SparseRecipe(latents, min(_MAX_ACTIVE, latents // _ACTIVE_SHARE), steps=_STEPS, seed=seed)
    check_recipe(recipe, model, source.layer, dataset)
    mark = fingerprint(recipe, model, source.layer, dataset)[:8]
    stem = re.sub(r"[^\w.-]+", "-", model.name, flags=re.ASCII).strip("-.")
    return train_sparse(settings, source, recipe, f"{stem[:60]}-{latents}-latents-{mark}", progress)
