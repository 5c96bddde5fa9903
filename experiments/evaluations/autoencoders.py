"""Sparse autoencoders that an evaluation compares with their layer. All must belong to the same layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from experiments.core.errors import InvalidInput
from experiments.models import SparseAutoencoderRow

MAX_AUTOENCODERS = 12
"""Maximum number of autoencoders in one evaluation."""
_PLACE = ("model_key", "model_revision", "layer")
"""Fields of the card that all must share."""


def list_autoencoders() -> list[SparseAutoencoderRow]:
    """Return usable autoencoders by layer, the sparsest first."""
    return sorted(_list_usable(), key=lambda row: (*(row.card[name] for name in _PLACE), *_order(row)))


def _list_usable() -> list[SparseAutoencoderRow]:
    """Return available autoencoders with a readable card."""
    rows = SparseAutoencoderRow.objects.filter(model__available=True).select_related("model")
    # A row without a card was registered before its file could be read.
    return [row for row in rows if row.card]


def _order(row: SparseAutoencoderRow) -> tuple[float, str]:
    return row.card["quality"]["active"], row.model.name


def find_compared(names: Sequence[str]) -> list[SparseAutoencoderRow]:
    """Return the autoencoders of these models ("sae:NAME"), the sparsest first. Raises InvalidInput."""
    # Repeated names count once.
    if not 1 <= len(set(names)) <= MAX_AUTOENCODERS:
        raise InvalidInput(
            f"Choose 1 to {MAX_AUTOENCODERS} auto-encoders of a layer, not {len(set(names))}.", "autoencoders"
        )
    found = sorted((row for row in _list_usable() if row.model.name in names), key=_order)
    there = {row.model.name for row in found}
    if unknown := [name for name in names if name not in there]:
        raise InvalidInput(f"There is no auto-encoder “{unknown[0][:60]}”. Choose one of the list.", "autoencoders")
    first, *others = found
    for other in others:
        # Latents of different layers explain different units, so their scores cannot be compared
        if any(first.card[name] != other.card[name] for name in _PLACE):
            raise InvalidInput(
                f"{first.model.name} is of {first.card['layer']} of {first.card['model_key']}, and {other.model.name} "
                f"of {other.card['layer']} of {other.card['model_key']}: choose auto-encoders of one layer.",
                "autoencoders",
            )
    return found


def compare_options(names: Sequence[str]) -> dict[str, Any]:
    """Return the options of an evaluation of these: names, model and layer. Raises InvalidInput."""
    rows = find_compared(names)
    card = rows[0].card
    return {
        "autoencoders": [row.model.name for row in rows],
        "model": card["model_key"],
        "layers": [card["layer"]],
    }
