"""Draw labelled scenes for training and testing the toybox networks: drawn once, in parallel, and kept on disk.

Called by `train`. Of the networks, it uses only their input sizes.
"""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.lib.format import open_memmap
from numpy.typing import NDArray
from PIL import Image

from workers.protocols import Progress, no_progress
from workers.toybox.networks.nets import EYES_OUTPUT, INPUT, Vocabulary
from workers.toybox.world.scenes import COLOURS, GROUNDS, LIGHTS, NOUNS, SIZES, Scene
from workers.toybox.world.splits import NATIVE, Split, pictures_revision, scene

CLOSE_UP = 40
"""Side of a close-up, in pixels of the networks' input; even the largest toy fits."""
_CHUNK = 200
_SEEN = 6
"""Toys with fewer of the eyes' pixels count as unseen."""


def vocabulary() -> Vocabulary:
    """Return the words of today's scenes."""
    return Vocabulary(tuple(NOUNS), tuple(COLOURS), tuple(SIZES), tuple(GROUNDS), tuple(LIGHTS))


@dataclass(frozen=True)
class Examples:
    """Examples of one split, in order."""

    images: NDArray[np.uint8]
    """(examples, side, side, 3), as `nets.preprocess` sees them. The side is 96, or 40 in close-ups."""
    things: NDArray[np.uint8]
    """(examples, side / 2, side / 2): 0 without a toy, else 1 + the index of the toy in its scene."""
    scenes: tuple[Scene, ...]

    def __len__(self) -> int:
        return len(self.scenes)

    @cached_property
    def presence(self) -> NDArray[np.bool_]:
        """(examples, classes): which of `Vocabulary.classes` each scene shows."""
        place = {word: position for position, word in enumerate(vocabulary().classes)}
        found = np.zeros((len(self.scenes), len(place)), dtype=bool)
        for row, shown in zip(found, self.scenes, strict=True):
            words = {shown.ground, shown.light}.union(*((thing.noun, thing.colour) for thing in shown.things))
            row[[place[word] for word in words]] = True
        return found

    @cached_property
    def words(self) -> NDArray[np.int64]:
        """(examples, 1 + most things, 3): noun, colour and size of each thing, indexed by its value in `things`.

        Nouns count from 1, with 0 for no toy. Colours and sizes count from 0, with -1 for no toy.
        """
        most = max((len(each.things) for each in self.scenes), default=0)
        table = np.tile(np.array([0, -1, -1]), (len(self.scenes), 1 + most, 1))
        for row, shown in zip(table, self.scenes, strict=True):
            for position, thing in enumerate(shown.things, start=1):
                colour, size = COLOURS.index(thing.colour), SIZES.index(thing.size)
                row[position] = 1 + NOUNS.index(thing.noun), colour, size
        return table


def load(split: Split, numbers: range, state: Path, processes: int = 2, progress: Progress = no_progress) -> Examples:
    """Return the examples of a split with these numbers. Draws those that `state` does not have yet.

    Can be interrupted at any time; finished chunks are kept. An exception of `progress` passes through.
    """
    count = len(numbers)
    folder = state / "toybox" / f"{split}-{pictures_revision()}-{numbers.start}-{count}"
    folder.mkdir(parents=True, exist_ok=True)
    images = _array(folder / "images.npy", (count, INPUT, INPUT, 3))
    things = _array(folder / "things.npy", (count, EYES_OUTPUT, EYES_OUTPUT))
    # One flag a chunk, written after its pictures: an interruption loses one chunk at most
    done = _array(folder / "done.npy", (-(-count // _CHUNK),))
    missing = [int(chunk) for chunk in np.flatnonzero(done == 0)]
    alone = processes == 1  # one worker needs no other process
    spawn = multiprocessing.get_context("spawn")
    with ThreadPoolExecutor(1) if alone else ProcessPoolExecutor(processes, spawn) as pool:
        futures = {pool.submit(_draw, split, numbers[c * _CHUNK : (c + 1) * _CHUNK]): c for c in missing}
        try:
            for future in as_completed(futures):
                chunk = futures[future]
                here = slice(chunk * _CHUNK, (chunk + 1) * _CHUNK)
                images[here], things[here] = future.result()
                done[chunk] = 1
                progress(f"drawing {split} scenes", min(count, int(done.sum()) * _CHUNK), count)
        # Also KeyboardInterrupt: queued chunks would otherwise be drawn to the end
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return Examples(images, things, tuple(scene(split, number) for number in numbers))


def close_ups(whole: Examples, seed: int = 0) -> Examples:
    """Return one example of 40 x 40 pixels for each visible toy, with the toy near its middle."""
    # With a seed: the cuts are part of the training
    rng = np.random.default_rng(seed)
    cuts = [
        _cut_toy(whole, row, position, rng)
        for row, shown in enumerate(whole.scenes)
        for position in range(1, 1 + len(shown.things))
        if (whole.things[row] == position).sum() >= _SEEN
    ]
    images, things, scenes = zip(*cuts, strict=True)
    return Examples(np.stack(images), np.stack(things), scenes)


def _cut_toy(
    whole: Examples, row: int, position: int, rng: np.random.Generator
) -> tuple[NDArray[np.uint8], NDArray[np.uint8], Scene]:
    """Return the surroundings of one toy, and a scene with only the toys visible in them, that one first."""
    # 1. Where the toy is, in the masks' pixels
    side = CLOSE_UP * EYES_OUTPUT // INPUT
    ys, xs = np.nonzero(whole.things[row] == position)
    middle = np.array([ys.min() + ys.max() + 1, xs.min() + xs.max() + 1]) // 2
    # Moved a little at random, so that toys are not always exactly in the middle
    top, left = np.clip(middle - side // 2 + rng.integers(-3, 4, 2), 0, EYES_OUTPUT - side)
    things = whole.things[row, top : top + side, left : left + side]
    # 2. The toys that are visible in the cut, renumbered with this one first
    counts = np.bincount(things.ravel(), minlength=1 + len(whole.scenes[row].things))
    others = [number for number in range(1, len(counts)) if counts[number] >= _SEEN and number != position]
    kept = [position, *others]
    renumbered = np.zeros(len(counts), np.uint8)
    renumbered[kept] = range(1, 1 + len(kept))
    # What a toy stands on may be cut away
    cut = replace(whole.scenes[row], things=tuple(replace(whole.scenes[row].things[k - 1], on=None) for k in kept))
    # 3. The same rectangle in the picture's pixels
    top, left, side = (number * INPUT // EYES_OUTPUT for number in (top, left, side))
    return whole.images[row, top : top + side, left : left + side], renumbered[things], cut


def _array(path: Path, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """Open an array on disk. A new one is all zeros."""
    # "r+" continues interrupted work; "w+" would erase it
    return open_memmap(path, "r+" if path.exists() else "w+", np.uint8, shape)


def _draw(split: Split, numbers: range) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return pictures and masks of some examples."""
    from workers.toybox.world import render

    scenes = [scene(split, number) for number in numbers]
    images = [render.render(each, NATIVE).resize((INPUT, INPUT), Image.Resampling.BILINEAR) for each in scenes]
    masks = [render.render_masks(each, EYES_OUTPUT) for each in scenes]
    return np.stack([np.asarray(image) for image in images]), np.stack(masks)
