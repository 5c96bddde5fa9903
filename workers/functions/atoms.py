"""The building blocks of functions: an atom is a line of data, an expression and words with the same parameters."""

from __future__ import annotations

import itertools
import math
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from string import Template
from typing import Any, Protocol


class Choice(Protocol):
    """A parameter's possible values."""

    def draw(self, rng: random.Random) -> Any: ...


@dataclass(frozen=True)
class Range:
    """Numbers from low to high with some decimals; `signed` negates half of them."""

    low: float
    high: float
    digits: int = 2
    signed: bool = False

    def draw(self, rng: random.Random) -> float | int:
        value = round(self.low + (self.high - self.low) * rng.random(), self.digits)
        value = -value if self.signed and rng.random() < 0.5 else value
        # Without decimals a whole number, so that the code says 3 and not 3.0
        return value if self.digits else int(value)


@dataclass(frozen=True)
class OneOf:
    """One value of several."""

    values: tuple[Any, ...]

    def draw(self, rng: random.Random) -> Any:
        return draw_one(self.values, rng)


@dataclass(frozen=True)
class Atom:
    """A kind of function. In `code` and `words`, $name stands for a parameter."""

    name: str
    words: str
    code: str
    """An expression of the argument, `x` for numbers and `s` for texts."""
    parameters: Mapping[str, Choice]


@dataclass(frozen=True)
class DrawnAtom:
    """An atom with its parameters chosen."""

    name: str
    words: str
    code: str


def draw_one(values: tuple[Any, ...], rng: random.Random) -> Any:
    """Return one of the values. `random.choice` may change between versions of Python; this does not."""
    return values[int(rng.random() * len(values))]


def draw_atom(atoms: tuple[Atom, ...], rng: random.Random) -> DrawnAtom:
    """Choose an atom and its parameters."""
    atom = draw_one(atoms, rng)
    return _fill_atom(atom, {name: choice.draw(rng) for name, choice in atom.parameters.items()})


def list_atoms(atoms: tuple[Atom, ...]) -> list[DrawnAtom]:
    """Return every atom with every choice of its parameters. Raises TypeError for an atom whose parameters are no
    `OneOf`."""
    found = []
    for atom in atoms:
        if not all(isinstance(choice, OneOf) for choice in atom.parameters.values()):
            raise TypeError(f"The parameters of {atom.name!r} cannot be listed.")
        values = itertools.product(*(choice.values for choice in atom.parameters.values() if isinstance(choice, OneOf)))
        found += [_fill_atom(atom, dict(zip(atom.parameters, each, strict=True))) for each in values]
    return found


def _fill_atom(atom: Atom, values: Mapping[str, Any]) -> DrawnAtom:
    # `repr` puts texts in quotation marks and keeps all digits of floats
    code = Template(atom.code).substitute({name: repr(value) for name, value in values.items()})
    return DrawnAtom(atom.name, Template(atom.words).substitute(values), _simplify_signs(code))


def compile_function(code: str) -> Callable[[Any], Any]:
    """Return the last function that one of our own texts defines. Never called with text of an agent."""
    namespace: dict[str, Any] = {}
    exec(compile(code, "<truth>", "exec"), namespace)  # noqa: S102 the text comes from the tables of this room
    return namespace["f"]


def compute(function: Callable[[float], float], x: float) -> float:
    """Return f(x) as a float; NaN where it is undefined, infinity where it is too large."""
    try:
        return float(function(x))
    except (ValueError, ZeroDivisionError):
        return math.nan
    except OverflowError:
        return math.inf


def _simplify_signs(code: str) -> str:
    """Write "+ -2" as "- 2" and "- -2" as "+ 2", which is the same number."""
    return re.sub(r"- -(?=\d)", "+ ", re.sub(r"\+ -(?=\d)", "- ", code))
