"""Synthetic neurons drawn by a seed and not chosen: what is tuned on some can be measured on others.

Every seed has 30 mono neurons (14 toys, 6 colours and 10 toys of a colour), 15 that respond to either of two toys
and 15 conditional ones. Uses the scenes of the dataset, because a neuron needs exemplars. Called by `detector`.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Mapping
from functools import cache

from workers.toybox.dataset import LENGTH
from workers.toybox.world import splits
from workers.toybox.world.scenes import COLOURS, NOUNS

_TOYS, _COLOURS, _COLOURED, _PAIRS = 14, 6, 10, 15
_ENOUGH = 22
"""Minimum number of scenes of the dataset for a neuron. The eyes miss some, and 15 are needed as exemplars."""


@cache
def draw_neurons(seed: int) -> Mapping[str, str]:
    """Return the neurons of a seed by kind, in the form of `synthetic.neuron.build_table`. The same seed gives the
    same."""
    rng = random.Random(f"fresh synthetic neurons {seed}")
    together, coloured = _count_scenes()
    # Only combinations that are frequent enough can have exemplars
    common = [kind for kind in itertools.product(COLOURS, NOUNS) if coloured[kind] >= _ENOUGH]
    mono = [
        *rng.sample(NOUNS, _TOYS),
        *(f"something {colour}" for colour in rng.sample(COLOURS, _COLOURS)),
        *(" ".join(kind) for kind in rng.sample(common, _COLOURED)),
    ]
    pairs = list(itertools.combinations(NOUNS, 2))
    # Ordered pairs: "a | b" is another neuron than "b | a"
    ordered = [pair for pair in itertools.permutations(NOUNS, 2) if together[frozenset(pair)] >= _ENOUGH]
    either = rng.sample(pairs, _PAIRS)
    return {
        "mono": ", ".join(mono),
        "either": ", ".join(" or ".join(pair) for pair in either),
        "conditional": ", ".join(" | ".join(pair) for pair in rng.sample(ordered, _PAIRS)),
    }


@cache
def _count_scenes() -> tuple[Counter[frozenset[str]], Counter[tuple[str, str]]]:
    """Count the scenes of the dataset in which two toys occur together, and a toy of a colour occurs."""
    together: Counter[frozenset[str]] = Counter()
    coloured: Counter[tuple[str, str]] = Counter()
    for number in range(LENGTH):
        things = splits.scene("validation", number).things
        # Each pair once a scene: several toys of a kind are still one occurrence
        together.update(map(frozenset, itertools.combinations(sorted({thing.noun for thing in things}), 2)))
        coloured.update({(thing.colour, thing.noun) for thing in things})
    return together, coloured
