"""Auto-encoders of saev: one file, whose first line is a JSON header; then follows what PyTorch saved.

W_enc (units, latents), b_enc, W_dec (latents, units), b_dec, and activation.threshold for BatchTopK. The decoder's bias
is not subtracted from the input. TopK keeps negative latents too.
"""

from __future__ import annotations

from pathlib import Path

from workers.record.sparse import BATCHTOPK, RELU, TOPK
from workers.sparse.published.canonical import PublishedForm, keep_input
from workers.sparse.published.configs import PublishedConfig, parse_config, read_line
from workers.sparse.published.reading import read_torch

SAEV = "saev"
_KINDS = {"Relu": RELU, "TopK": TOPK, "BatchTopK": BATCHTOPK}
_SCHEMAS = range(2, 6)
"""Schema 1 has two layouts that contradict each other, and earlier files say nothing of their activation."""


def read_saev(path: Path) -> PublishedForm:
    """Read an auto-encoder of saev. Raises RequestError."""
    line = read_line(path)
    header = parse_config(path, line)
    if header.read_count("schema") not in _SCHEMAS:
        raise header.refuse("schema", "2 to 5")
    config = header.read_part("cfg")
    kind, k = _read_kind(config.read_part("activation"))
    tensors = read_torch(path, len(line))
    encoder = tensors.take("W_enc", config.read_count("d_model"), config.read_count("d_sae"))
    units, latents = encoder.shape
    form = PublishedForm(
        format=SAEV,
        encoder=encoder.T,
        encoder_bias=tensors.take("b_enc", latents),
        decoder=tensors.take("W_dec", latents, units),
        decoder_bias=tensors.take("b_dec", units),
        kind=kind,
        # It keeps all latents where there are fewer than k
        k=min(k, latents),
        # Below 0 it is a plain ReLU
        threshold=max(0.0, tensors.take_number("activation.threshold")) if kind == BATCHTOPK else 0.0,
        signed=kind == TOPK,
    )
    tensors.finish()
    return keep_input(form)


def _read_kind(activation: PublishedConfig) -> tuple[str, int]:
    """Return the kind, and how many latents it keeps; 0 for ReLU."""
    kind = _KINDS.get(activation.read_text("cls"))
    if kind is None:
        raise activation.refuse("cls", ", ".join(_KINDS))
    parameters = activation.read_part("params")
    k = parameters.read_count("top_k")
    if kind != RELU and k is None:
        raise parameters.refuse("top_k", "a whole number from 1 on")
    return kind, k or 0
