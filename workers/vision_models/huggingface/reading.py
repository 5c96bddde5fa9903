"""Read layers of a network of transformers, its output, and the evidence for a class. Hooks last for one forward pass.

The caller holds the network's lock. Raises MachineryError if a network returns NaN or infinities.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import torch

from workers.errors import MachineryError, MissingPart
from workers.protocols import Rewrite, probabilities
from workers.vision_models.huggingface.layers import LOGITS, LayerTap, NetworkLayers, forward_arguments
from workers.vision_models.huggingface.tensors import convert_to_maps, tensor_in
from workers.weights import check_finite


def read_layers(
    network: Any, pixels: torch.Tensor, layout: NetworkLayers, layers: Sequence[str], model: str
) -> dict[str, torch.Tensor]:
    """Return float32 maps (batch, units, height, width) of the layers of these names; logits are 1 x 1."""
    found: dict[str, torch.Tensor] = {}

    def keep(name: str, tap: LayerTap) -> Callable[[torch.Tensor], None]:
        def copy_output(output: torch.Tensor) -> None:  # a copy, since what follows may write into the output
            maps = convert_to_maps(output, tap.layout)
            found[name] = maps.to(torch.float32, memory_format=torch.contiguous_format, copy=True)

        return copy_output

    # Logits have no tap: they are read from the result.
    taps = [(name, layout.taps[name]) for name in layers if name != LOGITS]
    with torch.no_grad(), _hook(network, [(tap, keep(name, tap)) for name, tap in taps]):
        result = network(**forward_arguments(network, pixels))
    if LOGITS in layers:
        # Logits are no module's map, so they come from the result.
        found[LOGITS] = result.logits.float()[:, :, None, None]
    for name in layers:
        check_finite(found[name], name, model)
    return {name: found[name] for name in layers}


def read_output(
    network: Any,
    pixels: torch.Tensor,
    layout: NetworkLayers,
    rewrites: Mapping[str, Rewrite | None],
    model: str,
) -> torch.Tensor:
    """Return logits (batch, classes), or the mean of the last hidden state over its positions, float32.

    Each of `rewrites` replaces the maps of its layer; tokens without a position stay. The caller decides whether
    gradients are computed. Raises MissingPart for a network that has neither output.
    """

    def replace(tap: LayerTap, rewrite: Rewrite) -> Callable[[torch.Tensor], torch.Tensor]:
        def replace_maps(output: torch.Tensor) -> torch.Tensor:
            # A clone: the output may be shared with other modules, and gradients need it unchanged.
            new = output.clone()
            maps = convert_to_maps(new, tap.layout)  # a view, so writing there changes `new`
            maps.copy_(rewrite(maps.to(torch.float32, copy=True)))
            return new

        return replace_maps

    taps = [(layout.taps[layer], rewrite) for layer, rewrite in rewrites.items() if rewrite is not None]
    with _hook(network, [(tap, replace(tap, rewrite)) for tap, rewrite in taps]):
        result = network(**forward_arguments(network, pixels))
    # Not the pooler's output: checkpoints often lack its weights
    found = getattr(result, "logits" if layout.logits else "last_hidden_state", None)
    if not isinstance(found, torch.Tensor):
        raise MissingPart(f"{model} gives neither classes nor a last hidden state. Choose another model.")
    if not layout.logits:
        # Tokens (batch, tokens, units) or a map: either way the mean over the positions.
        found = found.mean(1) if found.ndim == 3 else found.mean((2, 3))
    check_finite(found, "the output", model)
    return found.float()


def grad_cam(
    network: Any, pixels: torch.Tensor, layout: NetworkLayers, unit: int, model: str
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the probability of a class (batch,) and the map of what speaks for it (batch, height, width), at least 0.

    The map is Grad-CAM's (Selvaraju et al., ICCV 2017, equations 1 and 2).
    """
    tap = layout.evidence
    if tap is None:
        raise MachineryError(f"{model} has no map from which its classes follow, so it cannot say where it sees one.")
    kept: list[torch.Tensor] = []

    def grow(output: torch.Tensor) -> torch.Tensor:
        # Detached: gradients are wanted with respect to the map, not to the weights before it.
        kept.append(output.detach().requires_grad_())
        return kept[0].clone()  # what follows may write into its input, which a leaf forbids

    with torch.enable_grad(), _hook(network, [(tap, grow)]):
        logits = network(**forward_arguments(network, pixels)).logits.float()
        # Summed over the images: none depends on another, so each gets its own gradient.
        (gradient,) = torch.autograd.grad(logits[:, unit].sum(), kept[0])
    activations, slopes = (convert_to_maps(each.float(), tap.layout) for each in (kept[0].detach(), gradient))
    # The activations, each weighted by the mean gradient of the logit with respect to it, summed, and cut off below 0.
    maps = (slopes.mean((2, 3), keepdim=True) * activations).sum(1).relu()
    shares = probabilities(logits.detach(), layout.logits.scale if layout.logits else "softmax")[:, unit]
    check_finite(shares, LOGITS, model)
    check_finite(maps, tap.info.name, model)
    return shares, maps


def _hook(network: Any, hooks: Sequence[tuple[LayerTap, Callable[[torch.Tensor], Any]]]) -> ExitStack:
    """Call each function with the tensor of its layer. A result other than None replaces the tensor.

    Lasts until the end of the `with` block that uses the hooks.
    """

    def hook(call: Callable[[torch.Tensor], Any]) -> Callable[..., Any]:
        def called(_: Any, __: Any, output: Any) -> Any:
            tensor = tensor_in(output)
            new = None if tensor is None else call(tensor)
            # Modules of transformers often return tuples; only the tensor in front is the map.
            return (new, *output[1:]) if new is not None and isinstance(output, tuple) else new

        return called

    hooked = ExitStack()
    for tap, call in hooks:
        hooked.enter_context(network.get_submodule(tap.info.path).register_forward_hook(hook(call)))
    return hooked
