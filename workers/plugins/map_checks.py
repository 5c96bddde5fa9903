"""Check every batch of maps that a plug-in's vision model returns, so that its mistakes are reported at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from PIL.Image import Image

from workers.errors import MachineryError, MaiaError, MissingPart
from workers.protocols import VisionModel
from workers.weights import check_finite, get_first_line, is_out_of_memory

_NEEDED = ("name", "revision", "layers", "maps")


class MapChecks:
    """The checks of one model. Each layer keeps the height and width that its first maps had."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._areas: dict[str, tuple[int, ...]] = {}

    def check(self, maps: Mapping[str, torch.Tensor], units: Mapping[str, int], batch: int) -> None:
        """Raise MachineryError for a layer whose maps are not (batch, units, height, width) as they were before,
        NotFinite for NaN and infinities."""
        for layer, wanted in units.items():
            found = maps.get(layer)
            if not isinstance(found, torch.Tensor):
                raise MachineryError(f"{self._model} gives no maps of {layer}. Correct the plug-in.")
            shape = tuple(found.shape)
            if len(shape) != 4 or shape[:2] != (batch, wanted):
                self._refuse(layer, shape, f"({batch}, {wanted}, height, width)")
            # The first maps set the shape; an empty batch has none
            if batch and self._areas.setdefault(layer, shape[2:]) != shape[2:]:
                self._refuse(layer, shape, f"{(batch, wanted, *self._areas[layer])}, as for the images before")
            check_finite(found, layer, self._model)

    def _refuse(self, layer: str, shape: tuple[int, ...], wanted: str) -> None:
        raise MachineryError(
            f"{layer} of {self._model} gives maps of shape {shape} for {wanted}. The maps of a layer must have one "
            "shape for all images: correct the plug-in, or name another layer."
        )


class CheckedModel:
    """A vision model that a plug-in wrote itself, with its maps checked; all else is the model's own."""

    def __init__(self, model: VisionModel, key: str) -> None:
        # Before the first image: a missing method would be found only then
        if lacking := [each for each in _NEEDED if not hasattr(model, each)]:
            raise MissingPart(
                f"What {key} loads is no vision model: {type(model).__name__} has no {', '.join(lacking)}. Return "
                "`study(network, …)` of workers.plugins.modules, or a VisionModel of workers.protocols."
            )
        self._model = model
        self._key = key
        self._checks = MapChecks(key)

    # `about`, `outputs` and other optional methods stay the model's own
    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def maps(self, images: Sequence[Image], layers: Sequence[str]) -> Mapping[str, torch.Tensor]:
        """As `protocols.VisionModel.maps`. Raises MachineryError where the plug-in raises, and as `MapChecks.check`."""
        try:
            found = self._model.maps(images, layers)
        except MaiaError:
            raise
        except Exception as error:
            if is_out_of_memory(error):
                raise
            raise MachineryError(
                f"{self._key} cannot look at images: {get_first_line(error)}. Correct the plug-in."
            ) from error
        units = {info.name: info.units for info in self._model.layers()}
        self._checks.check(found, {layer: units[layer] for layer in layers}, len(images))
        return found
