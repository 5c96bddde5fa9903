"""Check a request to train a sparse auto-encoder, as far as possible without a worker."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from experiments.core import compatibility
from experiments.core.errors import InvalidInput
from experiments.core.params import MAX_COUNT
from experiments.models import Dataset, Layer, SparseAutoencoderRow, VisionModelRow
from workers.errors import RequestError
from workers.record.sparse import (
    DEFAULT_STEPS,
    KINDS,
    MAX_IMAGES,
    MAX_LATENTS,
    MAX_NAME,
    MAX_STEPS,
    MIN_IMAGES,
    MIN_UNITS,
    NAME_PATTERN,
    TOPK,
)


@dataclass(frozen=True)
class SparseWish:
    """Options of a job of kind "sparse". Without steps and images, the default number of steps applies."""

    model: str
    layer: str
    latents: int
    k: int
    dataset: str = ""
    """Key of the dataset; "" for the model's own."""
    kind: str = TOPK
    name: str = ""
    steps: int = 0
    images: int = 0
    seed: int = 0


def check_wish(wish: SparseWish) -> SparseWish:
    """Return the request with its dataset and steps filled in. Raises InvalidInput with the field."""
    _check_layer(wish)
    _check_recipe(wish)
    _check_name(wish.name)
    dataset = _find_dataset(wish)
    steps = wish.steps if wish.steps or wish.images else DEFAULT_STEPS
    return replace(wish, dataset=dataset, steps=steps)


def _check_layer(wish: SparseWish) -> Layer:
    model = VisionModelRow.objects.filter(name=wish.model, available=True).first()
    if model is None:
        raise InvalidInput("Choose a model of the list that can be used.", "model")
    if model.base:
        raise InvalidInput(
            f"{model.name} is itself an auto-encoder: its units are latents already. Choose the model below it, "
            f"{model.base}.",
            "model",
        )
    layer = model.layers.filter(name=wish.layer).first()
    if layer is None:
        raise InvalidInput(f"{model.name} has no layer “{wish.layer[:60]}”. Choose from its list.", "layer")
    if layer.units < MIN_UNITS:
        raise InvalidInput(f"{layer.name} has 1 unit: there is nothing to take apart. Choose another layer.", "layer")
    return layer


def _check_recipe(wish: SparseWish) -> None:
    if wish.kind not in KINDS:
        raise InvalidInput(f"There is no kind “{wish.kind[:60]}”. Choose one of: {', '.join(KINDS)}.", "kind")
    bounds = {
        "latents": (1, MAX_LATENTS),
        "steps": (0, MAX_STEPS),
        "images": (0, MAX_IMAGES),
        "seed": (0, MAX_COUNT),
    }
    for name, (least, most) in bounds.items():
        if not least <= (value := getattr(wish, name)) <= most:
            raise InvalidInput(f"{value:,} is out of range. Give a number from {least} to {most:,}.", name)
    if not 1 <= wish.k <= wish.latents:
        raise InvalidInput(
            f"Of {wish.latents:,} latents, 1 to {wish.latents:,} can be active at a position, not {wish.k:,}. Choose a "
            "smaller k or more latents.",
            "k",
        )
    if wish.steps and wish.images:
        raise InvalidInput("Give the number of steps or of images, not both: one follows from the other.", "steps")


def _check_name(name: str) -> None:
    if not name:
        return
    if not re.fullmatch(NAME_PATTERN, name, re.ASCII):
        raise InvalidInput(
            f"“{name[:MAX_NAME]}” cannot name an auto-encoder. Use 1 to {MAX_NAME} letters, digits, dots, hyphens and "
            "underscores, the first a letter or digit.",
            "name",
        )
    # One whose file is gone may be trained again
    if SparseAutoencoderRow.objects.filter(model__name=f"sae:{name}", model__available=True).exists():
        raise InvalidInput(f"There is an auto-encoder “{name}” already. Choose another name.", "name")


def _find_dataset(wish: SparseWish) -> str:
    """Return the key of the dataset, by default the model's own."""
    try:
        key = wish.dataset or compatibility.find_own_dataset(wish.model)
    except RequestError as error:
        raise InvalidInput(str(error), "dataset") from None
    row = Dataset.objects.filter(key=key, available=True).first()
    if row is None:
        raise InvalidInput("Choose a dataset of the list that can be used.", "dataset")
    if 0 < row.images < MIN_IMAGES:
        raise InvalidInput(
            f"{row.label or row.key} has {row.images:,} images; at least {MIN_IMAGES} are needed, some of them to "
            "measure the result on. Choose a larger dataset.",
            "dataset",
        )
    return key
