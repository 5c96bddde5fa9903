"""Sparse auto-encoders as other libraries write them, with random weights, beside the formula that each publishes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

UNITS, LATENTS, K = 6, 20, 4
Formula = Callable[[Tensor], tuple[Tensor, Tensor]]
"""Activations (positions, units) become latents (positions, latents) and rebuilt activations."""


@dataclass(frozen=True)
class Published:
    """One that was written: its folder or file, and what its library computes with it."""

    path: Path
    formula: Formula


def draw(units: int = UNITS, latents: int = LATENTS) -> dict[str, Tensor]:
    """W_enc (units, latents), b_enc, W_dec (latents, units), b_dec."""
    rng = torch.Generator().manual_seed(5)
    shapes = {"W_enc": (units, latents), "b_enc": (latents,), "W_dec": (latents, units), "b_dec": (units,)}
    return {name: torch.randn(shape, generator=rng) for name, shape in shapes.items()}


def write_json(path: Path, values: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(values))


def largest(found: Tensor, k: int = K) -> Tensor:
    """The k largest of each row; the rest are 0."""
    mask = torch.zeros_like(found)
    for row, place in enumerate(found.topk(k, dim=1).indices):
        mask[row, place] = 1
    return found * mask


# --- SAELens and Prisma -----------------------------------------------------------------------------------


def saelens(folder: Path, tensors: dict[str, Tensor] | None = None, **config: Any) -> Path:
    """A folder as SAELens writes it."""
    tensors = tensors or draw()
    units, latents = tensors["W_enc"].shape
    facts = {
        "architecture": "standard",
        "d_in": units,
        "d_sae": latents,
        "dtype": "float32",
        "meta": {"hook_name": "h"},
    }
    write_json(folder / "cfg.json", facts | config)
    save_file({name: each.contiguous() for name, each in tensors.items()}, folder / "sae_weights.safetensors")
    save_file({"sparsity": torch.zeros(latents)}, folder / "sparsity.safetensors")
    return folder


def saelens_standard(folder: Path) -> Published:
    w = draw()

    def formula(x: Tensor) -> tuple[Tensor, Tensor]:
        f = torch.relu((x - w["b_dec"]) @ w["W_enc"] + w["b_enc"])
        return f, f @ w["W_dec"] + w["b_dec"]

    return Published(saelens(folder, w), formula)


def saelens_input_kept(folder: Path) -> Published:
    w = draw()

    def formula(x: Tensor) -> tuple[Tensor, Tensor]:
        f = torch.relu(x @ w["W_enc"] + w["b_enc"])
        return f, f @ w["W_dec"] + w["b_dec"]

    return Published(saelens(folder, w, apply_b_dec_to_input=False), formula)


def saelens_jumprelu(folder: Path) -> Published:
    w = draw()
    threshold = torch.linspace(-1, 3, LATENTS)

    def formula(x: Tensor) -> tuple[Tensor, Tensor]:
        pre = (x - w["b_dec"]) @ w["W_enc"] + w["b_enc"]
        f = torch.relu(pre) * (pre > threshold)
        return f, f @ w["W_dec"] + w["b_dec"]

    return Published(saelens(folder, {**w, "threshold": threshold}, architecture="jumprelu"), formula)


def saelens_topk(folder: Path) -> Published:
    """With latents scaled by the norms of the decoder's rows."""
    w = draw()
    norms = w["W_dec"].norm(dim=-1)

    def formula(x: Tensor) -> tuple[Tensor, Tensor]:
        f = largest(((x - w["b_dec"]) @ w["W_enc"] + w["b_enc"]) * norms).relu()
        return f, (f / norms) @ w["W_dec"] + w["b_dec"]

    return Published(saelens(folder, w, architecture="topk", k=K, rescale_acts_by_decoder_norm=True), formula)


def saelens_rescaled_unsubtracted(folder: Path) -> Published:
    w = draw()
    norms = w["W_dec"].norm(dim=-1)

    def formula(x: Tensor) -> tuple[Tensor, Tensor]:
        f = largest((x @ w["W_enc"] + w["b_enc"]) * norms).relu()
        return f, (f / norms) @ w["W_dec"] + w["b_dec"]

    config = {"rescale_acts_by_decoder_norm": True, "apply_b_dec_to_input": False}
    return Published(saelens(folder, w, architecture="topk", k=K, **config), formula)


def saelens_older_topk(folder: Path) -> Published:
    w = draw()

    def formula(x: Tensor) -> tuple[Tensor, Tensor]:
        f = largest((x - w["b_dec"]) @ w["W_enc"] + w["b_enc"]).relu()
        return f, f @ w["W_dec"] + w["b_dec"]

    return Published(saelens(folder, w, activation_fn_str="topk", activation_fn_kwargs={"k": K}), formula)


def saelens_constant_norm(folder: Path) -> Published:
    w = draw()

    def formula(x: Tensor) -> tuple[Tensor, Tensor]:
        factor = UNITS**0.5 / x.norm(dim=-1, keepdim=True)
        f = torch.relu((x * factor - w["b_dec"]) @ w["W_enc"] + w["b_enc"])
        return f, (f @ w["W_dec"] + w["b_dec"]) / factor

    return Published(saelens(folder, w, normalize_activations="constant_norm_rescale"), formula)


def layer_norm_formula(w: dict[str, Tensor], keep: Callable[[Tensor], Tensor]) -> Formula:
    """Mean and deviation of each position are taken out and put back; the latents are `keep` of all."""

    def formula(x: Tensor) -> tuple[Tensor, Tensor]:
        mean = x.mean(dim=-1, keepdim=True)
        std = (x - mean).std(dim=-1, keepdim=True)
        f = keep(((x - mean) / (std + 1e-5) - w["b_dec"]) @ w["W_enc"] + w["b_enc"])
        return f, (f @ w["W_dec"] + w["b_dec"]) * std + mean

    return formula


def saelens_layer_norm(folder: Path) -> Published:
    w = draw()
    return Published(saelens(folder, w, normalize_activations="layer_norm"), layer_norm_formula(w, torch.relu))


def prisma(folder: Path, tensors: object = None, **config: Any) -> Path:
    """A folder as Prisma writes it, with tensors alone."""
    write_json(folder / "config.json", {"d_in": UNITS, "d_sae": LATENTS, "activation_fn_kwargs": {}, **config})
    torch.save(draw() if tensors is None else tensors, folder / "weights.pt")
    return folder


def prisma_standard(folder: Path) -> Published:
    return Published(prisma(folder), layer_norm_formula(draw(), torch.relu))


def prisma_topk(folder: Path) -> Published:
    config = {"activation_fn_str": "topk", "activation_fn_kwargs": {"k": K}, "normalize_activations": "layer_norm"}
    return Published(prisma(folder, **config), layer_norm_formula(draw(), lambda pre: largest(pre).relu()))


# --- dictionary_learning ----------------------------------------------------------------------------------


def dictionary(folder: Path, kind: str, tensors: dict[str, Any], **trainer: Any) -> Path:
    """A folder as dictionary_learning writes it."""
    facts = {"dict_class": kind, "activation_dim": UNITS, "dict_size": LATENTS, "k": K}
    write_json(folder / "config.json", {"trainer": facts | trainer, "buffer": {"ctx_len": 128}})
    torch.save(tensors, folder / "ae.pt")
    return folder


def linear_tensors(w: dict[str, Tensor], **more: Tensor) -> dict[str, Tensor]:
    """Of TopK and BatchTopK, which have linear layers."""
    names = {"encoder.weight": w["W_enc"].T, "encoder.bias": w["b_enc"], "decoder.weight": w["W_dec"].T}
    return (
        {name: each.contiguous() for name, each in names.items()} | {"b_dec": w["b_dec"], "k": torch.tensor(K)} | more
    )


def dictionary_topk(folder: Path) -> Published:
    w = draw()
    layer = torch.nn.functional.linear

    def formula(x: Tensor) -> tuple[Tensor, Tensor]:
        f = largest(torch.relu(layer(x - w["b_dec"], w["W_enc"].T, w["b_enc"])))
        return f, layer(f, w["W_dec"].T) + w["b_dec"]

    tensors = linear_tensors(w, threshold=torch.tensor(-1.0))
    return Published(dictionary(folder, "AutoEncoderTopK", tensors), formula)


def threshold_formula(w: dict[str, Tensor], threshold: float) -> Formula:
    def formula(x: Tensor) -> tuple[Tensor, Tensor]:
        f = torch.relu((x - w["b_dec"]) @ w["W_enc"] + w["b_enc"])
        f = f * (f > threshold)
        return f, f @ w["W_dec"] + w["b_dec"]

    return formula


def dictionary_batchtopk(folder: Path) -> Published:
    w = draw()
    tensors = linear_tensors(w, threshold=torch.tensor(1.5))
    return Published(dictionary(folder, "BatchTopKSAE", tensors), threshold_formula(w, 1.5))


def dictionary_without_threshold(folder: Path) -> Published:
    """Training begins with -1, which keeps all."""
    w = draw()
    tensors = linear_tensors(w, threshold=torch.tensor(-1.0))
    return Published(dictionary(folder, "BatchTopKSAE", tensors), threshold_formula(w, -1.0))


def dictionary_matryoshka(folder: Path) -> Published:
    w = draw()
    more = {"k": torch.tensor(K), "threshold": torch.tensor(1.2), "group_sizes": torch.tensor([5, 15])}
    return Published(dictionary(folder, "MatryoshkaBatchTopKSAE", {**w, **more}), threshold_formula(w, 1.2))


# --- sparsify and OpenAI ----------------------------------------------------------------------------------


def sparsify(folder: Path, more: dict[str, Tensor] | None = None, **config: Any) -> Path:
    """A folder as sparsify writes it."""
    w = draw()
    facts = {"activation": "topk", "expansion_factor": 32, "num_latents": LATENTS, "k": K, "d_in": UNITS}
    write_json(folder / "cfg.json", facts | {"transcode": False, "skip_connection": False} | config)
    tensors = {"encoder.weight": w["W_enc"].T.contiguous(), "encoder.bias": w["b_enc"]}
    tensors |= {"W_dec": w["W_dec"], "b_dec": w["b_dec"]}
    save_file(tensors | (more or {}), folder / "sae.safetensors")
    return folder


def sparsify_topk(folder: Path) -> Published:
    w = draw()

    def formula(x: Tensor) -> tuple[Tensor, Tensor]:
        f = largest(torch.relu((x - w["b_dec"]) @ w["W_enc"] + w["b_enc"]))
        return f, f @ w["W_dec"] + w["b_dec"]

    return Published(sparsify(folder), formula)


def openai(folder: Path, **more: Any) -> Path:
    """A file as OpenAI writes it."""
    w = draw()
    folder.mkdir(parents=True, exist_ok=True)
    state = {
        "pre_bias": w["b_dec"],
        "encoder.weight": w["W_enc"].T.contiguous(),
        "latent_bias": w["b_enc"],
        "decoder.weight": w["W_dec"].T.contiguous(),
        "stats_last_nonzero": torch.zeros(LATENTS, dtype=torch.long),
    }
    torch.save(state | more, folder / "0.pt")
    return folder / "0.pt"


def openai_relu(folder: Path) -> Published:
    w = draw()

    def formula(x: Tensor) -> tuple[Tensor, Tensor]:
        f = torch.relu((x - w["b_dec"]) @ w["W_enc"] + w["b_enc"])
        return f, f @ w["W_dec"] + w["b_dec"]

    return Published(openai(folder, activation="ReLU", activation_state_dict={}), formula)


def openai_topk(folder: Path) -> Published:
    path = openai(folder, activation="TopK", activation_state_dict={"k": K, "postact_fn": "ReLU"})
    return Published(path.parent, layer_norm_formula(draw(), lambda pre: largest(pre).relu()))


def openai_identity(folder: Path) -> Published:
    """All but four are kept, so that negative latents are among them."""
    path = openai(folder, activation="TopK", activation_state_dict={"k": LATENTS - 4, "postact_fn": "Identity"})
    return Published(path, layer_norm_formula(draw(), lambda pre: largest(pre, LATENTS - 4)))


# --- saev -------------------------------------------------------------------------------------------------


def saev(folder: Path, activation: object, more: dict[str, Tensor] | None = None, schema: int = 5) -> Path:
    """A file as saev writes it."""
    header = {"schema": schema, "cfg": {"d_model": UNITS, "d_sae": LATENTS, "activation": activation}, "lib": "0.1.0"}
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "sae.pt").open("wb") as file:
        file.write(json.dumps(header).encode() + b"\n")
        torch.save(draw() | (more or {}), file)
    return folder / "sae.pt"


def saev_formula(keep: Callable[[Tensor], Tensor]) -> Formula:
    w = draw()

    def formula(x: Tensor) -> tuple[Tensor, Tensor]:
        f = keep(x @ w["W_enc"] + w["b_enc"])
        return f, f @ w["W_dec"] + w["b_dec"]

    return formula


def saev_relu(folder: Path) -> Published:
    return Published(saev(folder, {"cls": "Relu", "params": {}}), saev_formula(torch.relu))


def saev_topk(folder: Path) -> Published:
    activation = {"cls": "TopK", "params": {"top_k": LATENTS - 3, "aux": {"cls": "AuxK", "params": {}}}}
    return Published(saev(folder, activation).parent, saev_formula(lambda pre: largest(pre, LATENTS - 3)))


def saev_batchtopk(folder: Path) -> Published:
    path = saev(folder, {"cls": "BatchTopK", "params": {"top_k": K}}, {"activation.threshold": torch.tensor(0.8)})
    return Published(path, saev_formula(lambda pre: torch.where(pre > 0.8, pre, torch.zeros_like(pre))))


ALL: dict[str, Callable[[Path], Published]] = {
    each.__name__: each
    for each in (
        saelens_standard,
        saelens_input_kept,
        saelens_jumprelu,
        saelens_topk,
        saelens_rescaled_unsubtracted,
        saelens_older_topk,
        saelens_constant_norm,
        saelens_layer_norm,
        prisma_standard,
        prisma_topk,
        dictionary_topk,
        dictionary_batchtopk,
        dictionary_without_threshold,
        dictionary_matryoshka,
        sparsify_topk,
        openai_relu,
        openai_topk,
        openai_identity,
        saev_relu,
        saev_topk,
        saev_batchtopk,
    )
}
"""A writer of each format and of each way that it may compute."""
