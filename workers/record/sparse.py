"""What can be asked of a sparse auto-encoder, as pages, commands and the training itself check it."""

from __future__ import annotations

TOPK, BATCHTOPK, MATRYOSHKA = KINDS = ("topk", "batchtopk", "matryoshka")
"""What can be trained here."""
RELU, JUMPRELU = "relu", "jumprelu"
"""Kinds that others publish. They can be added, but not trained here."""
RECIPE = ("latents", "k", "kind", "steps", "images", "seed")
"""What a person may choose of how one is trained."""
DEFAULT_STEPS = 5_000
"""Of 4,096 positions each."""
MIN_UNITS, MIN_IMAGES = 2, 100
"""Of the layer, and of the dataset: some images are held out to measure the result on."""
MAX_LATENTS, MAX_STEPS, MAX_IMAGES = 1 << 20, 10_000_000, 1_000_000_000
"""What a page or the API takes at most."""
MAX_NAME = 100
NAME_PATTERN = rf"\w[\w.-]{{0,{MAX_NAME - 1}}}"
"""ASCII alone."""
_LATENTS_PER_UNIT = 4
_LARGE_LAYER, _K, _LARGE_K = 256, 8, 32


def default_latents(units: int) -> int:
    """Latents for a layer with so many units, where nobody says how many."""
    return min(_LATENTS_PER_UNIT * units, MAX_LATENTS)


def default_k(units: int) -> int:
    """Active latents at a position, for a layer with so many units: more in a large layer."""
    return min(_LARGE_K if units > _LARGE_LAYER else _K, default_latents(units))
