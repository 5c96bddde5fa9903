"""Options of a sparse auto-encoder and their limits, for pages, commands and training."""

from __future__ import annotations

TOPK, BATCHTOPK, MATRYOSHKA = KINDS = ("topk", "batchtopk", "matryoshka")
"""Kinds that can be trained here."""
RELU, JUMPRELU = "relu", "jumprelu"
"""Published kinds. They can be added, but not trained here."""
RECIPE = ("latents", "k", "kind", "steps", "images", "seed")
"""Training options that a user can choose."""
DEFAULT_STEPS = 5_000
"""Each step has 4,096 positions."""
MIN_UNITS, MIN_IMAGES = 2, 100
"""Minimum units of the layer, and images of the dataset: some images are held out to measure the result."""
MAX_LATENTS, MAX_STEPS, MAX_IMAGES = 1 << 20, 10_000_000, 1_000_000_000
"""Limits of the page and the API."""
MAX_NAME = 100
# One of these is for the first character
NAME_PATTERN = rf"\w[\w.-]{{0,{MAX_NAME - 1}}}"
"""ASCII only."""
_LATENTS_PER_UNIT = 4
_LARGE_LAYER, _K, _LARGE_K = 256, 8, 32


def default_latents(units: int) -> int:
    """Return the default number of latents for a layer of this many units."""
    return min(_LATENTS_PER_UNIT * units, MAX_LATENTS)


def default_k(units: int) -> int:
    """Return the default number of active latents per position for a layer of this many units. It is larger in a
    large layer."""
    return min(_LARGE_K if units > _LARGE_LAYER else _K, default_latents(units))
