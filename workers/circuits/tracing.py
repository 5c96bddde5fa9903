"""Run a network over images while some units of a circuit's layers are changed and its members are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import reduce
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from PIL.Image import Image
from torch import Tensor

from workers.errors import MissingPart, RequestError
from workers.protocols import LayerInfo, OverlaidModel, Rewrite, TraceableModel, VisionModel, check_layers
from workers.record.circuits import CircuitMember

Place = tuple[str, str]
"""Key of a model, and a layer of it."""


@dataclass(frozen=True)
class TracedImages:
    """The outputs and maps of the network for some images."""

    outputs: NDArray[np.float64]
    """(images, outputs)"""
    activations: NDArray[np.float64]
    """(images, members): the highest value of each member's map; of classes the logit."""


class MemberTrace:
    """A network, and the models that are laid over it, with the members of a circuit."""

    def __init__(
        self, network: VisionModel, overlays: Mapping[str, VisionModel], members: Sequence[CircuitMember]
    ) -> None:
        """Raise UnknownName, RequestError and MissingPart for members that are not there or cannot be read so."""
        if not hasattr(network, "trace"):
            raise MissingPart(
                f"{network.name} cannot be read in one layer while another is changed, so there is no graph of its "
                "circuits. Choose a circuit of a classifier or of an image encoder."
            )
        self.network = cast("TraceableModel", network)
        self.members = members
        self._overlays = overlays
        infos = list(network.layers())
        # The order of the layers is that of computation
        self._ranks = {info.name: rank for rank, info in enumerate(infos)}
        self._infos: dict[Place, LayerInfo] = {(network.name, info.name): info for info in infos}
        for key, model in overlays.items():
            # Latents count as units of the layer that they are laid over
            self._infos |= {(key, info.name): info for info in model.layers()}
        for each in members:
            self._check(each)

    def _check(self, member: CircuitMember) -> None:
        known = [layer for model, layer in self._infos if model == member.model]
        check_layers(member.model, [member.layer], known)
        units = self._infos[member.model, member.layer].units
        if not 0 <= member.unit < units:
            raise RequestError(
                f"{member.layer} of {member.model} has units from 0 to {units - 1:,}, and no {member.unit:,}. Remove "
                "it from the circuit."
            )

    def rank(self, member: CircuitMember) -> int:
        """Return the place of its layer in the network; a latent's is that of the layer below it."""
        return self._ranks[member.layer]

    def can_hold(self, member: CircuitMember) -> bool:
        """True if the layer holds classes: these are the output itself, so nothing follows from holding them."""
        return self._infos[member.model, member.layer].kind != "logit"

    def count_units(self, place: Place) -> int:
        return self._infos[place].units

    @property
    def places(self) -> dict[Place, list[int]]:
        """Where members can be held: those of each layer, by their positions in the circuit."""
        found: dict[Place, list[int]] = {}
        for at, each in enumerate(self.members):
            if self.can_hold(each):
                found.setdefault((each.model, each.layer), []).append(at)
        return found

    def run(self, images: Sequence[Image], changes: Mapping[Place, Rewrite]) -> TracedImages:
        """Run one pass, with the maps of some of `places` rewritten; at least one image."""
        # Read once: it is computed anew at each access
        places = self.places
        read: dict[Place, list[Tensor]] = {place: [] for place in places}
        by_layer: dict[str, list[Rewrite]] = {}
        with ExitStack() as stack:
            # Locks of several overlays are taken in the order of their names, the network's after them
            for place in sorted(places, key=lambda each: (each[0] not in self._overlays, each)):
                units = [self.members[at].unit for at in places[place]]
                rewrite = _watch(units, changes.get(place), read[place])
                if place[0] in self._overlays:
                    # The overlay turns the rewrite of its latents into one of the layer below
                    rewrite = stack.enter_context(cast("OverlaidModel", self._overlays[place[0]]).lift(rewrite))
                # Latents of a layer come before its own units, so held units stay held whatever latents write.
                by_layer.setdefault(place[1], []).append(rewrite)
            chains = {layer: _chain(some) for layer, some in by_layer.items()}
            outputs = self.network.trace(images, chains).double().cpu().numpy()
        activations = np.empty((len(images), len(self.members)))
        for place, some in places.items():
            activations[:, some] = torch.cat(read[place]).double().numpy()
        # Classes are read from the output: they are in no rewritten layer
        for at, each in enumerate(self.members):
            if not self.can_hold(each):
                activations[:, at] = outputs[:, each.unit]
        return TracedImages(outputs, activations)


def _watch(units: Sequence[int], change: Rewrite | None, found: list[Tensor]) -> Rewrite:
    """Return a rewrite that makes the change, then keeps what these units are."""

    def rewrite(maps: Tensor) -> Tensor:
        changed = change(maps) if change else maps
        # After the changes there and before, so that one pass changes and reads.
        found.append(changed[:, list(units)].amax((2, 3)).cpu())
        return changed

    return rewrite


def _chain(rewrites: Sequence[Callable[[Tensor], Tensor]]) -> Rewrite:
    """Return a rewrite that makes one after the other."""
    return lambda maps: reduce(lambda found, rewrite: rewrite(found), rewrites, maps)
