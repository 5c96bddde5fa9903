"""The recipe and plan of a training, and checks of what cannot be trained.

Rates, warm-up, gradient clipping and the auxiliary loss follow the reference trainers of TopK and BatchTopK (Gao et
al., arXiv 2406.04093; the library dictionary_learning).
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass

from workers.errors import RequestError
from workers.protocols import Dataset, LayerInfo, VisionModel
from workers.record.sparse import DEFAULT_STEPS, KINDS, MIN_IMAGES, MIN_UNITS, TOPK

_VERSION = 1
"""Changes with the recipe: checkpoints of an earlier version are not continued."""
_RATE, _RATE_LATENTS = 2e-4, 1 << 14
# A fixed window would never end in a short run, so each is at most a share of the run.
_WARM_UP, _WARM_UP_SHARE = 1_000, 10
_DECAY_SHARE = 5
_DEAD_AFTER, _DEAD_SHARE = 10_000_000, 20


@dataclass(frozen=True)
class SparseRecipe:
    """How an auto-encoder is trained; as many steps as `steps`, or as positions of so many `images` make."""

    latents: int
    k: int
    kind: str = TOPK
    steps: int = 0
    images: int = 0
    batch: int = 4096
    """Positions."""
    seed: int = 0

    def count_steps(self, per_image: int) -> int:
        """Return the number of steps, where an image gives so many positions."""
        return self.steps or -(-self.images * per_image // self.batch) or DEFAULT_STEPS


@dataclass(frozen=True)
class TrainingPlan:
    """What follows from a recipe and its number of steps."""

    steps: int
    batch: int
    latents: int

    def rate(self, step: int) -> float:
        """Return the learning rate of a step, from 0 on: warm-up, constant, and decay to 0 at the end."""
        up = (step + 1) / self.warm_up
        down = _DECAY_SHARE * (self.steps - step) / self.steps
        # Larger dictionaries learn with smaller steps, by the square root (Gao et al.).
        return _RATE * (_RATE_LATENTS / self.latents) ** 0.5 * min(1.0, up, down)

    @property
    def warm_up(self) -> int:
        return max(1, min(_WARM_UP, self.steps // _WARM_UP_SHARE))

    @property
    def dead_after(self) -> int:
        """Return the positions without an activation after which a latent counts as dead."""
        return max(1, min(_DEAD_AFTER, self.steps * self.batch // _DEAD_SHARE))

    @property
    def threshold_decay(self) -> float:
        """Return the share of the running threshold that a step keeps: .999 as published, less in a short run."""
        return 1 - 1 / self.warm_up


def check_recipe(recipe: SparseRecipe, model: VisionModel, layer: LayerInfo, dataset: Dataset) -> None:
    """Raise RequestError for a recipe that cannot be followed."""
    if recipe.kind not in KINDS:
        raise RequestError(f"There is no kind {recipe.kind!r}. Choose one of: {', '.join(KINDS)}.")
    if not 1 <= recipe.k <= recipe.latents:
        raise RequestError(
            f"k is {recipe.k:,} with {recipe.latents:,} latents: of those, 1 to {recipe.latents:,} can be active at a "
            "position. Choose a smaller k or more latents."
        )
    check_source(model, layer, dataset)
    if recipe.steps and recipe.images:
        raise RequestError("Give the number of steps or of images, not both: one follows from the other.")


def check_source(model: VisionModel, layer: LayerInfo, dataset: Dataset) -> None:
    """Raise RequestError for a layer or dataset that no auto-encoder can be measured on."""
    if layer.units < MIN_UNITS:
        raise RequestError(
            f"{layer.name} of {model.name} has {layer.units} unit: there is nothing to take apart. Choose another "
            "layer."
        )
    if len(dataset) < MIN_IMAGES:
        # A twentieth is held out, so a small dataset would leave none.
        raise RequestError(
            f"The dataset {dataset.name} has {len(dataset):,} images; at least {MIN_IMAGES} are needed, some of them "
            "to measure the result on. Choose a larger dataset."
        )


def check_positions(recipe: SparseRecipe, positions: int) -> None:
    """Raise RequestError if there are more latents than examples to learn them from."""
    if recipe.latents > positions:
        raise RequestError(
            f"{recipe.latents:,} latents cannot be learnt from {positions:,} positions, which is all that the images "
            "give. Choose fewer latents or a larger dataset."
        )


def fingerprint(recipe: SparseRecipe, model: VisionModel, layer: LayerInfo, dataset: Dataset) -> str:
    """Return a hash of all that a trained auto-encoder follows from."""
    # The version is part of it, so that a changed recipe makes another auto-encoder.
    facts = [
        _VERSION,
        asdict(recipe),
        [model.name, model.revision],
        [layer.name, layer.path, layer.kind, layer.units, layer.scale],
        [dataset.name, dataset.revision, len(dataset)],
    ]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode("utf-8", "replace")).hexdigest()
