"""Train a classifier on the training split of a grouped dataset, on the processor or a GPU.

The file of weights has dataset, seed and revision in its name, and lies in the state folder, where
`vision_models.classifier` finds it. After each epoch a checkpoint is written, so that stopped work continues.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from workers.files import atomic_write, hold_lock
from workers.protocols import GroupedDataset, LabSettings, Progress, no_progress
from workers.vision_models.classifier.network import (
    ClassifierCard,
    GroupClassifier,
    normalise,
    resize,
    save_classifier,
)

_PART = 64
"""Images that are drawn between two reports of progress."""


@dataclass(frozen=True)
class ClassifierRecipe:
    """How a classifier is trained."""

    epochs: int
    rate: float
    decay: float = 1e-4
    batch: int = 64
    start: str = ""
    """A file of weights to start from, in safetensors; "" for none."""


def choose_recipe(dataset: GroupedDataset, start: str = "") -> ClassifierRecipe:
    """Return the recipe for a dataset: Adam with 1e-3 for the small network, which mostly learns anew, else MAIA's
    1e-4.
    """
    rate = 1e-3 if dataset.network == "small" else 1e-4
    return ClassifierRecipe(dataset.epochs, rate, start=start or str(dataset.start or ""))


def _name_classifier(dataset: GroupedDataset, recipe: ClassifierRecipe, seed: int) -> str:
    """Return the name of the resulting classifier; the same for the same dataset, recipe and seed."""
    # By content, so that another file under the same name trains another classifier
    start = Path(recipe.start).read_bytes() if recipe.start else b""
    facts = f"{dataset.name} {dataset.revision} {dataset.network} {recipe.epochs} {recipe.rate} {recipe.decay} "
    revision = hashlib.sha256(f"{facts} {recipe.batch}".encode() + start).hexdigest()[:8]
    stem = re.sub(r"[^\w.-]+", "-", dataset.name.removesuffix(":train")).strip("-.")
    return f"{stem[:100]}-seed-{seed}-{revision}"


def train_classifier(
    settings: LabSettings,
    dataset: GroupedDataset,
    seed: int,
    progress: Progress = no_progress,
    recipe: ClassifierRecipe | None = None,
) -> str:
    """Return the name of the classifier, trained now unless it was before. An exception of `progress` passes through.

    Raises MissingPart if the file to start from does not fit.
    """
    recipe = recipe or choose_recipe(dataset)
    name = _name_classifier(dataset, recipe, seed)
    folder = settings.state / "classifiers"
    target = folder / f"{name}.safetensors"
    # Two workers that want the same classifier wait for each other
    with hold_lock(folder / f"{name}.lock", lambda: progress("waiting for the classifier", 0, 1)):
        if not target.exists():
            pixels = _load_pixels(dataset, progress)
            checkpoint = folder / f"{name}.checkpoint"
            network = _train(settings, dataset, pixels, seed, recipe, checkpoint, progress)
            card = ClassifierCard(dataset.network, tuple(dataset.classes), dataset.name.removesuffix(":train"), seed)
            save_classifier(network.cpu(), card, target)
            checkpoint.unlink(missing_ok=True)
    return name


def _load_pixels(dataset: GroupedDataset, progress: Progress) -> NDArray[np.uint8]:
    parts = []
    for start in range(0, len(dataset), _PART):
        progress("drawing the training images", start, len(dataset))
        images = [dataset[at].image for at in range(start, min(start + _PART, len(dataset)))]
        # Reduced in parts, so that the full pictures need not all be in memory
        parts.append(resize(images, dataset.network))
    return np.concatenate(parts)


def _train(
    settings: LabSettings,
    dataset: GroupedDataset,
    pixels: NDArray[np.uint8],
    seed: int,
    recipe: ClassifierRecipe,
    checkpoint: Path,
    progress: Progress,
) -> GroupClassifier:
    # Other threads draw from the same generator, so its state is put back afterwards
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = GroupClassifier(dataset.network, len(dataset.classes))
        if recipe.start:
            network.start_from(Path(recipe.start))
        # channels_last is faster for convolutions on processors
        network.to(settings.device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        optimizer = torch.optim.AdamW(network.parameters(), recipe.rate, weight_decay=recipe.decay)
        keep: dict[str, nn.Module | torch.optim.Optimizer] = {"network": network, "optimizer": optimizer}
        # Rounded up: the last step takes what is left
        steps = -(-len(pixels) // recipe.batch)
        for epoch in range(_resume(checkpoint, keep), recipe.epochs):
            # Dropout and order follow from seed and epoch alone, so that a resumed training ends the same
            torch.manual_seed(seed * 1_000 + epoch)
            order = torch.randperm(len(pixels)).numpy()
            network.train()
            for step, batch in enumerate(np.array_split(order, steps)):
                progress("training the classifier", epoch * steps + step, recipe.epochs * steps)
                # By the class alone: the classifier is not told the ground
                _learn(network, optimizer, pixels[batch], dataset.cells[batch, 0], settings.device)
            with atomic_write(checkpoint) as file:
                torch.save({part: value.state_dict() for part, value in keep.items()} | {"epoch": epoch + 1}, file)
    return network.eval()


def _learn(
    network: GroupClassifier,
    optimizer: torch.optim.Optimizer,
    pixels: NDArray[np.uint8],
    classes: NDArray[np.int64],
    device: str,
) -> None:
    logits = network(normalise(pixels, network.shape).to(device))
    loss = nn.functional.cross_entropy(logits, torch.from_numpy(classes).to(device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def _resume(checkpoint: Path, keep: dict[str, nn.Module | torch.optim.Optimizer]) -> int:
    """Restore a checkpoint, and return the epoch to continue with."""
    if not checkpoint.exists():
        return 0
    # `weights_only`: unpickling must not run code
    saved = torch.load(checkpoint, map_location="cpu", weights_only=True)
    for name, part in keep.items():
        part.load_state_dict(saved[name])
    return int(saved["epoch"])
