"""Auto-encoders of SAELens (`cfg.json`, `sae_weights.safetensors`) and of Prisma (`config.json`, one file of weights).

Both have W_enc (units, latents), b_enc, W_dec (latents, units), b_dec, and the same names for how they normalise.
SAELens keeps those that it trained as BatchTopK or Matryoshka as JumpReLU.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from workers.errors import RequestError
from workers.record.sparse import JUMPRELU, RELU, TOPK
from workers.sparse.autoencoder import LAYER_NORM, NORMALISATIONS, UNCHANGED
from workers.sparse.published.canonical import PublishedForm, keep_input, scale_by_decoder
from workers.sparse.published.configs import PublishedConfig, read_config
from workers.sparse.published.reading import PublishedTensors, read_safetensors

SAELENS, PRISMA = "SAELens", "Prisma"
_MEASURED_SCALE = "expected_average_only_in"
"""Divides by the mean norm of training activations, which is in no file."""


def read_saelens(weights: Path) -> PublishedForm:
    """Read an auto-encoder of SAELens. Raises RequestError."""
    config, tensors = read_config(weights.with_name("cfg.json")), read_safetensors(weights)
    kind, k = _read_saelens_kind(config)
    if config.read_flag("finetuning_scaling_factor", False):
        # A factor of fine-tuning would change the latents, and our formula has none.
        raise config.refuse("finetuning_scaling_factor", "false")
    rescale = config.read_flag("rescale_acts_by_decoder_norm", False)
    # With other kinds the norms would change which latents are kept.
    if rescale and kind != TOPK:
        raise config.refuse("rescale_acts_by_decoder_norm", "false for this architecture")
    subtract = config.read_flag("apply_b_dec_to_input", True)
    form = _read_tensors(SAELENS, config, tensors, kind, k)
    form = replace(form, normalisation=_read_normalisation(config, UNCHANGED))
    # The weights are folded before they are scaled: both change the encoder's bias.
    if not subtract:
        form = keep_input(form)
    return scale_by_decoder(form) if rescale else form


def read_prisma(tensors: PublishedTensors) -> PublishedForm:
    """Read an auto-encoder of Prisma, with its config beside its tensors. Raises RequestError."""
    config = read_config(tensors.path.with_name("config.json"))
    architecture = config.read_text("architecture", "standard")
    if architecture != "standard":
        raise config.refuse("architecture", "standard")
    # A transcoder rebuilds another layer than it reads.
    if config.read_flag("is_transcoder", False):
        raise config.refuse("is_transcoder", "false")
    kind, k = _read_activation(config)
    form = _read_tensors(PRISMA, config, tensors, kind, k)
    return replace(form, normalisation=_read_normalisation(config, LAYER_NORM))


def _read_saelens_kind(config: PublishedConfig) -> tuple[str, int]:
    """Return the kind, and k for TopK."""
    architecture = config.read_text("architecture", "standard")
    if architecture == "standard":
        # Older files name TopK as an activation, not as an architecture.
        return _read_activation(config)
    if architecture == JUMPRELU:
        return JUMPRELU, 0
    if architecture == TOPK:
        k = config.read_count("k") or config.read_part("activation_fn_kwargs").read_count("k")
        return TOPK, _need_k(config, k)
    raise config.refuse("architecture", "standard, topk and jumprelu")


def _read_activation(config: PublishedConfig) -> tuple[str, int]:
    key = "activation_fn_str" if "activation_fn_str" in config else "activation_fn"
    activation = config.read_text(key, RELU)
    if activation == TOPK:
        return TOPK, _need_k(config, config.read_part("activation_fn_kwargs").read_count("k"))
    if activation != RELU:
        raise config.refuse(key, "relu and topk")
    return RELU, 0


def _need_k(config: PublishedConfig, k: int | None) -> int:
    if k is None:
        raise RequestError(f"{config.path} lacks k, the number of latents that TopK keeps. Add it to the file.")
    return k


def _read_normalisation(config: PublishedConfig, default: str) -> str:
    found = config.read_text("normalize_activations", default)
    if found == _MEASURED_SCALE:
        raise RequestError(
            f"{config.path} has normalize_activations = {found!r}, and the factor, measured in its training, is in no "
            'file. Fold it into the weights where you have it (fold_activation_norm_scaling_factor), with "none" here.'
        )
    if found not in NORMALISATIONS:
        raise config.refuse("normalize_activations", ", ".join(NORMALISATIONS))
    return found


def _read_tensors(name: str, config: PublishedConfig, tensors: PublishedTensors, kind: str, k: int) -> PublishedForm:
    encoder = tensors.take("W_enc", config.read_count("d_in"), config.read_count("d_sae"))
    units, latents = encoder.shape
    form = PublishedForm(
        format=name,
        encoder=encoder.T,
        encoder_bias=tensors.take("b_enc", latents),
        decoder=tensors.take("W_dec", latents, units),
        decoder_bias=tensors.take("b_dec", units),
        kind=kind,
        k=k,
        threshold=tensors.take("threshold", latents) if kind == JUMPRELU else 0.0,
    )
    tensors.finish()
    return form
