"""A training as a process of its own that says each step: `python -m tests.support.sparse_training FOLDER STEPS`."""

from __future__ import annotations

import sys
from pathlib import Path

import torch

from tests.support.sparse_layers import ACTIVE, NumberedImages, SumsOfDirections
from workers.protocols import LabSettings
from workers.sparse import training
from workers.sparse.recipe import SparseRecipe

NAME = "sums"


def train(folder: Path, steps: int) -> None:
    """Train the sums of directions, saved after each step, on one thread, so that the order of sums is always one."""
    torch.set_num_threads(1)
    training.SAVE_EVERY = 0
    source = training.find_source(NAME, SumsOfDirections(), NAME, "numbers", NumberedImages(100))
    recipe = SparseRecipe(latents=48, k=ACTIVE, steps=steps, batch=256)

    def tell(what: str, done: int, total: int) -> None:
        if what.startswith("Training"):
            print(done, flush=True)

    training.train_sparse(LabSettings(folder, batch_size=16), source, recipe, NAME, tell)


if __name__ == "__main__":
    train(Path(sys.argv[1]), int(sys.argv[2]))
