"""A synthetic neuron and its arithmetic (paper, appendix C2), independent of how concepts are found.

At the end are the tables of neurons: those that the paper prints, and those of its published code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Kind = Literal["mono", "or", "conditional"]

_BETWEEN: Mapping[Kind, str] = {"mono": "", "or": " or ", "conditional": " | "}


@dataclass(frozen=True)
class ConceptMask:
    """A concept that is present in an image."""

    value: float
    """Mean confidence of the places where it was found, in [0, 1]."""
    mask: NDArray[np.bool_]
    """Union of these places, (height, width)."""


@dataclass(frozen=True)
class Neuron:
    """Responds to one concept, to either of two, or to the first of two if the second is present as well."""

    kind: Kind
    concepts: tuple[str, ...]

    @property
    def name(self) -> str:
        """Display name, such as "ball", "ball or cone", "ball | cone"."""
        return _BETWEEN[self.kind].join(self.concepts)

    def respond(self, seen: Mapping[str, ConceptMask]) -> ConceptMask | None:
        """Return value and mask in an image that shows the concepts `seen`; None if it is silent.

        A or B: whichever is present; for both, the mean value and the union of the masks. A | B: A, if B is present
        too.
        """
        # Built anew for each image: the published code carries state from one label to the next.
        present = [seen[concept] for concept in self.concepts if concept in seen]
        if self.kind == "conditional":
            return present[0] if len(present) == len(self.concepts) else None
        if not present:
            return None
        value = sum(each.value for each in present) / len(present)
        return ConceptMask(value, np.logical_or.reduce([each.mask for each in present]))


NeuronTable = Mapping[str, tuple[Neuron, ...]]
"""Kind -> its neurons in the order of their numbers."""


def build_table(*, mono: str, either: str, conditional: str) -> NeuronTable:
    """Build a table from the comma-separated names of its neurons."""
    lists: tuple[tuple[Kind, str], ...] = (("mono", mono), ("or", either), ("conditional", conditional))
    return {
        kind: tuple(Neuron(kind, tuple(name.strip().split(_BETWEEN[kind] or ","))) for name in names.split(","))
        for kind, names in lists
    }


TABLE_A4 = build_table(
    mono="""
        arch, bird, blue, boat, brick, bridge, bug, building, button, car window, circle, dog, eyes, feathers, flame,
        frog, grass, hair, hands, handle, hat, jeans, jigsaw, legs, light, neck, orange, paws, pencil, pizza, roof,
        shirt, shoes, sky, snake, spiral, stripes, sunglasses, tail, text, tires, tractor, vehicle, wing, yarn
    """,
    either="""
        animal or door, animal or ship, baby or dog, bird or dog, blue or yellow, bookshelf or building, cup or road,
        dog or car, dog or horse, dog or instrument, fire or fur, firework or whisker, hand or ear, necklace or flower,
        people or building, people or wood, red or purple, shoe or boat, sink or pool, skirt or water,
        stairs or fruit, temple or playground, truck or train, window or wheel
    """,
    conditional="""
        ball | hand, beach | people, bird | tree, bridge | sky, building | sky, cup | handle, dog | leash,
        fence | animal, fish | water, grass | dog, horse | grass, instrument | hand, skyline | water, sky | bird,
        snow | road, suit | tie, tent | mountain, water | blue, wheel | racecar
    """,
)
"""The paper's Table A4, row by row. Its text says 85 neurons; the table prints these 88: 45, 24 and 19."""

_TABLE = build_table(
    mono="""
        stripes, bridge, jigsaw, handle, sunglasses, bird, arch, boat, feathers, tail, bug, text, pink, blue, dog,
        hands, tractor, frog, shirt, hat, roof, wing, hair, shoulders, circle, grass, orange, neck, flame, pizza,
        button, tires, building, eyes, paws, brick, legs, shoes, car window, pencil, light, snake, yarn, vehicle,
        jeans, sky, spiral
    """,
    either="""
        people or building, shoe or boat, window or wheel, truck or train, hand or ear, temple or playground,
        baby or dog, necklace or flower, dog or horse, dog or car, cup or road, blue or yellow, fire or fur,
        sink or pool, dog or bird, train or instrument, red or purple, people or wood
    """,
    conditional="""
        building | sky, cup | handle, horse | grass, grass | dog, red | orange, water | blue, dog | leash,
        snow | road, fish | water, sky | bird, beach | people, fence | animal, instrument | hand, skyline | water,
        tent | mountain, bird | tree, ball | hand, bridge | sky, suit | tie, wheel | racecar
    """,
)
RELEASED_NEURONS: NeuronTable = {"mono": _TABLE["mono"], "or": _TABLE["or"], "and": _TABLE["conditional"]}
"""The neurons of MAIA's published code with its numbers: 47, 18 and 20, where the paper's text counts 85.

They are in the order of its folder of labels, which published exemplars and transcripts use. The paper's Table A4
prints others, sorted. The code's "and" is the paper's conditional neuron.
"""
