"""A synthetic neuron and its arithmetic (paper, appendix C2). Knows concepts that were seen, not how they were.

Called by `vision_models.synthetic`; the tables beside this file are made of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Kind = Literal["mono", "or", "conditional"]

_BETWEEN: Mapping[Kind, str] = {"mono": "", "or": " or ", "conditional": " | "}


@dataclass(frozen=True)
class ConceptMask:
    """A concept that is present in an image."""

    value: float
    """In [0, 1]: the mean confidence of the places where it was found."""
    mask: NDArray[np.bool_]
    """(height, width): all those places."""


@dataclass(frozen=True)
class Neuron:
    """Responds to one concept, to either of two, or to the first of two where the second is present as well."""

    kind: Kind
    concepts: tuple[str, ...]

    @property
    def name(self) -> str:
        """Such as "ball", "ball or cone", "ball | cone"."""
        return _BETWEEN[self.kind].join(self.concepts)

    def respond(self, seen: Mapping[str, ConceptMask]) -> ConceptMask | None:
        """Value and mask in an image that shows the concepts `seen`, and maybe others; None if it is silent.

        A or B: whichever is present; of both, the mean value and the masks together. A | B: A, if B is there too.
        """
        present = [seen[concept] for concept in self.concepts if concept in seen]
        if self.kind == "conditional":
            return present[0] if len(present) == len(self.concepts) else None
        if not present:
            return None
        value = sum(each.value for each in present) / len(present)
        return ConceptMask(value, np.logical_or.reduce([each.mask for each in present]))


NeuronTable = Mapping[str, tuple[Neuron, ...]]
"""Kind -> its neurons, in the order of their numbers."""


def build_table(*, mono: str, either: str, conditional: str) -> NeuronTable:
    """A table from the names of its neurons, separated by commas."""
    lists: tuple[tuple[Kind, str], ...] = (("mono", mono), ("or", either), ("conditional", conditional))
    return {kind: tuple(_neuron(kind, name.strip()) for name in names.split(",")) for kind, names in lists}


def _neuron(kind: Kind, name: str) -> Neuron:
    return Neuron(kind, tuple(name.split(_BETWEEN[kind])) if _BETWEEN[kind] else (name,))
