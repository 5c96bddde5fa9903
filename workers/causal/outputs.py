"""Compare outputs of a model with some units changed with its own, as figures.

The logit is the main figure of a class: contributions of units add up in logits, and a change is not hidden by a
probability near 0 or 1. Shifting all logits of a softmax equally leaves all probabilities unchanged; the divergence and
the change of probability, shown with it, reveal that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from workers.metrics.intervals import estimate_difference, estimate_mean, estimate_share
from workers.metrics.significance import compare_ranks
from workers.protocols import Scale, probabilities
from workers.record.causal import MAX_LISTED, ClassChange, ControlEffect, ImageEffect
from workers.record.estimates import Estimate, benjamini_hochberg, is_discovery
from workers.sparse.output_effect import diverge, find_same

Rows = NDArray[np.bool_]
_ROUNDING = 1e-6
"""Changes of a logit below this share of the largest one are rounding, and count as 0."""


class OutputChange:
    """Outputs (images, outputs) beside the model's own; `scale` is that of logits, None where they are no classes."""

    def __init__(self, own: Tensor, other: Tensor, scale: Scale | None) -> None:
        # Half-precision outputs are compared in double
        self._own, self._other, self._scale = own.double(), other.double(), scale
        if scale is None:
            variance = (self._own - self._own.mean(0)).square().sum(1).mean()
            # The same output for all images has no variance to hold a change against
            self.divergence = ((self._other - self._own).square().sum(1) / variance).numpy()
            self.same: Rows | None = None
        else:
            self.divergence = diverge(self._own, self._other, scale).numpy()
            self.same = find_same(self._own, self._other, scale).numpy()

    def differences(self, rows: Rows) -> NDArray[np.float64]:
        """Change of each logit (images, classes) of these images."""
        found = (self._other - self._own).numpy()[rows]
        # Relative to the largest logit, the scale on which the network rounds
        smallest = _ROUNDING * float(self._own.abs().max()) if found.size else 0.0
        return np.where(np.abs(found) <= smallest, 0.0, found)

    def estimate(self, rows: Rows, controls: Sequence[OutputChange], names: Sequence[str]) -> ImageEffect:
        """Return the figures over these images, beside those of control units."""
        same = Estimate(why="the model knows no classes")
        if self.same is not None:
            same = estimate_share(int(self.same[rows].sum()), int(rows.sum()))
        classes = [] if self._scale is None else self._test_classes(rows)
        return ImageEffect(
            images=int(rows.sum()),
            divergence=_keep_above_zero(estimate_mean(self.divergence[rows])),
            same=same,
            tested=len(classes),
            falling=sum(each == "falls" for each, _ in classes),
            rising=sum(each == "rises" for each, _ in classes),
            classes=self._list_classes(rows, classes, controls, names),
            control=ControlEffect(
                divergences=tuple(float(each.divergence[rows].mean()) for each in controls),
                same=tuple(float(each.same[rows].mean()) for each in controls if each.same is not None),
            ),
        )

    def _test_classes(self, rows: Rows) -> list[tuple[Literal["falls", "rises", ""], float | None]]:
        """Return for each class whether it falls or rises beyond chance, with the adjusted p-value."""
        columns = self.differences(rows).T
        # One test for each class, so p-values are adjusted together
        adjusted = benjamini_hochberg([compare_ranks(each, np.zeros(len(each))).p for each in columns])
        return [(_direct(estimate_mean(each), p), p) for each, p in zip(columns, adjusted, strict=True)]

    def _list_classes(
        self,
        rows: Rows,
        tested: Sequence[tuple[Any, float | None]],
        controls: Sequence[OutputChange],
        names: Sequence[str],
    ) -> tuple[ClassChange, ...]:
        """List the classes that fall and rise most, the deepest fall first, without those that do not change."""
        if not tested:
            return ()
        differences = self.differences(rows)
        means = differences.mean(0)
        # Stable, so that equal changes keep the order of classes
        order = [int(each) for each in np.argsort(means, kind="stable") if differences[:, each].any()]
        # The ends of the order: falls first, rises last
        ends = order if len(order) <= 2 * MAX_LISTED else [*order[:MAX_LISTED], *order[-MAX_LISTED:]]
        before, after = (self._find_probabilities(each, rows) for each in (self._own, self._other))
        beside = np.mean([each.differences(rows).mean(0) for each in controls], axis=0) if controls else None
        return tuple(
            ClassChange(
                number=at,
                name=names[at] if at < len(names) else "",
                change=estimate_mean(differences[:, at]),
                probability=estimate_difference(after[:, at], before[:, at]),
                control=None if beside is None else float(beside[at]),
                adjusted_p=tested[at][1],
                direction=tested[at][0],
            )
            for at in ends
        )

    def _find_probabilities(self, logits: Tensor, rows: Rows) -> NDArray[np.float64]:
        return probabilities(logits[torch.from_numpy(rows)], self._scale or "").numpy()


def _keep_above_zero(figure: Estimate) -> Estimate:
    """Clip at 0: a divergence is never negative, but the interval of a mean of few images may be."""
    return figure if figure.low is None else replace(figure, low=max(0.0, figure.low))


def _direct(change: Estimate, adjusted_p: float | None) -> Literal["falls", "rises", ""]:
    """Return the direction of a class, if its interval excludes 0 and the adjusted test agrees."""
    if change.low is None or change.high is None or not is_discovery(adjusted_p):
        return ""
    return "falls" if change.high < 0 else "rises" if change.low > 0 else ""
