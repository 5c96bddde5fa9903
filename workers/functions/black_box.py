"""A function under study: it answers inputs, and its truth is hidden from the agent until the end."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from workers.errors import ToolMisuse

# Only for types: the module imports torch
if TYPE_CHECKING:
    from workers.functions.words.triplets import Triplet

Family = Literal["numeric", "strings", "concepts", "relations"]
Variant = Literal["clean", "corrupted", "noised", "approximated"]
Side = Literal["smaller", "larger", "inside"]
NoiseKind = Literal["normal", "uniform", "poisson"]

MAX_INPUTS = 1_000
"""Inputs of one call."""


@dataclass(frozen=True)
class Corruption:
    """An interval of the domain in which the function answers Normal(mean, sd) instead."""

    side: Side
    low: float
    """Lower end, exclusive; minus infinity on the side "smaller"."""
    high: float
    mean: float
    """The mean of the function over 100 points of the domain."""
    sd: float = 0.1


@dataclass(frozen=True)
class Noise:
    """The noise added to each answer: normal with sd 1, uniform within ±1 or Poisson with a mean of 1."""

    kind: NoiseKind


@dataclass(frozen=True)
class Truth:
    """The truth about a function. Callers hide it until the agent has answered."""

    code: str
    """Python with `def f(x)` last: what the function computes, without noise. Published code is as it was published,
    noise included."""
    description: str
    atoms: tuple[str, ...]
    """Names of the one or two atoms it is made of."""
    domain: str
    """The inputs it is meant for, in words."""
    variant: Variant = "clean"
    corruption: Corruption | None = None
    noise: Noise | None = None
    approximation_error: float | None = None
    """NMSE of the network against the atoms' code; None for the other variants."""


class BlackBox(Protocol):
    """A function that can be called and whose truth is known. It follows from its key alone."""

    @property
    def key(self) -> str:
        """Family and seed, such as "numeric:17"."""

    @property
    def family(self) -> Family: ...

    @property
    def truth(self) -> Truth: ...

    def call(self, inputs: Sequence[Any], number: int = 0) -> list[Any]:
        """Return one output for each of at most 1,000 inputs.

        `number` counts the calls of a run: the noise of a call depends on the key, the number and the inputs, so a
        repeated input gets fresh noise in each new call and a repeated run gets the same. Raises ToolMisuse.
        """

    def evaluate(self, inputs: Sequence[Any]) -> list[Any]:
        """Return the outputs without noise, for scoring. Raises ToolMisuse."""

    def draw_held_out(self) -> list[Any]:
        """Return the inputs on which answers are scored, by the key; none if descriptions are judged."""

    def draw_hints(self) -> list[Any]:
        """Return the 10 inputs or so that an agent with hints is given at the start, by the key. They are never
        scored.
        """


class JudgedBox(BlackBox, Protocol):
    """A function whose descriptions can be judged by choices made with them: of words, which have no other answer, and
    of texts.
    """

    @property
    def question(self) -> str:
        """Says which option of a triplet is right."""

    def draw_triplets(self) -> list[Triplet]:
        """Return the 10 choices that answers are judged on, by the key."""


class FunctionModel(Protocol):
    """A model whose units are functions: a layer is a family."""

    def open(self, layer: str, number: int) -> BlackBox:
        """Return the function. Raises UnknownName; MissingPart where something is not here that it needs."""

    def find_trouble(self, layer: str, number: int) -> str:
        """Say why the function cannot be called and scored, with the remedy if there is one; "" if it can."""

    def list_defects(self, layer: str, number: int) -> list[str]:
        """List known defects of a function that can be called; details follow a colon."""


def check_count(inputs: Any, wanted: str) -> None:
    """Raise ToolMisuse unless `inputs` is a list or tuple of 1 to 1,000 things; `wanted` says of what."""
    # A text is a sequence too, and would be taken apart into characters
    if isinstance(inputs, str | bytes) or not isinstance(inputs, list | tuple):
        raise ToolMisuse(f"The inputs are {type(inputs).__name__}: give a list of {wanted}.")
    if not 1 <= len(inputs) <= MAX_INPUTS:
        raise ToolMisuse(f"The call has {len(inputs):,} inputs: give a list of 1 to {MAX_INPUTS:,} {wanted}.")


def check_texts(inputs: Any, wanted: str, most_chars: int) -> Sequence[str]:
    """Return the inputs, printable texts of at most so many characters; `wanted` says so. Raises ToolMisuse."""
    check_count(inputs, wanted)
    for place, text in enumerate(inputs):
        if not isinstance(text, str):
            raise ToolMisuse(f"Input {place} is {type(text).__name__}: give a list of {wanted}.")
        if len(text) > most_chars:
            raise ToolMisuse(f"Input {place} has {len(text):,} characters: give a list of {wanted}.")
        if not text.isprintable():
            first = next(char for char in text if not char.isprintable())
            raise ToolMisuse(f"Input {place} holds {first!r}, which is not printable: give a list of {wanted}.")
    return list(inputs)


def seed_noise(key: str, number: int, inputs: Sequence[Any]) -> random.Random:
    """Return the source of noise for one call."""
    # A digest, because `hash` of a text changes from process to process
    digest = hashlib.sha256(repr((key, number, list(inputs))).encode()).digest()
    return random.Random(int.from_bytes(digest[:8], "big"))
