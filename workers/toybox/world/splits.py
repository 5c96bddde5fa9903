"""Which scenes are for training, which are held out, and which are the dataset people see: never the same ones.

Every scene follows from its split and its number. Called by `examples` and `dataset`; draws nothing.
"""

from __future__ import annotations

import random
from hashlib import sha256
from pathlib import Path
from typing import Literal

from workers.toybox.world.scenes import COLOURS, NOUNS, SIZES, Scene, compose, random_scene

Split = Literal["train", "mixed", "single", "validation", "development", "probe"]
"""Training scenes; held-out scenes of any number of toys; held-out scenes of one toy; the dataset people see; those
that labels are tried on while a run goes on, and those that they are checked on."""

NATIVE = 224
"""Side of a toybox picture as people and tools see it, in pixels."""
MAKERS = ("splits", "scenes", "stage", "solids", "toys", "meshes", "backdrops", "render")
"""The modules of this folder that have a part in what a scene looks like."""


def scene(split: Split, number: int) -> Scene:
    """The scene behind an example."""
    rng = random.Random(f"toybox {split} {number}")
    if split != "train":
        return random_scene(rng, 1 if split == "single" else None)
    # Mostly random scenes, and enough of what is rare among them: one toy, no toy, one toy on another
    kind = rng.choices(("random", "one", "none", "stack"), (75, 12, 3, 10))[0]
    if kind == "stack":
        kinds = [(rng.choice(NOUNS), rng.choice(COLOURS), rng.choice(SIZES)) for _ in range(rng.randint(2, 3))]
        return compose(kinds, rng, on={1: 0})
    return random_scene(rng, {"random": None, "one": 1, "none": 0}[kind])


def pictures_revision() -> str:
    """Changes whenever scenes or their pictures may: a hash of the modules that make them."""
    here = Path(__file__).parent
    return sha256(b"".join((here / f"{name}.py").read_bytes() for name in MAKERS)).hexdigest()[:12]
