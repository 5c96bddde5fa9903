"""A circuit as a model of three layers, so that it has an index, exemplars and held-out images like any unit.

The activation of a circuit is the mean over its members of activation / threshold: 1 means that a member is as active
as where its masked images are bright. Made by `laboratory`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from workers.errors import UnknownName
from workers.lab.exemplars import ExemplarIndex
from workers.protocols import (
    Box,
    LayerInfo,
    MeasuredMembers,
    Progress,
    VisionModel,
    check_layers,
    no_progress,
    probabilities,
    visible_part,
)
from workers.record.circuits import (
    ACTIVATION_LAYER,
    MAP_LAYER,
    MEMBERS_LAYER,
    CircuitMember,
    find_number,
    find_size_problem,
)
from workers.record.decoding import is_of_type
from workers.record.systems import SystemSpec

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray
    from PIL.Image import Image

_FORMULA = "1"
"""Increment when the activation of a circuit is computed differently."""
_MIN_SHARE = 0.1
"""A member's threshold is at least this share of the mean of its exemplars."""


def read_members(spec: SystemSpec) -> tuple[CircuitMember, ...]:
    """Read the option "members" of a circuit: objects of model, layer and unit. Raises UnknownName if it is invalid."""
    given = spec.options.get("members")
    if not is_of_type(given, list[dict[str, Any]]) or given is None:
        raise UnknownName("A circuit needs the option “members”: a list of objects of model, layer and unit.")
    members = [_read_member(each) for each in given]
    if problem := find_size_problem(members):
        raise UnknownName(problem)
    number = find_number(members)
    # Zero is what `subject` puts in place of the number: for its index a circuit is the only unit.
    if spec.layer != ACTIVATION_LAYER or spec.unit not in (0, number):
        raise UnknownName(
            f"These members are unit 0 or {number} of the layer {ACTIVATION_LAYER!r}, not {spec.unit!r} of "
            f"{spec.layer!r}."
        )
    return tuple(members)


def _read_member(given: Mapping[str, Any]) -> CircuitMember:
    model, layer, unit = (given.get(name) for name in ("model", "layer", "unit"))
    # bool is an int to Python.
    is_number = isinstance(unit, int) and not isinstance(unit, bool)
    if given.keys() != {"model", "layer", "unit"} or not (isinstance(model, str) and isinstance(layer, str)):
        raise UnknownName("A member of a circuit has model, layer and unit, and nothing else.")
    if not (is_number and isinstance(unit, int)):
        raise UnknownName(f"The unit of a member is a whole number, not {unit!r}.")
    return CircuitMember(model, layer, unit)


def check_network(network: str, models: Mapping[str, VisionModel]) -> None:
    """Raise UnknownName for a model that is neither the network nor built on it."""
    for key, model in models.items():
        # A latent's model is an auto-encoder, which names the network below as its base.
        if (base := getattr(model, "base", None) or key) != network:
            raise UnknownName(f"A circuit is of one network, {network}; {key} belongs to {base}.")


class CircuitModel:
    """A `protocols.MemberModel`. Safe for threads: the models hold their own locks."""

    def __init__(
        self,
        members: Sequence[CircuitMember],
        models: Mapping[str, VisionModel],
        indexes: Mapping[str, ExemplarIndex],
    ) -> None:
        self.members = members
        self._models, self._indexes = models, indexes
        self.name = f"circuit {_digest(*map(str, members))}"
        # The weights of every model and the formula: another of either gives other activations.
        self.revision = _digest(_FORMULA, *(f"{key} {models[key].revision}" for key in sorted(models)))

    def layers(self) -> Sequence[LayerInfo]:
        """Return the activation as a map of one place; where in the image the members respond; and each member."""
        return (
            LayerInfo(ACTIVATION_LAYER, "", "circuit", 1),
            LayerInfo(MAP_LAYER, "", "circuit", 1),
            LayerInfo(MEMBERS_LAYER, "", "conv", len(self.members)),
        )

    def find_visible(self, size: tuple[int, int]) -> Box:
        """Return what the network sees of an image of `size` (width, height); the same for all members."""
        return visible_part(self._models[self.members[0].model], size)

    def find_thresholds(self, progress: Progress = no_progress) -> NDArray[np.float32]:
        """Return the thresholds (members,), all above 0. Computes missing indexes of the members' layers."""
        # One pass over the dataset for all layers of a model.
        for model, layers in self._by_model.items():
            self._indexes[model].prepare(list(layers), progress)
        return self._thresholds

    @cached_property
    def _thresholds(self) -> NDArray[np.float32]:
        return np.array([self._find_threshold(each) for each in self.members], dtype=np.float32)

    def _find_threshold(self, member: CircuitMember) -> float:
        known = self._indexes[member.model].unit(member.layer, member.unit)
        mean = sum(known.activations) / len(known.activations) if known.activations else 0.0
        # Latents are silent at most places, so their 0.99 quantile may be 0, and nothing can be divided by that.
        found = max(float(known.quantile), _MIN_SHARE * mean)
        return found if found > 0 else 1.0  # a dead unit adds nothing with any threshold

    @cached_property
    def _by_model(self) -> Mapping[str, Mapping[str, list[int]]]:
        """Model -> layer -> positions of its members in the circuit."""
        found: dict[str, dict[str, list[int]]] = {}
        for place, each in enumerate(self.members):
            found.setdefault(each.model, {}).setdefault(each.layer, []).append(place)
        return found

    def maps(self, images: Sequence[Image], layers: Sequence[str]) -> Mapping[str, torch.Tensor]:
        """Return (batch, units, height, width); see `protocols.VisionModel.maps`."""
        check_layers(self.name, layers, [info.name for info in self.layers()])
        import torch

        found = self.measure_members(images)
        # Members of different layers have different scales; divided by its threshold, each counts alike.
        mean = (found.activations / self._thresholds).mean(1)
        every = {
            ACTIVATION_LAYER: torch.from_numpy(mean)[:, None, None, None],
            MAP_LAYER: torch.from_numpy(found.maps)[:, None],
            MEMBERS_LAYER: torch.from_numpy(found.activations)[:, :, None, None],
        }
        return {layer: every[layer] for layer in layers}

    def measure_members(self, images: Sequence[Image]) -> MeasuredMembers:
        """Measure all members in one pass of the network and one of each auto-encoder."""
        activations = np.zeros((len(images), len(self.members)), dtype=np.float32)
        sums: list[torch.Tensor] = []
        for key, places_of in self._by_model.items():
            model = self._models[key]
            scales = {info.name: info.scale for info in model.layers()}
            for layer, maps in model.maps(images, list(places_of)).items():
                places = places_of[layer]
                own = probabilities(maps, scales[layer])[:, [self.members[place].unit for place in places]]
                activations[:, places] = own.amax((2, 3)).numpy(force=True)
                # The same divisors as of the activation, so the map and the number agree.
                divisors = own.new_tensor(self._thresholds[places])[:, None, None]
                # Resizing is linear, so the maps of a layer are summed first
                sums.append((own / divisors).sum(1, keepdim=True))
        return MeasuredMembers(activations, _add_resized(sums) / np.float32(len(self.members)))


def _add_resized(maps: Sequence[torch.Tensor]) -> NDArray[np.float32]:
    """Resize maps (batch, 1, height, width) to the finest of them and sum them: (batch, height, width)."""
    from torch.nn.functional import interpolate

    size = [max(each.shape[side] for each in maps) for side in (2, 3)]
    # On the CPU: the maps may come from models on different devices.
    found = [interpolate(each.float().cpu(), size=size, mode="bilinear", align_corners=False) for each in maps]
    total: NDArray[np.float32] = sum(found[1:], start=found[0])[:, 0].numpy(force=True)
    return total


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode("utf-8", "replace")).hexdigest()[:20]
