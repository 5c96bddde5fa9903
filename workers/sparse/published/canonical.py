"""The form that every published format is brought into, and the network of that form.

The network computes, for a normalised position x: latents = select(W_enc (x - b_dec) + b_enc), and rebuilds
W_dec latents + b_dec. What a format does otherwise is folded into its weights, so that latents stay the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from workers.errors import RequestError
from workers.record.sparse import JUMPRELU, MAX_LATENTS, TOPK
from workers.sparse.autoencoder import UNCHANGED, SparseAutoencoder


@dataclass(frozen=True)
class PublishedForm:
    """A published auto-encoder: float32 tensors, and what is done with them."""

    format: str
    """The library that wrote it."""
    encoder: Tensor
    """(latents, units)"""
    encoder_bias: Tensor
    """(latents,)"""
    decoder: Tensor
    """(latents, units)"""
    decoder_bias: Tensor
    """(units,)"""
    kind: str
    k: int = 0
    """Largest latents that are kept, for "topk"; of other kinds what the format says, 0 if nothing."""
    threshold: Tensor | float = 0.0
    """(latents,) for "jumprelu", else one number."""
    normalisation: str = UNCHANGED
    signed: bool = False
    """True if negative latents are kept among the k largest."""

    @property
    def latents(self) -> int:
        return len(self.encoder)

    @property
    def units(self) -> int:
        return self.encoder.shape[1]


def keep_input(form: PublishedForm) -> PublishedForm:
    """Return the same latents, for a format that does not subtract the decoder's bias from its input."""
    # W_enc x + b = W_enc (x - b_dec) + (b + W_enc b_dec).
    return replace(form, encoder_bias=form.encoder_bias + form.encoder @ form.decoder_bias)


def scale_by_decoder(form: PublishedForm) -> PublishedForm:
    """Return the same latents, for a format that multiplies them by the norms of the decoder's rows, then divides them
    again.

    Raises RequestError for a row of zeros, which that format cannot decode.
    """
    norms = form.decoder.norm(dim=1)
    if not norms.all():
        raise RequestError(
            f"Latent {int((norms == 0).nonzero()[0])} has a decoder row of zeros, by whose norm {form.format} divides. "
            "Choose another auto-encoder."
        )
    # Scaling a row of the encoder and dividing that of the decoder leaves what is rebuilt.
    return replace(
        form,
        encoder=form.encoder * norms[:, None],
        encoder_bias=form.encoder_bias * norms,
        decoder=form.decoder / norms[:, None],
    )


def build_network(form: PublishedForm) -> SparseAutoencoder:
    """Return the network of this form, on the CPU. Raises RequestError for numbers that make no sense."""
    if form.latents > MAX_LATENTS:
        raise RequestError(
            f"It has {form.latents:,} latents; at most {MAX_LATENTS:,} can be studied. Choose a smaller auto-encoder."
        )
    if form.kind == TOPK and not 1 <= form.k <= form.latents:
        raise RequestError(
            f"k is {form.k:,} with {form.latents:,} latents: of those, 1 to {form.latents:,} can be active at a "
            "position. Correct the config, or choose another auto-encoder."
        )
    network = SparseAutoencoder(
        form.units, form.latents, form.k, form.kind, normalisation=form.normalisation, signed=form.signed
    )
    # Any device or dtype: `copy_` converts.
    threshold = form.threshold if form.kind == JUMPRELU else float(form.threshold)
    with torch.no_grad():
        network.encoder.copy_(form.encoder)
        network.encoder_bias.copy_(form.encoder_bias)
        network.decoder.copy_(form.decoder)
        network.decoder_bias.copy_(form.decoder_bias)
        network.threshold.copy_(torch.as_tensor(threshold))
    # Each part was finite when it was read, but products of them may overflow.
    if not all(each.isfinite().all() for each in network.state_dict().values()):
        raise RequestError("Its weights are infinite once their parts are multiplied. Choose another auto-encoder.")
    return network.eval()
