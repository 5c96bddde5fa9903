"""Typed rows of the published lists, and what a row says of a numeric function."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from workers.functions.black_box import Corruption, Family, Side

TESTS = 10
"""Unit tests of a function, each of three options."""
OPTIONS = 3
# Five digits with an f, as the published folders are named
_DIR = re.compile(r"f(\d{5})")
_SIDES: dict[str, Side] = {
    "interval_smaller": "smaller",
    "interval_larger": "larger",
    "interval_inside": "inside",
}


@dataclass(frozen=True)
class NumericRow:
    """An entry of numeric/data.json. Corruption and noise are given for every function; `Category.shipped` says which
    of them one has."""

    dir: str
    name: str
    """Such as "absolute((26.8, -8.2))"; parts of a composition are joined by semicolons, the last says how."""
    params: Any = None
    domain: tuple[float, float] = (-100, 100)
    approx_mse_error: float | None = None
    corruption_type: str = ""
    corruption_params: Any = None
    noise_type: str = ""


@dataclass(frozen=True)
class StringRow:
    """An entry of strings/test_data.json."""

    name: str
    description: str


@dataclass(frozen=True)
class ConceptRow:
    """An entry of neurons_entities/data.json."""

    dir: str
    concept1: str
    concept2: str | None = None
    initial: tuple[str, ...] = ()

    @property
    def concepts(self) -> tuple[str, ...]:
        return (self.concept1, *([self.concept2] if self.concept2 else []))


@dataclass(frozen=True)
class RelationRow:
    """An entry of neurons_relations/data.json."""

    dir: str
    concept1: str
    concept2: str
    exeption: str | None = None
    """Spelt as published."""
    initial: tuple[str, ...] = ()

    @property
    def concepts(self) -> tuple[str, ...]:
        return self.concept1, self.concept2


@dataclass(frozen=True)
class WordTest:
    """An entry of neurons_entities/unit_test_data.json: three words a test, and which is right, from 1."""

    name: str
    test_vec: tuple[tuple[str, str, str], ...]
    correct_inx: tuple[int, ...]


@dataclass(frozen=True)
class PairTest:
    """An entry of another unit_test_data.json: three inputs and three outputs a test, and which pair is right."""

    name: str
    test_vec: tuple[tuple[tuple[str, str, str], tuple[str, str, str]], ...]
    correct_inx: tuple[int, ...]


Row = NumericRow | StringRow | ConceptRow | RelationRow
UnitTest = WordTest | PairTest
ROWS: dict[Family, type[Row]] = {
    "numeric": NumericRow,
    "strings": StringRow,
    "concepts": ConceptRow,
    "relations": RelationRow,
}
TEST_ROWS: dict[Family, type[UnitTest]] = {"strings": PairTest, "concepts": WordTest, "relations": PairTest}
_T = TypeVar("_T")


def convert_row(entry: Any, kind: type[_T]) -> _T:
    """Return the typed row of an entry; fields that it does not know are passed over. Raises ValueError."""
    try:
        row = msgspec.convert(entry, kind, strict=True)
    except (msgspec.ValidationError, RecursionError) as error:
        raise ValueError(str(error)) from error
    # Of another number of tests or options, the choices could not be judged
    if isinstance(row, WordTest | PairTest):
        right = len(row.test_vec) == len(row.correct_inx) == TESTS
        if not right or not all(1 <= place <= OPTIONS for place in row.correct_inx):
            raise ValueError(f"it has not {TESTS} tests, each with a right option from 1 to {OPTIONS}")
    return row


def read_number(entry: Any, family: Family) -> int:
    """Return the number in the "dir" or "name" of an entry. Raises ValueError for what is no name of a function's
    folder."""
    field = "name" if family == "strings" or (isinstance(entry, dict) and "dir" not in entry) else "dir"
    given = entry.get(field) if isinstance(entry, dict) else None
    # The published relations name folders of their authors' machine, of which the last part alone counts
    last = given.rpartition("/")[2] if isinstance(given, str) and family == "relations" else given
    number = read_folder_number(last) if isinstance(last, str) else None
    if number is None:
        raise ValueError(f"{field!r} is {str(given)[:80]!r}, and not a folder's name such as 'f00017'")
    return number


def read_folder_number(name: str) -> int | None:
    """Return 17 for "f00017"; None for another name."""
    found = _DIR.fullmatch(name)
    # `\d` also matches digits of other scripts
    return int(found[1]) if found and name.isascii() else None


def read_corruption(row: NumericRow) -> Corruption | None:
    """Return the interval of a corrupted function; None where the row does not give one as published.

    Its field "std" holds the mean of what is answered there.
    """
    side, given = _SIDES.get(row.corruption_type), row.corruption_params
    ends = given.get("boundary") if isinstance(given, dict) else None
    mean = given.get("std") if isinstance(given, dict) else None
    # "inside" has two ends, the others one
    wanted = 2 if side == "inside" else 1
    if side is None or not isinstance(ends, list) or len(ends) != wanted:
        return None
    if not all(isinstance(each, int | float) and math.isfinite(each) for each in (*ends, mean)):
        return None
    # An open side is infinite; `or` takes both ends for "inside"
    low, high = {"smaller": (-math.inf, ends[0]), "larger": (ends[0], math.inf)}.get(side) or (ends[0], ends[-1])
    # `mean` was checked above; `or 0` only satisfies the type checker
    return Corruption(side, float(low), float(high), float(mean or 0))


def list_atoms_of(row: NumericRow) -> tuple[str, ...]:
    """Return names of the atoms of a function, without the word that says how they are joined."""
    # In "linear;absolute;sum" the last word joins the others
    names = tuple(row.name.partition("(")[0].split(";"))
    return names[:-1] if len(names) > 1 else names


def has_dropped_bias(row: NumericRow) -> bool:
    """True if the function has an `absolute` with a bias, which the published generator left out of its code."""
    names = list_atoms_of(row)
    # A single atom has its parameters directly, a composition a list of them
    params = row.params if len(names) > 1 else [row.params]
    if not isinstance(params, list):
        return False
    return any(
        name == "absolute" and isinstance(given, list) and len(given) > 1 and given[1] not in (0, None)
        # Published lists may be shorter than the names
        for name, given in zip(names, params, strict=False)
    )
