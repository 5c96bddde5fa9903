"""Change the unit under study inside its model, for `system.ablate`. Made by `laboratory` for runs that ask for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from PIL.Image import Image

from workers.causal.measuring import check_question
from workers.causal.single_images import describe_changes
from workers.errors import RequestError, ToolMisuse
from workers.lab import arguments
from workers.protocols import Progress, RewritableModel, VisionModel, no_progress
from workers.record.causal import MAX_FACTOR, CausalQuestion
from workers.record.systems import SystemSpec

NOT_ASKED = (
    "system.ablate is not part of this run. Go on without it. A person who wants it asks again with “Ablation” ticked "
    "under “Limits and settings” of New run (API: ablation; terminal: --ablation)."
)


class Ablation:
    """Changes one unit, or latent, of a model."""

    def __init__(self, model: VisionModel, spec: SystemSpec, batch_size: int, progress: Progress = no_progress) -> None:
        self._model, self._spec, self._batch_size, self._progress = model, spec, batch_size, progress

    def check(self, factor: Any = 0.0) -> tuple[RewritableModel, float]:
        """Return the model and the factor. Raises ToolMisuse for an invalid factor, or a system that cannot be
        changed."""
        number = arguments.check_number(factor, f"factor must be a number from 0 to {MAX_FACTOR:g}")
        try:
            question = CausalQuestion((self._spec.unit,), number)
            return check_question(self._model, self._spec.layer, question), number
        except RequestError as error:
            raise ToolMisuse(str(error)) from error

    def describe(self, images: Sequence[Image], factor: Any) -> list[dict[str, Any]]:
        """See `describe_changes`. Raises ToolMisuse; Cancelled between two batches."""
        model, number = self.check(factor)
        found: list[dict[str, Any]] = []
        # In batches, so that a person can stop the run between two of them.
        for start in range(0, len(images), self._batch_size):
            self._progress(f"Running {model.name} with the unit changed", start, len(images))
            batch = images[start : start + self._batch_size]
            found += describe_changes(model, self._spec.layer, self._spec.unit, number, batch)
        return found
