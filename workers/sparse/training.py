"""Train a sparse auto-encoder on one layer of a model; after a stop or a kill, the same call continues.

An interrupted training ends with the same weights. Called by `workers.jobs`.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from workers.errors import Cancelled, RequestError
from workers.files import hold_lock
from workers.lab.exemplars import ask_dataset, file_name
from workers.lab.index_files import report_disk_errors
from workers.lab.map_stream import MapStream
from workers.protocols import Dataset, LabSettings, LayerInfo, Progress, VisionModel, check_layers, no_progress
from workers.sparse import storage
from workers.sparse.activations import ActivationBuffer, StreamPlace, split_images
from workers.sparse.autoencoder import SparseAutoencoder, geometric_median
from workers.sparse.learner import Learner
from workers.sparse.losses import total_variance
from workers.sparse.quality import measure_quality
from workers.sparse.recipe import SparseRecipe, TrainingPlan, check_positions, check_recipe, fingerprint
from workers.sparse.storage import SparseCard

SAVE_EVERY = 30.0
"""Seconds between checkpoints."""
_SAMPLE = 16_384
"""Positions that scale and first bias are measured on."""
HELD_OUT_BYTES = 64 << 20


@dataclass(frozen=True)
class SparseSource:
    """Whose activations an auto-encoder learns: a layer of a model over a dataset."""

    key: str
    """Of the model in the registry."""
    model: VisionModel
    layer: LayerInfo
    dataset_key: str
    dataset: Dataset

    def describe(self) -> dict[str, Any]:
        """Return what the card of an auto-encoder of it tells."""
        return {
            "model": self.model.name,
            "model_revision": self.model.revision,
            "model_key": self.key,
            "layer": self.layer.name,
            "layer_path": self.layer.path,
            "units": self.layer.units,
            "dataset": self.dataset.name,
            "dataset_revision": self.dataset.revision,
            "dataset_key": self.dataset_key,
        }


def find_source(key: str, model: VisionModel, layer: str, dataset_key: str, dataset: Dataset) -> SparseSource:
    """Raise UnknownName for a layer that the model does not have."""
    layers = {info.name: info for info in model.layers()}
    check_layers(model.name, [layer], layers)
    return SparseSource(key, model, layers[layer], dataset_key, dataset)


def _default_name(source: SparseSource, recipe: SparseRecipe) -> str:
    """Return a name such as toybox-layer4-topk-512-k8-seed0."""
    end = f"-{recipe.kind}-{recipe.latents}-k{recipe.k}-seed{recipe.seed}"
    start = file_name(f"{source.model.name}-{source.layer.name}").strip("_.-")
    return f"{start[: 100 - len(end)]}{end}"


def train_sparse(
    settings: LabSettings, source: SparseSource, recipe: SparseRecipe, name: str = "", progress: Progress = no_progress
) -> SparseCard:
    """Return the card of the auto-encoder of this name, trained now unless it was before.

    Raises RequestError for a recipe that cannot be followed,
    or a name that belongs to another one; MachineryError if the disk is full or values make no sense; and Cancelled if
    `progress` does: what is done is kept.
    """
    ask_dataset(source.dataset, "list_files", progress)
    check_recipe(recipe, source.model, source.layer, source.dataset)
    target = storage.find_path(settings.state, name or _default_name(source, recipe))
    lock = target.with_name(f"{target.stem}.lock")
    mark = fingerprint(recipe, source.model, source.layer, source.dataset)
    with ExitStack() as held:
        with report_disk_errors(target.parent):
            held.enter_context(hold_lock(lock, lambda: progress(f"Waiting for {target.stem}", 0, 1)))
            storage.remove_leftovers(target)
        if target.exists():
            card = storage.read_card(target)
            _refuse_other(target, card.fingerprint, mark)
            return card
        # Under the lock: two processes that want the same name wait for each other
        checkpoint = target.with_name(f"{target.stem}.checkpoint")
        saved = storage.load_checkpoint(checkpoint)
        _refuse_other(checkpoint, saved["fingerprint"] if saved else mark, mark)
        ask_dataset(source.dataset, "prepare", progress)
        training = SparseTraining(settings, source, recipe, mark, checkpoint)
        card = training.run(saved, target.stem, progress)
        storage.save_autoencoder(training.network, card, target)
        checkpoint.unlink(missing_ok=True)
    return card


def _refuse_other(path: Path, found: str, wanted: str) -> None:
    if found != wanted:
        raise RequestError(
            f"The name {path.stem!r} belongs to an auto-encoder of another recipe, model, layer or dataset ({path}). "
            "Choose another with --name, or remove that file."
        )


class SparseTraining:
    """One training under way."""

    def __init__(
        self, settings: LabSettings, source: SparseSource, recipe: SparseRecipe, mark: str, checkpoint: Path
    ) -> None:
        self._settings = settings
        self._source = source
        self._recipe = recipe
        self._mark = mark
        self._checkpoint = checkpoint
        self._stream = MapStream(settings, source.model, source.dataset)
        self._images, self._held_out = split_images(len(source.dataset), recipe.seed)
        self._buffer = ActivationBuffer(self._stream, source.layer.name, self._images, recipe.seed)
        check_positions(recipe, self._buffer.positions)
        self._plan = TrainingPlan(recipe.count_steps(self._buffer.per_image), recipe.batch, recipe.latents)
        # Started on the CPU, so that the seed gives the same weights on every device.
        start = SparseAutoencoder(source.layer.units, recipe.latents, recipe.k, recipe.kind, recipe.seed)
        self.network = start.to(settings.device)
        self._learner = Learner(self.network, self._plan)
        self._scale = 1.0
        self._place = StreamPlace()

    def run(self, saved: dict[str, Any] | None, name: str, progress: Progress) -> SparseCard:
        """Train to the end, from what was saved if anything was, and measure what came of it."""
        if saved:
            self._restore(saved)
        else:
            self._begin(progress)
        try:
            self._train(name, progress)
        # A stop by a person keeps all steps; a kill loses at most `SAVE_EVERY`.
        except Cancelled:
            self._save()
            raise
        self._save()  # measuring reads images, which may be stopped too
        # After the last checkpoint, which must stay in the scale of the training.
        self.network.fold_scale(self._scale)
        return self._describe(name, progress)

    def _begin(self, progress: Progress) -> None:
        """Measure the scale, and start the decoder's bias in the middle of the activations."""
        sample = self._buffer.sample(_SAMPLE, progress)
        variance = total_variance(sample)
        # The smallest share of the squared values that float32 tells from rounding
        if not variance > 1e-12 * float(sample.double().square().sum(1).mean()):
            raise RequestError(
                f"{self._source.layer.name} of {self._source.model.name} gives the same activations "
                f"({float(sample[0, 0]):g} …) at all positions of {self._source.dataset.name}: there is nothing to "
                "learn. Choose another layer or dataset."
            )
        self._scale = variance**0.5
        with torch.no_grad():
            # The geometric median, which a few extreme positions do not move.
            self.network.decoder_bias.copy_(geometric_median(sample / self._scale))

    def _train(self, name: str, progress: Progress) -> None:
        save_at = time.monotonic() + SAVE_EVERY
        while self._learner.step < self._plan.steps:
            progress(f"Training {name}", self._learner.step, self._plan.steps)
            batch, after = self._buffer.take(self._place, self._plan.batch, progress)
            self._learner.learn(batch.to(self._settings.device) / self._scale)
            # Only after the step, so that a checkpoint names the next batch that was not learnt from
            self._place = after
            if time.monotonic() >= save_at:
                self._save()
                save_at = time.monotonic() + SAVE_EVERY
        progress(f"Training {name}", self._learner.step, self._plan.steps)

    def _describe(self, name: str, progress: Progress) -> SparseCard:
        source, recipe, network = self._source, self._recipe, self.network.eval()
        del self._buffer  # its memory goes before the held-out images take theirs
        held_out = ActivationBuffer(self._stream, source.layer.name, self._held_out, recipe.seed, HELD_OUT_BYTES)
        quality = measure_quality(network, held_out.sample(held_out.positions, progress), self._learner.count_dead())
        return SparseCard(
            name=name,
            kind=recipe.kind,
            k=recipe.k,
            latents=recipe.latents,
            **source.describe(),
            seed=recipe.seed,
            steps=self._plan.steps,
            batch=recipe.batch,
            images=len(self._images),
            scale=self._scale,
            fingerprint=self._mark,
            quality=quality,
        )

    def _save(self) -> None:
        state = {
            "fingerprint": self._mark,
            **self._learner.state(),
            "scale": self._scale,
            "place": (self._place.part, self._place.batch),
        }
        storage.save_checkpoint(self._checkpoint, state)

    def _restore(self, saved: dict[str, Any]) -> None:
        self._learner.restore(saved)
        self._scale = float(saved["scale"])
        self._place = StreamPlace(*saved["place"])
