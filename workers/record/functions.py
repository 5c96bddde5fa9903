"""Data about a function under study: its answers, and at the end the score of the conclusion."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

VALUE_CHARS = 1_000
"""Stored characters of one input or output."""
SUCCESS = 0.1
"""A numeric answer with a lower NMSE succeeds (FIND, Schwettmann et al., NeurIPS 2023)."""

WORD_FAMILIES = ("concepts", "relations")
"""Families of functions of words. An answer is a description, judged by the choices that a reader makes with it."""
JUDGED_SUCCESS = 7
"""Right choices of 10 with which a description succeeds. Guessing among three reaches 7 in 2 % of cases."""

ScoreOutcome = Literal[
    "scored", "no code", "no function", "raised", "timed out", "too large", "killed", "no description", "not judged"
]
"""The result of running or judging an answer. Outputs of a wrong type or not finite are wrong but scored."""


@dataclass(frozen=True)
class Sample:
    """The answer of a function to one input, both as JSON, so that 1 and "1" differ."""

    input: str
    output: str
    predictions: Mapping[str, str] = field(default_factory=dict)
    """Name of a hypothesis -> its prediction as JSON."""


@dataclass(frozen=True)
class ScoredInput:
    """An input on which an answer was scored. All fields are JSON."""

    input: str
    """For a function of words, the options of a choice."""
    truth: str
    """The function's noise-free output; for a choice, the right option."""
    answer: str = ""
    """The output of the answer's code, "" if it is neither a number nor a text; for a choice, the chosen option."""


@dataclass(frozen=True)
class TrueFunction:
    """The true definition of a function."""

    code: str
    """Python that ends in `def f(x)` and computes the function without noise."""
    description: str
    variant: str = "clean"
    """clean, corrupted, noised or approximated."""
    interval: tuple[float, float] | None = None
    """Where a corrupted function differs."""


@dataclass(frozen=True)
class FunctionScore:
    """How correct an answer is. It is stored with the end of a run and contains the truth, so no agent sees it."""

    key: str
    """Family and seed, such as "numeric:17"."""
    outcome: ScoreOutcome
    success: bool = False
    """True for a numeric answer with an NMSE below 0.1, for an answer about texts that is right on all 10 held-out
    texts, and for one about words with which at least 7 of 10 choices are right."""
    error: float | None = None
    """NMSE of a numeric answer over 256 points, 0 or more; None if an output is not a finite number."""
    right: int | None = None
    """Of 10: exact outputs on held-out texts, or right choices."""
    why: str = ""
    """The error of the code, or why it was stopped."""
    inputs: tuple[ScoredInput, ...] = ()
    truth: TrueFunction | None = None
    judge: str = ""
    """Who made the choices; "" if code was run."""
    ceiling: int | None = None
    """Right choices of 10 by the same judge with the true description; None if code was run."""


def to_json(value: Any) -> str:
    """Return a number or text as JSON. Equal numbers are written alike; NaN and infinity become the texts "nan" and
    "inf"."""
    # A bool is an int for Python, and JSON would write true
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return json.dumps(str(value)[:VALUE_CHARS], ensure_ascii=False)
    if isinstance(value, str):
        return json.dumps(value[:VALUE_CHARS], ensure_ascii=False)
    # JSON has no NaN and no infinity
    if isinstance(value, float) and not math.isfinite(value):
        return json.dumps(str(value))
    # 1 and 1.0 are written alike, as the whole number
    return repr(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))


def read_number(text: str) -> float | None:
    """Return a finite number from JSON; None for anything else."""
    try:
        value = json.loads(text)
    # RecursionError: deeply nested JSON of a stranger
    except (ValueError, RecursionError):
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    # Whole numbers have no limit in Python, floats do
    except OverflowError:
        return None


def measure_fit(samples: Sequence[Sample]) -> dict[str, str]:
    """Return for each hypothesis how far its predictions are from the outputs, in words.

    Numbers are compared by the largest difference, texts by the number of exact matches.
    """
    # Names in the order in which they first occur
    names = dict.fromkeys(name for sample in samples for name in sample.predictions)
    return {name: _describe_fit([each for each in samples if name in each.predictions], name) for name in names}


def _describe_fit(samples: Sequence[Sample], name: str) -> str:
    numbers = [(read_number(each.output), read_number(each.predictions[name]), each.input) for each in samples]
    # 1. Numbers: the largest difference, with its input
    apart = [(abs(given - said), at) for given, said, at in numbers if given is not None and said is not None]
    # 2. Texts, or other things: exact matches
    wrong = sum(each.output != each.predictions[name] for each in samples)
    if not apart:
        return f"right for {len(samples) - wrong} of {len(samples)} inputs"
    largest, at = max(apart)
    words = f"differs by at most {largest:.4g}, at {at}" if largest else f"differs nowhere over {len(apart)} inputs"
    # Differences that are not numeric, such as NaN against a number
    odd = wrong - sum(difference > 0 for difference, _ in apart)
    return f"{words}; for {odd} more one of the two is no number" if odd > 0 else words


# Any kind of brackets: models write open and closed ends in several ways
_INTERVAL = re.compile(r"[\[(\]]\s*(-?[\d.]+|-?inf\w*)\s*,\s*(-?[\d.]+|\+?inf\w*)\s*[\])\[]", re.IGNORECASE)
_EXCEPT = re.compile(r"\b(?:except|but not|not in|not for|outside|excluding|other than)\b", re.IGNORECASE)


def read_exceptions(domain: str) -> list[tuple[float, float]]:
    """Return the intervals that a domain excludes after "except", "but not" or "outside". Ends may be infinite."""
    found = _EXCEPT.search(domain)
    # Only intervals after the word: those before it are the domain itself
    pairs = (match.groups() for match in _INTERVAL.finditer(domain, found.end())) if found else ()
    # `low < high` drops reversed and empty intervals
    return [(low, high) for pair in pairs for low, high in [_read_ends(*pair)] if low < high]


def _read_ends(low: str, high: str) -> tuple[float, float]:
    try:
        return float(low), float(high)
    except ValueError:
        # An end such as "1.2.3" is no number; equal ends drop the interval
        return 0.0, 0.0
