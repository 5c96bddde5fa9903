"""Measure an auto-encoder on images that its training here never saw: the report on its page.

Called by `workers.jobs`.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from workers.errors import MissingPart
from workers.lab.exemplars import ask_dataset
from workers.lab.map_stream import MapStream
from workers.protocols import Dataset, LabSettings, Progress, VisionModel, check_layers
from workers.record.sparse_report import ActiveCounts, BinCounts, DecoderSimilarity, SparseReport
from workers.sparse.activations import ActivationBuffer, split_images
from workers.sparse.autoencoder import SparseAutoencoder
from workers.sparse.output_effect import measure_effect
from workers.sparse.quality import measure_reconstruction
from workers.sparse.storage import SparseCard, check_weights

_HELD_OUT_BYTES = 64 << 20
_DENSITY_EDGES = np.linspace(-6, 0, 13).tolist()
_COSINE_EDGES = np.linspace(-1, 1, 21).round(1).tolist()
_NEAR = 0.9
_MAX_COSINES = 1 << 24
"""Cosines held at a time."""


def measure_report(
    settings: LabSettings,
    model: VisionModel,
    dataset: Dataset,
    network: SparseAutoencoder,
    card: SparseCard,
    progress: Progress,
) -> SparseReport:
    """Measure the auto-encoder of this card on the held-out images of its dataset.

    Raises MissingPart if model or dataset are not those of the card, or no image can be read; MachineryError for
    activations that are not finite; what `progress` raises stops it.
    """
    ask_dataset(dataset, "list_files", progress)
    check_weights(card, model.revision)
    _check_dataset(card, dataset)
    check_layers(model.name, [card.layer], [info.name for info in model.layers()])
    ask_dataset(dataset, "prepare", progress)
    _, held_out = split_images(len(dataset), card.seed)
    stream = MapStream(settings, model, dataset)
    buffer = ActivationBuffer(stream, card.layer, held_out, card.seed, _HELD_OUT_BYTES)
    activations = buffer.sample(buffer.positions, progress)
    # Of those held out, some may be unreadable.
    images = buffer.count // buffer.per_image
    del buffer
    network = network.to(settings.device)
    found = measure_reconstruction(network, activations, progress)
    # As a map of one position, which spreads over all.
    mean = activations.mean(0)[:, None, None].to(settings.device)
    positions = len(activations)
    del activations  # their memory goes before the model runs again
    # Without the error: it would rebuild the layer exactly.
    rebuild = partial(network.rewrite_maps, rewrite=lambda latents: latents, keeps_error=False)
    rewrites = (rebuild, lambda _: mean)
    effect = measure_effect(model, card.layer, rewrites, dataset, held_out.tolist(), settings.batch_size, progress)
    return SparseReport(
        name=card.name,
        fingerprint=card.fingerprint,
        images=images,
        positions=positions,
        latents=network.latents,
        unexplained=found.unexplained,
        active=_count_active(found.at_positions),
        dead=int((found.of_latents == 0).sum()),
        density=_find_density(found.of_latents, positions),
        similarity=_find_similarity(network.decoder.detach(), progress),
        encoder_cosine=float(torch.cosine_similarity(network.encoder, network.decoder).detach().mean()),
        output=effect,
    )


def _check_dataset(card: SparseCard, dataset: Dataset) -> None:
    """Raise MissingPart for another dataset."""
    # Which images were held out follows from all images of the dataset.
    if (dataset.name, dataset.revision) != (card.dataset, card.dataset_revision):
        done, make = ("measured", "add it again") if card.source else ("trained", "train one on these")
        raise MissingPart(
            f"The auto-encoder {card.name!r} was {done} on other images: {card.dataset} (revision "
            f"{card.dataset_revision}), not {dataset.name} (revision {dataset.revision}). Name that dataset, bring its "
            f"images back, or {make}: manage.py sae --help"
        )


def _count_active(counts: NDArray[np.int64]) -> ActiveCounts:
    low, median, high = np.quantile(counts, (0.05, 0.5, 0.95))
    return ActiveCounts(float(counts.mean()), float(low), float(median), float(high))


def _find_density(counts: NDArray[np.int64], positions: int) -> BinCounts:
    return _build_histogram(np.log10(counts[counts > 0] / positions), _DENSITY_EDGES)


def _find_similarity(decoder: Tensor, progress: Progress) -> DecoderSimilarity:
    nearest = _find_nearest(decoder, progress)
    histogram = _build_histogram(nearest, _COSINE_EDGES)
    if not len(nearest):
        return DecoderSimilarity(histogram, None, None)
    return DecoderSimilarity(histogram, float(nearest.mean()), float((nearest > _NEAR).mean()))


def _find_nearest(decoder: Tensor, progress: Progress) -> NDArray[np.float64]:
    """Return for each row its largest cosine to another one, (rows,); empty for a single row."""
    rows = torch.nn.functional.normalize(decoder)
    count = len(rows)
    if count < 2:
        return np.zeros(0)
    # In parts, because all cosines at once would grow with the square of the latents.
    size, found = max(1, _MAX_COSINES // count), []
    for start in range(0, count, size):
        progress("Comparing latents", start, count)
        cosines = rows[start : start + size] @ rows.T
        own = torch.arange(len(cosines), device=rows.device)
        # A row's cosine to itself is 1.
        cosines[own, start + own] = -torch.inf
        found.append(cosines.amax(1).double().cpu())
    return torch.cat(found).clamp(-1, 1).numpy()


def _build_histogram(values: ArrayLike, edges: list[float]) -> BinCounts:
    """Count values in bins. Values beyond the edges count in the first or last bin."""
    counts, _ = np.histogram(np.clip(values, edges[0], edges[-1]), edges)
    return BinCounts(tuple(edges), tuple(counts.tolist()))
