"""Auto-encoders of the library dictionary_learning: `ae.pt` beside `config.json`, whose trainer names the class.

- TopK and BatchTopK: encoder.weight (latents, units), encoder.bias, decoder.weight (units, latents), b_dec
- Matryoshka: W_enc (units, latents), b_enc, W_dec (latents, units), b_dec, group_sizes

All subtract b_dec from their input. TopK keeps the k largest, the others what is above one threshold.
"""

from __future__ import annotations

from pathlib import Path

from torch import Tensor

from workers.errors import RequestError
from workers.record.sparse import BATCHTOPK, MATRYOSHKA, TOPK
from workers.sparse.published.canonical import PublishedForm
from workers.sparse.published.configs import PublishedConfig, read_config
from workers.sparse.published.reading import PublishedTensors, read_torch

DICTIONARY_LEARNING = "dictionary_learning"
_KINDS = {"AutoEncoderTopK": TOPK, "BatchTopKSAE": BATCHTOPK, "MatryoshkaBatchTopKSAE": MATRYOSHKA}


def read_dictionary(weights: Path) -> PublishedForm:
    """Read an auto-encoder of dictionary_learning. Raises RequestError."""
    trainer = read_config(weights.with_name("config.json")).read_part("trainer")
    kind = _KINDS.get(trainer.read_text("dict_class"))
    if kind is None:
        raise trainer.refuse("dict_class", ", ".join(_KINDS))
    tensors = read_torch(weights)
    k = _read_k(trainer, tensors)
    encoder, encoder_bias, decoder = _read_matrices(kind, trainer, tensors)
    form = PublishedForm(
        format=DICTIONARY_LEARNING,
        encoder=encoder,
        encoder_bias=encoder_bias,
        decoder=decoder,
        decoder_bias=tensors.take("b_dec", encoder.shape[1]),
        kind=kind,
        k=k,
        threshold=0.0 if kind == TOPK else tensors.take_number("threshold"),
    )
    # TopK has a threshold too, which its own code does not use unless told to
    tensors.finish("threshold")
    return form


def _read_k(trainer: PublishedConfig, tensors: PublishedTensors) -> int:
    """Return k of the tensors and of the config, which must not contradict each other."""
    said = trainer.read_count("k")
    found = tensors.take_count("k") if "k" in tensors else said
    if found is None:
        raise RequestError(f"Neither {trainer.path} nor {tensors.path} has k. Add it to the config's trainer.")
    if said is not None and found != said:
        raise RequestError(
            f"k is {found:,} in {tensors.path}, and {said:,} in {trainer.path}. Take both files of one auto-encoder."
        )
    return found


def _read_matrices(kind: str, trainer: PublishedConfig, tensors: PublishedTensors) -> tuple[Tensor, Tensor, Tensor]:
    """Return encoder (latents, units), its bias (latents,), decoder (latents, units)."""
    units, latents = trainer.read_count("activation_dim"), trainer.read_count("dict_size")
    if kind == MATRYOSHKA:
        encoder = tensors.take("W_enc", units, latents).T
        bias, decoder = tensors.take("b_enc", len(encoder)), tensors.take("W_dec", *encoder.shape)
        _check_groups(tensors, len(encoder))
        return encoder, bias, decoder
    encoder = tensors.take("encoder.weight", latents, units)
    bias = tensors.take("encoder.bias", len(encoder))
    return encoder, bias, tensors.take("decoder.weight", *encoder.T.shape).T


def _check_groups(tensors: PublishedTensors, latents: int) -> None:
    """Raise RequestError for nested groups that are not of all latents."""
    # Only checked: our reconstruction does not depend on the groups.
    sizes = tensors.take("group_sizes", None)
    if int(sizes.sum()) != latents:
        raise RequestError(
            f"group_sizes in {tensors.path} add up to {int(sizes.sum()):,}, and there are {latents:,} latents. "
            "Download the file again."
        )
