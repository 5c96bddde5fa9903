"""Labelled scenes for training and for testing the toybox networks: drawn once, in parallel, and kept on disk.

Every example follows from its split and its number, so that splits never share a scene. Called by `train` and, for
the scenes of the validation set, by `dataset`. Knows no network.
"""

from __future__ import annotations

import multiprocessing
import random
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.lib.format import open_memmap
from numpy.typing import NDArray
from PIL import Image

from workers.protocols import Progress, silent
from workers.toybox.nets import EYES_OUTPUT, INPUT, Vocabulary
from workers.toybox.scenes import COLOURS, GROUNDS, LIGHTS, NOUNS, SIZES, Scene, compose, random_scene

Split = Literal["train", "mixed", "single", "validation"]
"""Training scenes; held-out scenes of any number of toys; held-out scenes of one toy; the data set people see."""

NATIVE = 224
"""Side of a toybox picture as people and tools see it, in pixels."""
_CHUNK = 200


def vocabulary() -> Vocabulary:
    """The words of today's scenes."""
    return Vocabulary(tuple(NOUNS), tuple(COLOURS), tuple(SIZES), tuple(GROUNDS), tuple(LIGHTS))


def scene(split: Split, number: int) -> Scene:
    """The scene behind an example."""
    rng = random.Random(f"toybox {split} {number}")
    if split == "single":
        return random_scene(rng, 1)
    return _training_scene(rng) if split == "train" else random_scene(rng)


def _training_scene(rng: random.Random) -> Scene:
    """Mostly random scenes, and enough of what is rare among them: one toy, no toy, one toy on another."""
    kind = rng.choices(("random", "one", "none", "stack"), (75, 12, 3, 10))[0]
    if kind == "stack":
        kinds = [(rng.choice(NOUNS), rng.choice(COLOURS), rng.choice(SIZES)) for _ in range(rng.randint(2, 3))]
        return compose(kinds, rng, on={1: 0})
    return random_scene(rng, {"random": None, "one": 1, "none": 0}[kind])


def pictures_revision() -> str:
    """Changes whenever scenes or their pictures may: a hash of the modules that make them, and of this one."""
    here = Path(__file__).parent
    names = ("scenes", "stage", "solids", "toys", "backdrops", "render", "examples")
    return sha256(b"".join((here / f"{name}.py").read_bytes() for name in names)).hexdigest()[:12]


@dataclass(frozen=True)
class Examples:
    """Examples of one split, in order."""

    images: NDArray[np.uint8]
    """(examples, 96, 96, 3), as `nets.preprocess` sees them."""
    things: NDArray[np.uint8]
    """(examples, 48, 48): 0 where no toy is, else 1 + the position of the toy in its scene."""
    scenes: tuple[Scene, ...]

    def __len__(self) -> int:
        return len(self.scenes)

    @cached_property
    def presence(self) -> NDArray[np.bool_]:
        """(examples, classes): which of `Vocabulary.classes` each scene shows."""
        place = {word: position for position, word in enumerate(vocabulary().classes)}
        found = np.zeros((len(self.scenes), len(place)), dtype=bool)
        for row, scene in zip(found, self.scenes, strict=True):
            words = {scene.ground, scene.light} | {
                word for thing in scene.things for word in (thing.noun, thing.colour)
            }
            row[[place[word] for word in words]] = True
        return found

    @cached_property
    def words(self) -> NDArray[np.int64]:
        """(examples, 1 + most things, 3): noun, colour and size of each thing by its value in `things`.

        Nouns count from 1, with 0 for no toy; colours and sizes count from 0, with -1 for no toy.
        """
        most = max((len(scene.things) for scene in self.scenes), default=0)
        table = np.tile(np.array([0, -1, -1]), (len(self.scenes), 1 + most, 1))
        for row, scene in zip(table, self.scenes, strict=True):
            for position, thing in enumerate(scene.things, start=1):
                row[position] = (
                    1 + NOUNS.index(thing.noun), COLOURS.index(thing.colour), SIZES.index(thing.size)
                )  # fmt: skip
        return table


def load(split: Split, count: int, state: Path, processes: int = 2, progress: Progress = silent) -> Examples:
    """The first `count` examples of a split; draws those that `state` does not hold yet.

    May be stopped at any time: what was drawn stays. An exception of `progress` passes through.
    """
    folder = state / "toybox" / f"{split}-{pictures_revision()}-{count}"
    folder.mkdir(parents=True, exist_ok=True)
    images = _array(folder / "images.npy", (count, INPUT, INPUT, 3))
    things = _array(folder / "things.npy", (count, EYES_OUTPUT, EYES_OUTPUT))
    done = _array(folder / "done.npy", (-(-count // _CHUNK),))
    missing = [int(chunk) for chunk in np.flatnonzero(done == 0)]
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        futures = {pool.submit(_draw, split, range(c * _CHUNK, min(count, (c + 1) * _CHUNK))): c for c in missing}
        try:
            for future in as_completed(futures):
                chunk = futures[future]
                here = slice(chunk * _CHUNK, (chunk + 1) * _CHUNK)
                images[here], things[here] = future.result()
                done[chunk] = 1
                progress(f"drawing {split} scenes", int(done.sum()) * _CHUNK, len(done) * _CHUNK)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return Examples(images, things, tuple(scene(split, number) for number in range(count)))


def _array(path: Path, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """An array on disk, of zeros when new."""
    array: NDArray[np.uint8] = open_memmap(path, "r+" if path.exists() else "w+", np.uint8, shape)
    return array


def _draw(split: Split, numbers: range) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Pictures and masks of some examples; runs in a process of its own."""
    from workers.toybox import render

    scenes = [scene(split, number) for number in numbers]
    images = [render.render(each, NATIVE).resize((INPUT, INPUT), Image.Resampling.BILINEAR) for each in scenes]
    masks = [render.render_masks(each, EYES_OUTPUT) for each in scenes]
    return np.stack([np.asarray(image) for image in images]), np.stack(masks)
