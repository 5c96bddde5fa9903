"""Auto-encoders of sparsify (`cfg.json`, `sae.safetensors`) and of OpenAI (one file of PyTorch).

- sparsify: encoder.weight (latents, units), encoder.bias, W_dec (latents, units), b_dec, which is subtracted
- OpenAI: pre_bias (units,), which is subtracted, encoder.weight (latents, units), latent_bias, decoder.weight
  (units, latents), and the activation by its name; with TopK each position is normalised first
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from workers.errors import RequestError
from workers.record.sparse import RELU, TOPK
from workers.sparse.autoencoder import LAYER_NORM
from workers.sparse.published.canonical import PublishedForm
from workers.sparse.published.configs import PublishedConfig, read_config
from workers.sparse.published.reading import PublishedTensors, read_safetensors

SPARSIFY, OPENAI = "sparsify", "OpenAI"
_STATISTICS = ("stats_last_nonzero", "latents_activation_frequency", "latents_mean_square")
"""Statistics of OpenAI's training."""


def read_sparsify(weights: Path) -> PublishedForm:
    """Read an auto-encoder of sparsify. Raises RequestError."""
    config = read_config(weights.with_name("cfg.json"))
    if config.read_text("activation", TOPK) != TOPK:
        raise config.refuse("activation", TOPK)
    for transcoder in ("transcode", "skip_connection"):
        # A transcoder rebuilds another layer than it reads.
        if config.read_flag(transcoder, False):
            raise config.refuse(transcoder, "false")
    k = config.read_count("k")
    if k is None:
        raise RequestError(f"{config.path} lacks k, the number of latents that are kept. Add it to the file.")
    tensors = read_safetensors(weights)
    encoder = tensors.take("encoder.weight", config.read_count("num_latents"), config.read_count("d_in"))
    latents, units = encoder.shape
    form = PublishedForm(
        format=SPARSIFY,
        encoder=encoder,
        encoder_bias=tensors.take("encoder.bias", latents),
        decoder=tensors.take("W_dec", latents, units),
        decoder_bias=tensors.take("b_dec", units),
        kind=TOPK,
        k=k,
    )
    tensors.finish()
    return form


def read_openai(tensors: PublishedTensors) -> PublishedForm:
    """Read an auto-encoder of OpenAI. Raises RequestError."""
    encoder = tensors.take("encoder.weight", None, None)
    latents, units = encoder.shape
    form = PublishedForm(
        format=OPENAI,
        encoder=encoder,
        encoder_bias=tensors.take("latent_bias", latents),
        decoder=tensors.take("decoder.weight", units, latents).T,
        decoder_bias=tensors.take("pre_bias", units),
        kind=RELU,
    )
    # A file without the name means ReLU, as in OpenAI's own code.
    activation = tensors.take_value("activation") if "activation" in tensors else "ReLU"
    state = tensors.take_value("activation_state_dict") if "activation_state_dict" in tensors else {}
    tensors.finish(*_STATISTICS)
    if activation == "TopK":
        return _add_topk(form, PublishedTensors(tensors.path, state if isinstance(state, dict) else {}))
    if activation != "ReLU":
        raise PublishedConfig(tensors.path, {"activation": str(activation)}).refuse("activation", "ReLU and TopK")
    return form


def _add_topk(form: PublishedForm, state: PublishedTensors) -> PublishedForm:
    """Return the form with OpenAI's TopK: layer norm first; its state says what becomes of the k largest."""
    k, after = state.take_count("k"), state.take_value("postact_fn")
    if after not in ("ReLU", "Identity"):
        raise PublishedConfig(state.path, {"postact_fn": str(after)}).refuse("postact_fn", "ReLU and Identity")
    return replace(form, kind=TOPK, k=k, normalisation=LAYER_NORM, signed=after == "Identity")
