"""What each toybox network learns: its loss on labelled scenes, and the recipe of its training.

`train` trains and `evaluation` measures.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from workers.toybox.networks import examples
from workers.toybox.networks.examples import Examples, close_ups
from workers.toybox.networks.nets import EyesOutput, ToyboxEyes, ToyboxNet, normalise


@dataclass(frozen=True)
class TrainingRecipe:
    """How a network is trained: first on close-ups, where the toy is obvious, then on full scenes."""

    scenes: int = 10_000
    first: int = 0
    """Number of the first training scene."""
    close_up_epochs: int = 6
    epochs: int = 5
    close_up_batch: int = 128
    batch: int = 64
    close_up_rate: float = 6e-3
    """Highest learning rate. Each stage is one cycle."""
    rate: float = 2e-3
    decay: float = 1e-3
    sparse_units: float = 0.001
    """Weight of the mean of layer4's maxima in the loss, which keeps units silent unless needed."""
    sparse_head: float = 1e-4
    """Weight of the sum of the head's weights, which makes a unit support few classes."""
    seed: int = 0
    threads: int = 2


@dataclass(frozen=True)
class TrainingStage:
    """Some epochs on some examples."""

    name: str
    learnt: Examples
    epochs: int
    batch: int
    rate: float
    close_up: bool
    """True if every example is of one toy, the first of its scene."""


@dataclass(frozen=True)
class TrainingTask:
    """A network with its loss."""

    network: ToyboxNet | ToyboxEyes
    loss: Callable[[Tensor, TrainingStage, Tensor, bool], Tensor]
    """Loss for pixels (batch, side, side, 3), the stage, the examples' numbers (batch,), and whether they are
    mirrored."""
    after_step: Callable[[], None] = lambda: None


def training_stages(recipe: TrainingRecipe, whole: Examples) -> list[TrainingStage]:
    """Return the stages in order."""
    near = close_ups(whole, recipe.seed)
    return [
        TrainingStage("close-ups", near, recipe.close_up_epochs, recipe.close_up_batch, recipe.close_up_rate, True),
        TrainingStage("scenes", whole, recipe.epochs, recipe.batch, recipe.rate, False),
    ]


def net_task(recipe: TrainingRecipe) -> TrainingTask:
    """toybox-net learns what is present, from few units that support it."""
    network = ToyboxNet(examples.vocabulary())

    def loss(pixels: Tensor, lesson: TrainingStage, numbers: Tensor, _flipped: bool) -> Tensor:
        found = network.maps(normalise(pixels))
        logits, rows = found["logits"].flatten(1), numbers.numpy()
        truth = torch.from_numpy(lesson.learnt.presence[rows]).float()
        wrong = functional.binary_cross_entropy_with_logits(logits, truth)
        if lesson.close_up:  # one answer out of twenty is learnt much sooner than twenty times yes or no
            return wrong + _choice(network, logits, torch.from_numpy(lesson.learnt.words[rows, 1]))
        # After the close-ups, silence is rewarded: see `TrainingRecipe.sparse_units`
        loud = found["layer4"].amax(dim=(2, 3)).mean()
        return wrong + recipe.sparse_units * loud + recipe.sparse_head * network.logits.weight.sum()

    def keep_head_positive() -> None:
        with torch.no_grad():
            network.logits.weight.clamp_(min=0)

    # Positive from the start, as `keep_head_positive` demands
    nn.init.uniform_(network.logits.weight, 0, 0.03)
    # Most classes are absent from most scenes: begin with a low probability
    nn.init.constant_(network.logits.bias, -4.0)
    return TrainingTask(network, loss, keep_head_positive)


def _choice(network: ToyboxNet, logits: Tensor, toy: Tensor) -> Tensor:
    """Return the loss for which toy it is and which colour it has. `toy` comes from `Examples.words`."""
    nouns, colours = len(network.vocabulary.nouns), len(network.vocabulary.colours)
    noun, colour = logits[:, :nouns], logits[:, nouns : nouns + colours]
    # Nouns count from 1 in `Examples.words`, the logits from 0; the colour is the easier part
    return functional.cross_entropy(noun, toy[:, 0] - 1) + 0.5 * functional.cross_entropy(colour, toy[:, 1])


def eyes_task(_recipe: TrainingRecipe) -> TrainingTask:
    """toybox-eyes learns what every pixel belongs to, and the ground and light of the scene."""
    network = ToyboxEyes(examples.vocabulary())

    def loss(pixels: Tensor, lesson: TrainingStage, numbers: Tensor, flipped: bool) -> Tensor:
        seen: EyesOutput = network(normalise(pixels))
        noun, colour, size = pixel_words(lesson.learnt, numbers, flipped)
        ground, light = scene_words(lesson.learnt, numbers)
        parts = [
            2 * functional.cross_entropy(seen.noun, noun),
            # -1 marks pixels without a toy, which have neither colour nor size
            functional.cross_entropy(seen.colour, colour, ignore_index=-1),
            0.5 * functional.cross_entropy(seen.size, size, ignore_index=-1),
            0.2 * functional.cross_entropy(seen.ground, ground),
            0.2 * functional.cross_entropy(seen.light, light),
        ]
        return torch.stack(parts).sum()

    return TrainingTask(network, loss)


def pixel_words(learnt: Examples, numbers: Tensor, flipped: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Return noun, colour and size of every pixel, each (batch, height, width); see `Examples.words`."""
    rows = numbers.numpy()
    things = np.asarray(learnt.things[rows], dtype=np.int64)
    if flipped:
        # Pixels were mirrored, so their answers must be
        things = things[:, :, ::-1]
    words = torch.from_numpy(learnt.words[rows[:, None, None], things])  # (batch, height, width, 3)
    noun, colour, size = words.unbind(dim=3)
    return noun, colour, size


def scene_words(learnt: Examples, numbers: Tensor) -> tuple[Tensor, Tensor]:
    """Return ground and light of each scene, each (batch,)."""
    words = examples.vocabulary()
    scenes = [learnt.scenes[number] for number in numbers.tolist()]
    ground = [words.grounds.index(scene.ground) for scene in scenes]
    light = [words.lights.index(scene.light) for scene in scenes]
    return torch.tensor(ground), torch.tensor(light)
