"""Measure how a change of one unit changes the model's output for single images, as figures for programs.

Without intervals and control units: `measuring` has these, over many images of a dataset.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL.Image import Image
from torch import Tensor

from workers.causal.outputs import OutputChange
from workers.causal.rewrites import scale_units
from workers.errors import NotFinite, RequestError
from workers.protocols import LayerInfo, RewritableModel, Scale, find_classes

MAX_CLASSES = 3
"""Maximum number of classes in each direction."""
_DIGITS = 4


def describe_changes(
    model: RewritableModel, layer: str, unit: int, factor: float, images: Sequence[Image]
) -> list[dict[str, Any]]:
    """Return for each image how the output changes when the unit is multiplied by `factor`: plain JSON.

    With classes: "falls" and "rises", [class, change of its logit], the largest first; "same_answer"; "divergence" in
    nats. Without: "change", the length of the output's change over that of the output; None for an output of length 0.
    Raises RequestError for a factor that makes the output too large to be a number.
    """
    classes = find_classes(model)
    own = model.outputs(images, layer).cpu()
    other = _read_changed(model, layer, unit, factor, images)
    # One image at a time, so that no figure depends on the images beside it
    pairs = [(own[at : at + 1], other[at : at + 1]) for at in range(len(images))]
    if classes is None:
        return [{"change": _find_relative_change(*pair)} for pair in pairs]
    return [_describe_classes(*pair, classes, classes.scale) for pair in pairs]


def _read_changed(model: RewritableModel, layer: str, unit: int, factor: float, images: Sequence[Image]) -> Tensor:
    try:
        # The reference 0: the unit is multiplied, as the program asked
        found = model.outputs(images, layer, scale_units([unit], factor, [0.0])).cpu()
        is_finite = bool(found.isfinite().all())
    except NotFinite:  # the model's own output was read before, so its weights are sound
        is_finite = False
    if not is_finite:
        raise RequestError(
            f"With the factor {factor:g} the output of {model.name} is too large to be a number. Give a smaller factor."
        )
    return found


def _describe_classes(own: Tensor, other: Tensor, classes: LayerInfo, scale: Scale) -> dict[str, Any]:
    found = OutputChange(own, other, scale)
    (differences,) = found.differences(np.ones(1, bool))
    assert found.same is not None
    return {
        "falls": _list_falling(differences, classes.names, 1),
        "rises": _list_falling(-differences, classes.names, -1),
        "same_answer": bool(found.same[0]),
        # Rounding alone can make it negative
        "divergence": _round(max(0.0, float(found.divergence[0]))),
    }


def _list_falling(differences: NDArray[np.float64], names: Sequence[str], sign: int) -> list[list[Any]]:
    """List the classes that fall most, as [class, `sign` times its change]."""
    # Only those that fall: the rest of the smallest may rise
    order = [int(each) for each in np.argsort(differences, kind="stable")[:MAX_CLASSES] if differences[each] < 0]
    return [[names[at] if at < len(names) else f"class {at}", _round(sign * float(differences[at]))] for at in order]


def _find_relative_change(own: Tensor, other: Tensor) -> float | None:
    length = float(own.double().norm())
    return _round(float((other.double() - own.double()).norm()) / length) if length else None


def _round(value: float) -> float:
    """Round to few digits, so that a printed list of images stays short."""
    # Digits of precision, not decimals: changes may be tiny
    return float(f"{value:.{_DIGITS}g}")
