"""Presence of each pair of a colour and a noun in scenes of toybox: concepts with known truth. Draws nothing.

Loaded through the registry.
"""

from __future__ import annotations

from itertools import product

import torch

from workers.protocols import Progress, no_progress
from workers.toybox.world import splits
from workers.toybox.world.scenes import COLOURS, NOUNS

CONCEPTS = tuple(product(COLOURS, NOUNS))
_EVERY = 100
"""Scenes between two progress reports."""


def read(shown: int, held_out: int, progress: Progress = no_progress) -> tuple[torch.Tensor, torch.Tensor]:
    """Return presence (scenes, 200 concepts), 0 or 1, in `shown` scenes of the training split and in `held_out` others.

    Most scenes have one to four toys. An exception of `progress`, such as Cancelled, passes through.
    """
    return _read("train", shown, progress), _read("probe", held_out, progress)


def _read(split: splits.Split, count: int, progress: Progress) -> torch.Tensor:
    # Column of each kind, in the order of `CONCEPTS`
    places = {kind: place for place, kind in enumerate(CONCEPTS)}
    table = torch.zeros(count, len(CONCEPTS))
    for number in range(count):
        if number % _EVERY == 0:
            progress("Reading scenes", number, count)
        for thing in splits.scene(split, number).things:
            # Presence, not a count: two red balls are still 1
            table[number, places[thing.colour, thing.noun]] = 1.0
    return table
