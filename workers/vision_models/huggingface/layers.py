"""Find the layers of a network of transformers, their names and their layout.

For a known architecture, the layers that papers use are listed; for any other, every module that returns a map.
`reading` reads the layers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any

import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

from workers.errors import UnknownName
from workers.protocols import LayerInfo, Scale
from workers.vision_models.huggingface.tensors import (
    Size,
    TensorLayout,
    TokenLayouts,
    convert_to_maps,
    count_units,
    find_layout,
    tensor_in,
)

LOGITS = "logits"
BLANKS = 2
"""Number of blank images: the dimension of this size is the batch."""
MAX_NAMED = 40
"""Maximum number of layers that an error lists."""

RESNET, CONVNEXT, SWIN = ("resnet", "regnet"), ("convnext", "convnextv2"), ("swin", "swinv2")
BLOCKS = ("pvt", "poolformer")  # no module is a stage: its blocks are
MOBILE = ("mobilenet_v1", "mobilenet_v2", "mobilevit", "mobilevitv2")
# The first pattern that fits decides, so particular architectures come before what holds for any.
NATURAL: Sequence[tuple[tuple[str, ...], str, str]] = (
    (RESNET, r"embedder\.embedder\.convolution", "conv1"),  # before batch norm and ReLU, as published code reads it
    (RESNET, r"embedder", "stem"),
    (RESNET, r"encoder\.stages\.0", "layer1"),
    (RESNET, r"encoder\.stages\.1", "layer2"),
    (RESNET, r"encoder\.stages\.2", "layer3"),
    (RESNET, r"encoder\.stages\.3", "layer4"),
    (CONVNEXT, r"embeddings", "stem"),
    (CONVNEXT, r"encoder\.stages\.(\d+)", r"stages.\1"),
    (SWIN, r"encoder\.layers\.(\d+)\.blocks\.(\d+)\.(?:mlp\.fc1|intermediate\.dense)", r"layers.\1.blocks.\2.mlp.fc1"),
    (MOBILE, r"conv_stem", "stem"),
    (MOBILE, r"(?:encoder\.)?layer\.(\d+)", r"blocks.\1"),
    (MOBILE, r"conv_1x1(?:_exp)?", "head"),
    (("efficientnet",), r"embeddings", "stem"),
    (("efficientnet",), r"encoder\.blocks\.(\d+)", r"blocks.\1"),
    (("pvt_v2",), r"encoder\.layers\.(\d+)\.layer_norm", r"stages.\1"),
    (BLOCKS, r"encoder\.block\.(\d+)\.(\d+)\.(?:mlp\.dense1|output\.conv1)", r"stages.\1.blocks.\2.mlp.fc1"),
    (BLOCKS, r"encoder\.block\.(\d+)\.(\d+)", r"stages.\1.blocks.\2"),
    ((), r"(?:\w+\.)?layers?\.(\d+)\.(?:mlp\.(?:fc1|lin1)|intermediate\.dense)", r"blocks.\1.mlp.fc1"),
    ((), r"(?:\w+\.)?layers?\.(\d+)\.mlp\.(gate_proj|up_proj)", r"blocks.\1.mlp.\2"),
    ((), r"(?:\w+\.)*stages\.(\d+)", r"stages.\1"),
)
"""Architectures (none means any), module path, name. MLP units are read before their non-linearity, as in the paper."""

_DOUBT = ", which are not a map, or have unknown positions in the image"
# Names that transformers gives the inner layers of a block, in any architecture.
MLP = re.compile(r"\b(?:mlp|intermediate|ffn)\b")
LAST_MIXING = re.compile(r".*\.(?:layernorm_before|norm1|layer_norm_?1)")


@dataclass(frozen=True)
class LayerTap:
    """A layer and how its output is laid out."""

    info: LayerInfo
    layout: TensorLayout


@dataclass(frozen=True)
class NetworkLayers:
    """The layers of one network."""

    taps: Mapping[str, LayerTap]
    """Layers by name in the order of computation, without the logits."""
    logits: LayerInfo | None
    evidence: LayerTap | None
    """The last position where every class still has a map; None without logits."""
    others: Mapping[str, str]
    """Outputs of the modules that are not listed as layers, by path."""

    def layers(self) -> list[LayerInfo]:
        return [*(tap.info for tap in self.taps.values()), *([self.logits] if self.logits else [])]

    def check(self, model: str, layers: Sequence[str]) -> None:
        """Raise UnknownName with the existing layers for one that does not exist."""
        known = [info.name for info in self.layers()]
        for layer in layers:
            if layer in known:
                continue
            gives = self.others.get(layer)
            what = f"{layer!r} of {model} gives {gives}: no layer to study" if gives else f"{model} has no {layer!r}"
            more = f" … ({len(known)} in all)" if len(known) > MAX_NAMED else ""
            raise UnknownName(f"{what}. Choose one of: {', '.join(known[:MAX_NAMED])}{more}.")


def find_layers(network: Any, size: Size, channels: int = 3, chosen: Mapping[str, str] | None = None) -> NetworkLayers:
    """Find the layers of a network that takes images of `size`. Raises the errors of its forward pass.

    `chosen` maps names to module paths of the layers to list, instead of finding them; modules without maps go to
    `others`.
    """
    # Blank images suffice: only shapes are looked at.
    outputs, result = _outputs(network, size, channels)
    tokens = TokenLayouts.of(network, outputs, size, getattr(network.config, "num_queries", 0))
    modules = dict(network.named_modules())
    found: dict[str, LayerTap] = {}
    wide: dict[str, LayerTap] = {}
    # 1. Every module that ran once and gave a map is a candidate.
    for path, output in outputs.items():
        tensor = tensor_in(output)
        layout = None if tensor is None else find_layout(modules[path], tensor, BLANKS, size, tokens)
        if tensor is not None and layout:
            info = LayerInfo(path, path, "mlp" if MLP.search(path) else "conv", count_units(tensor, layout))
            found[path] = LayerTap(info, layout)
            # A map of one place, as after pooling, does not tell where.
            if convert_to_maps(tensor, layout)[0, 0].numel() > 1:
                wide[path] = found[path]
    # 2. List the chosen layers, those that papers use, or else every map of more than one place.
    if chosen:
        taps = {
            name: LayerTap(replace(found[path].info, name=name), found[path].layout)
            for name, path in chosen.items()
            if path in found
        }
    else:
        # Identity and dropout repeat the map of the module before them.
        taps = _name_layers(found, network) or {
            path: tap for path, tap in wide.items() if not isinstance(modules[path], nn.Identity | nn.Dropout)
        }
    # 3. Say of the others why they are not layers.
    listed = {tap.info.path for tap in taps.values()}
    others = {path: f"no tensor but {type(output).__name__}" for path, output in outputs.items() if path not in listed}
    for path in others:
        if (tensor := tensor_in(outputs[path])) is not None:
            others[path] = f"numbers of shape {tuple(tensor.shape[1:])}{'' if path in found else _DOUBT}"
    logits = _logits(network, result)
    return NetworkLayers(taps, logits, _evidence(wide) if logits else None, others)


def forward_arguments(network: Any, pixels: torch.Tensor) -> dict[str, Any]:
    """Return the arguments of the network's call."""
    config, takes = _vision(network), signature(network.forward).parameters
    own = getattr(config, "image_size", None)
    own_size = tuple(own) if isinstance(own, list | tuple) else (own, own)
    # Positions are interpolated for images of another size than the network's own.
    stretch = own is not None and own_size != tuple(pixels.shape[2:])
    more: dict[str, Any] = {"interpolate_pos_encoding": True} if stretch and "interpolate_pos_encoding" in takes else {}
    # A network that hides and shuffles patches at random, such as ViT-MAE, gets noise that leaves all in place.
    if "noise" in takes and _patch(config):
        # Ascending noise: such a network sorts its patches by it.
        tokens = (pixels.shape[2] // _patch(config)) * (pixels.shape[3] // _patch(config))
        more["noise"] = torch.arange(tokens, device=pixels.device, dtype=torch.float32).expand(len(pixels), tokens)
    return {"pixel_values": pixels, **more}


def _vision(network: Any) -> Any:
    """Return the configuration of the image encoder."""
    return getattr(network.config, "vision_config", network.config)


def _outputs(network: Any, size: Size, channels: int) -> tuple[dict[str, Any], Any]:
    """Return the output of each module that runs once for blank images, in order, and the network's output."""
    outputs: dict[str, list[Any]] = {}
    weight = next(network.parameters())
    # Two images, so that the dimension of the batch is told from others of size 1.
    # In the network's own precision and place: "meta" computes shapes alone.
    pixels = torch.zeros(BLANKS, channels, *size, dtype=weight.dtype, device=weight.device)

    def listen(path: str, module: nn.Module) -> RemovableHandle:
        return module.register_forward_hook(lambda _, __, output: outputs.setdefault(path, []).append(output))

    with torch.no_grad(), ExitStack() as hooks:
        for path, module in network.named_modules():
            # The root's own output is the result.
            if path:
                hooks.enter_context(listen(path, module))
        result = network(**forward_arguments(network, pixels))
    # A module that runs several times, such as a shared activation, has no one output.
    return {path: each[0] for path, each in outputs.items() if len(each) == 1}, result


def _name_layers(found: Mapping[str, LayerTap], network: Any) -> dict[str, LayerTap]:
    """Return the layers that papers use, by the papers' names; none for an unknown architecture."""
    kind, own = network.config.model_type, f"{network.base_model_prefix}."
    named: dict[str, LayerTap] = {}
    for path, tap in found.items():
        # The same encoder has other prefixes in front of it with a head, or inside CLIP.
        inner = path.removeprefix(own).removeprefix("vision_model.")
        for kinds, pattern, name in NATURAL:
            if (not kinds or kind in kinds) and (match := re.fullmatch(pattern, inner)):
                known = match.expand(name)
                info = LayerInfo(known, path, "mlp" if MLP.search(known) else tap.info.kind, tap.info.units)
                # Of several paths with one name the first is computed first.
                named.setdefault(info.name, LayerTap(info, tap.layout))
                break
    return named


def _logits(network: Any, result: Any) -> LayerInfo | None:
    """Return the layer of the classes, if the network has a classification head."""
    logits = getattr(result, "logits", None)
    named = "ForImageClassification" in type(network).__name__
    has_head = getattr(network, "is_classifier", named) and network.config.num_labels
    if not has_head or not isinstance(logits, torch.Tensor):
        return None
    units, scale = logits.shape[1], scale_of(network.config)
    if not scale:
        return None
    names = tuple(str((network.config.id2label or {}).get(unit, f"class {unit}")) for unit in range(units))
    # The head's path is only named if it is clear which module it is.
    heads = [path for path, each in network.named_modules() if getattr(each, "out_features", 0) == units]
    return LayerInfo(LOGITS, heads[0] if len(heads) == 1 else LOGITS, "logit", units, names, scale)


def scale_of(config: Any) -> Scale:
    """Return how the logits become probabilities, as the checkpoint was trained; "" if they are not classes."""
    kind = getattr(config, "problem_type", None)
    if kind == "regression":
        return ""
    # A single logit is a class by itself: a softmax over one is always 1.
    return "sigmoid" if kind == "multi_label_classification" or config.num_labels == 1 else "softmax"


def _evidence(wide: dict[str, LayerTap]) -> LayerTap | None:
    """Return the last map. If a class token is used, return the last map from which that token still draws."""
    last = next(reversed(wide.values()), None)
    if last is None or not last.layout.extra:
        return last
    # A class token takes from the maps only until its last mixing; what comes after cannot change the class.
    return next((wide[path] for path in reversed(wide) if LAST_MIXING.fullmatch(path)), last)


def _patch(config: Any) -> int:
    patch = getattr(config, "patch_size", 0)
    return int(patch[0] if isinstance(patch, list | tuple) else patch or 0)
