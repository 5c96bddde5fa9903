"""Add a published auto-encoder to a layer: read it, check that it explains the layer, and keep it with its card.

Nothing is written before all checks have passed. Called by `workers.jobs`.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from workers.errors import RequestError
from workers.files import hold_lock
from workers.lab.exemplars import ask_dataset, file_name
from workers.lab.index_files import report_disk_errors
from workers.lab.map_stream import MapStream
from workers.protocols import LabSettings, Progress, no_progress
from workers.sparse import storage
from workers.sparse.activations import ActivationBuffer, split_images
from workers.sparse.autoencoder import SparseAutoencoder
from workers.sparse.published.canonical import PublishedForm, build_network
from workers.sparse.published.formats import read_published
from workers.sparse.quality import Quality, measure_reconstruction
from workers.sparse.recipe import check_source
from workers.sparse.storage import SparseCard
from workers.sparse.training import HELD_OUT_BYTES, SparseSource

_SEED = 0
"""Which images are held out, and which of their positions are taken."""


def add_published(
    settings: LabSettings, source: SparseSource, path: Path, name: str = "", progress: Progress = no_progress
) -> SparseCard:
    """Keep the auto-encoder in this folder or file for the source's layer, and return its card.

    Raises RequestError for what cannot be read, does not fit or explain the layer, or has a name that is taken;
    MachineryError if the disk is full; and Cancelled if `progress` does.
    """
    ask_dataset(source.dataset, "list_files", progress)
    check_source(source.model, source.layer, source.dataset)
    progress(f"Reading {path.name}", 0, 1)
    form = read_published(path)
    _check_width(form, source)
    target = storage.find_path(settings.state, name or _default_name(source, form))
    # Before measuring, which takes long.
    _refuse_taken(target)
    network = build_network(form)
    quality = _measure_fit(settings, source, network.to(settings.device), progress)
    card = _describe(source, form, network, quality, target.stem, path)
    with (
        report_disk_errors(target.parent),
        hold_lock(target.with_name(f"{target.stem}.lock"), lambda: progress(f"Waiting for {target.stem}", 0, 1)),
    ):
        # Again under the lock: another job may have taken the name while this one measured.
        _refuse_taken(target)
        storage.save_autoencoder(network, card, target)
    return card


def _default_name(source: SparseSource, form: PublishedForm) -> str:
    """Return a name such as toybox-layer4-SAELens-512."""
    end = f"-{form.format}-{form.latents}"
    start = file_name(f"{source.model.name}-{source.layer.name}").strip("_.-")
    # Cut at the start: the end tells similar ones apart.
    return f"{start[: 100 - len(end)]}{end}"


def _refuse_taken(target: Path) -> None:
    """Raise RequestError if an auto-encoder, or a training under way, has this name."""
    if target.exists() or target.with_name(f"{target.stem}.checkpoint").exists():
        raise RequestError(f"There is an auto-encoder {target.stem!r} already. Choose another name with --name.")


def _check_width(form: PublishedForm, source: SparseSource) -> None:
    if form.units != source.layer.units:
        raise RequestError(
            f"The auto-encoder takes {form.units:,} units, and {source.layer.name} of {source.model.name} has "
            f"{source.layer.units:,}. Name the model and layer that it was trained on."
        )


def _measure_fit(
    settings: LabSettings, source: SparseSource, network: SparseAutoencoder, progress: Progress
) -> Quality:
    """Measure how well it explains held-out images, as one that was trained here is measured. Raises RequestError."""
    ask_dataset(source.dataset, "prepare", progress)
    _, held_out = split_images(len(source.dataset), _SEED)
    stream = MapStream(settings, source.model, source.dataset)
    buffer = ActivationBuffer(stream, source.layer.name, held_out, _SEED, HELD_OUT_BYTES)
    found = measure_reconstruction(network, buffer.sample(buffer.positions, progress), progress)
    # Weights that were read wrongly do not rebuild activations. Not a number is no success either
    if not found.unexplained < 1:
        raise RequestError(
            f"It leaves {found.unexplained:.1%} of the variance of {source.layer.name} of {source.model.name} "
            f"unexplained, on {len(found.at_positions):,} positions of {source.dataset.name}; the mean activation "
            "alone leaves 100.0%. It was made for another layer, model or preprocessing, or its files are not in the "
            "layout that they seem to have. Name the layer that it was trained on."
        )
    # Of a published one it is not known when latents were last active.
    silent = float((found.of_latents == 0).mean())
    return Quality(found.unexplained, float(found.at_positions.mean()), silent, len(found.at_positions))


def _describe(
    source: SparseSource, form: PublishedForm, network: SparseAutoencoder, quality: Quality, name: str, path: Path
) -> SparseCard:
    # A name alone: where it lies on this machine is not for all who see the card
    place = f"{'folder' if path.is_dir() else 'file'} {path.resolve().name[:100]}"
    return SparseCard(
        name=name,
        kind=form.kind,
        k=form.k,
        latents=form.latents,
        **source.describe(),
        seed=_SEED,
        steps=0,
        batch=0,
        images=0,
        scale=1.0,
        fingerprint=_fingerprint(source, network),
        quality=quality,
        # Names of files may hold bytes that are no text.
        source=f"{form.format}, {place}".encode("utf-8", "replace").decode(),
        normalisation=form.normalisation,
        signed=form.signed,
    )


def _fingerprint(source: SparseSource, network: SparseAutoencoder) -> str:
    """Return a hash of the weights, what is done with them, and the layer below."""
    facts = [network.kind, network.k, network.normalisation, network.signed]
    facts += [source.model.name, source.model.revision, source.layer.name, source.layer.path]
    found = hashlib.sha256(repr(facts).encode("utf-8", "replace"))
    # Sorted: the order of tensors must not change the fingerprint.
    for name, each in sorted(network.state_dict().items()):
        found.update(name.encode())
        found.update(each.detach().cpu().contiguous().numpy())
    return found.hexdigest()
