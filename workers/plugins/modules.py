"""Any `torch.nn.Module` as a vision model: its layers are read by hooks, and its outputs may be logits of classes.

A plug-in's factory returns `study(network, preprocess, classes=…)`. The module stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from types import SimpleNamespace
from typing import Any, Literal

import torch
from PIL import Image
from torch import nn

from workers.errors import MachineryError, MaiaError, MissingPart
from workers.lab.imaging import map_in_parallel
from workers.plugins.map_checks import MapChecks
from workers.protocols import WHOLE_IMAGE, Box, LabSettings
from workers.vision_models.centre_crop import CentreCrop
from workers.vision_models.huggingface.hooked import HookedModel, OpenedNetwork
from workers.vision_models.huggingface.layers import NetworkLayers, find_layers
from workers.vision_models.huggingface.tensors import tensor_in
from workers.weights import get_first_line, is_out_of_memory

Preprocess = Callable[[Image.Image], torch.Tensor]

_GREY = 256
"""Side of the grey image on which a preprocessing is tried, in pixels."""


@dataclass(eq=False)
class Study:
    """A network with what is needed to study it; made by `study`."""

    network: nn.Module | None = field(repr=False)
    """None once the model cache holds it."""
    preprocess: Preprocess | CentreCrop
    classes: tuple[str, ...] | None
    layers: Mapping[str, str]
    """Name -> module path; empty: all that are found."""
    scale: Literal["softmax", "sigmoid"]
    visible: Callable[[tuple[int, int]], Box] | None


def study(
    network: nn.Module,
    preprocess: Preprocess | CentreCrop,
    classes: Sequence[str] | int | None = None,
    layers: Sequence[str] | Mapping[str, str] | None = None,
    *,
    scale: Literal["softmax", "sigmoid"] = "softmax",
    visible: Callable[[tuple[int, int]], Box] | None = None,
) -> Study:
    """Return what a plug-in's factory of a vision model returns. Raises MissingPart for arguments that cannot be.

    `preprocess` makes of an RGB image a tensor (channels, height, width), of one shape for all images; it is called
    from several threads. `classes` names the outputs, or says how many there are; None where they are no logits of
    classes. `layers` are module paths, by name or as a list; None takes every module that gives maps. `scale` is how
    logits become probabilities. `visible` tells which part of an image of a size (width, height) the preprocessing
    leaves, where it crops; a `CentreCrop` as the preprocessing tells by itself.
    """
    # Plug-ins are strangers' code: wrong arguments are explained here, not where they break
    if not isinstance(network, nn.Module):
        raise MissingPart(f"study() needs a torch.nn.Module, not {type(network).__name__}.")
    if not callable(preprocess) and not isinstance(preprocess, CentreCrop):
        raise MissingPart(f"study() needs a function as `preprocess`, not {type(preprocess).__name__}.")
    # A text is a sequence of letters, and would be taken for a list
    if isinstance(classes, str) or isinstance(layers, str):
        raise MissingPart("study() needs lists of classes and layers, not a single text.")
    if isinstance(classes, int):
        classes = [f"class {number}" for number in range(classes)]
    named = layers if isinstance(layers, Mapping) else {path: path for path in layers or ()}
    names = None if classes is None else tuple(map(str, classes))
    return Study(network, preprocess, names, dict(named), scale, visible)


class ModuleModel(HookedModel):
    """A module of a plug-in under study; see `HookedModel`. Its errors name the model, the layer and the shapes."""

    def __init__(self, settings: LabSettings, key: str, made: Study, load: Callable[[], Any], version: str) -> None:
        """`load` makes the same module again after its weights were unloaded to make room."""
        super().__init__(settings, key)
        # Before the slot loads, which reads the study
        self._study = made
        self._version = version
        self._reload = load
        assert made.network is not None
        self._digest = _digest(made.network)
        self._checks = MapChecks(key)
        self._slot = settings.model_cache.slot(f"{key} {self.revision}", self._load)
        # Loads once, so that a module that is too large is reported when the plug-in is loaded.
        with self._slot:
            pass

    @cached_property
    def revision(self) -> str:
        """Hash of its weights and of the plug-in's file, whose preprocessing matters as well."""
        short = "" if self._settings.precision == "float32" else f"-{self._settings.precision}"
        return f"{self._digest}-{self._version[:12]}{short}"

    def _load(self) -> PlainNetwork:
        # From now on the model cache alone holds the weights
        network, self._study.network = self._study.network, None
        if network is None:
            network = self._reload().network
            # Measurements are stored under the revision, so they must not come from other weights.
            if _digest(network) != self._digest:
                raise MachineryError(f"The weights of {self.name} changed meanwhile. Start the worker again.")
        network = network.to(self._settings.device, self._precision).eval().requires_grad_(False)
        return PlainNetwork(network, self._study, self.name)

    def _look(self) -> OpenedNetwork:
        preparation = _ModulePreparation(self._study, self.name)
        channels, *size = preparation.shape
        with self._slot as network:
            try:
                layout = find_layers(network, (size[0], size[1]), channels, self._study.layers)
            # Our own errors already name the remedy
            except MaiaError:
                raise
            except Exception as error:
                if is_out_of_memory(error):
                    raise
                raise MissingPart(
                    f"{self.name} cannot look at images as its preprocessing gives them, {channels} x {size[0]} x "
                    f"{size[1]}: {get_first_line(error)}. Correct the plug-in."
                ) from error
        self._check_layout(layout)
        return OpenedNetwork(preparation, self._slot, layout)

    def _check_layout(self, layout: NetworkLayers) -> None:
        """Raise MissingPart for layers and classes that the network does not have."""
        for name, path in self._study.layers.items():
            if name not in layout.taps:
                gives = layout.others.get(path, "no output once and once only, or is no module of it")
                raise MissingPart(f"The layer {name!r} of {self.name}: {path!r} gives {gives}. Name another module.")
        if not layout.taps and layout.logits is None:
            raise MissingPart(f"{self.name} has no module that gives maps, so there is no layer to study.")
        classes = self._study.classes
        if classes is not None and (layout.logits is None or layout.logits.units != len(classes)):
            gives = f"{layout.logits.units} outputs" if layout.logits else "no outputs of classes"
            raise MissingPart(f"{self.name} gives {gives}, and its plug-in names {len(classes)} classes. Correct it.")

    def _read(self, images: Sequence[Image.Image], layers: Sequence[str]) -> dict[str, torch.Tensor]:
        try:
            found = super()._read(images, layers)
        except (RuntimeError, ValueError, TypeError, IndexError) as error:
            if is_out_of_memory(error):
                raise
            # Errors of torch do not say which model raised them
            raise MachineryError(
                f"{self.name} cannot look at images: {get_first_line(error)}. Correct the plug-in."
            ) from error
        units = {info.name: info.units for info in self.layers()}
        self._checks.check(found, {layer: units[layer] for layer in layers}, len(images))
        return found


class PlainNetwork:
    """A module in the place of a network of transformers, for what reads layers by hooks."""

    base_model_prefix = ""

    def __init__(self, module: nn.Module, made: Study, name: str) -> None:
        self.module = module
        self.is_classifier = made.classes is not None
        self._name = name
        kind = "multi_label_classification" if made.scale == "sigmoid" else "single_label_classification"
        names = dict(enumerate(made.classes or ()))
        self.config = SimpleNamespace(model_type="", num_labels=len(names), id2label=names, problem_type=kind)

    def __call__(self, pixel_values: torch.Tensor) -> Any:
        """Return an object with `logits` (batch, classes), or with `last_hidden_state`. Raises MissingPart."""
        return self.forward(pixel_values)

    def forward(self, pixel_values: torch.Tensor) -> Any:
        """Return the same; transformers names its argument."""
        output = self.module(pixel_values)
        # Models of other libraries give dictionaries or objects with `logits`
        if isinstance(output, Mapping):
            output = output.get("logits", next(iter(output.values()), None))
        found = tensor_in(getattr(output, "logits", output))
        if found is None or found.ndim < 2 or (self.is_classifier and found.ndim != 2):
            shape = type(output).__name__ if found is None else f"a tensor of shape {tuple(found.shape)}"
            wanted = "(batch, classes)" if self.is_classifier else "(batch, outputs)"
            raise MissingPart(f"{self._name} gives {shape}, and a tensor {wanted} is needed. Correct the plug-in.")
        if self.is_classifier:
            return SimpleNamespace(logits=found)
        # A vector is a map of one place, as for other models without classes
        return SimpleNamespace(last_hidden_state=found[:, :, None, None] if found.ndim == 2 else found)

    def get_submodule(self, path: str) -> nn.Module:
        """Return what the module returns."""
        return self.module.get_submodule(path)

    def named_modules(self) -> Iterator[tuple[str, nn.Module]]:
        """Yield what the module yields."""
        return self.module.named_modules()

    def named_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Yield what the module yields."""
        return self.module.named_parameters()

    def parameters(self) -> Iterator[torch.Tensor]:
        """Return the module's parameters; a number on the CPU if it has none."""
        found: list[torch.Tensor] = [*self.module.parameters()]
        # A network without parameters still has a device to be asked for
        return iter(found or [torch.zeros(())])


class _ModulePreparation:
    """The preprocessing of a plug-in; see `hooked.Preparation`."""

    def __init__(self, made: Study, name: str) -> None:
        self._name = name
        self._crop = made.preprocess if isinstance(made.preprocess, CentreCrop) else None
        self._preprocess = made.preprocess
        self._visible = made.visible
        self.shape: tuple[int, ...] = ()
        """Channels, height and width of what the network takes."""
        # Tried on a grey image, since only the plug-in knows the shape.
        self.shape = tuple(self.pixels([Image.new("RGB", (_GREY, _GREY), (128, 128, 128))]).shape[1:])

    def pixels(self, images: Sequence[Image.Image]) -> torch.Tensor:
        """Raise MachineryError for a preprocessing that fails, or gives other shapes than before."""
        # Our own crop needs no check
        if self._crop:
            return self._crop.pixels(images)
        found = map_in_parallel(self._one, images)
        for each in found:
            # The first shape counts for all: batches are stacked
            if each.ndim != 3 or (self.shape or tuple(found[0].shape)) != tuple(each.shape):
                wanted = self.shape if self.shape else "(channels, height, width)"
                raise MachineryError(
                    f"The preprocessing of {self._name} gives the shape {tuple(each.shape)} for {wanted}. All images "
                    "must get one shape: correct the plug-in."
                )
        return torch.stack(found)

    def normalised(self, pixels: torch.Tensor, precision: torch.dtype) -> torch.Tensor:
        """Return what `pixels` gave, as the network takes it."""
        return (self._crop.normalised(pixels) if self._crop else pixels).to(precision)

    def find_visible(self, size: tuple[int, int]) -> Box:
        """Return the part that the preprocessing keeps: all of an image if the plug-in does not say."""
        if self._crop:
            return self._crop.find_visible(size)
        return self._visible(size) if self._visible else WHOLE_IMAGE

    def _one(self, image: Image.Image) -> torch.Tensor:
        assert not isinstance(self._preprocess, CentreCrop)
        try:
            # Arrays are taken as well as tensors
            return torch.as_tensor(self._preprocess(image.convert("RGB")))
        except Exception as error:
            raise MachineryError(
                f"The preprocessing of {self._name} fails for an image of {image.width} x {image.height} pixels: "
                f"{type(error).__name__}: {get_first_line(error)}. Correct the plug-in."
            ) from error


def _digest(network: nn.Module) -> str:
    """Return a name of the weights: 12 characters of a SHA-256 over all parameters and buffers."""
    digest = sha256()
    # Sorted: the order of registration does not change the weights
    for name, tensor in sorted(network.state_dict().items()):
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}\n".encode())
        # As bytes, since NumPy has no bfloat16
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()[:12]
