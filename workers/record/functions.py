"""What is recorded of a function under study: what it answered, and at the end how right the conclusion is."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

VALUE_CHARS = 1_000
"""Characters of one input or output that are kept."""
SUCCESS = 0.1
"""NMSE below which a numeric answer succeeds (FIND, Schwettmann et al., NeurIPS 2023)."""

WORD_FAMILIES = ("concepts", "relations")
"""Functions of words. An answer about one is a description, and judged by what a reader chooses by it."""
JUDGED_SUCCESS = 7
"""Right choices, of 10, from which a description succeeds: who guesses among three gets there in 2 of 100 cases."""

ScoreOutcome = Literal[
    "scored", "no code", "no function", "raised", "timed out", "too large", "killed", "no description", "not judged"
]
"""What came of running or judging an answer. Outputs of a wrong type or that are not finite are wrong, and were
scored."""


@dataclass(frozen=True)
class Sample:
    """What a function under study answered to one input; both as JSON, so that 1 and "1" stay apart."""

    input: str
    output: str
    predictions: Mapping[str, str] = field(default_factory=dict)
    """Name of a hypothesis -> what it says, as JSON."""


@dataclass(frozen=True)
class ScoredInput:
    """An input that an answer was scored on; all as JSON."""

    input: str
    """Of a function of words the options of a choice."""
    truth: str
    """What the function gives there, without noise; of a choice the right option."""
    answer: str = ""
    """What the answer's code gives; "" where that is neither a number nor a text. Of a choice what was chosen."""


@dataclass(frozen=True)
class TrueFunction:
    """What a function really is."""

    code: str
    """Python with `def f(x)` last: what the function computes, without noise."""
    description: str
    variant: str = "clean"
    """clean, corrupted, noised or approximated."""
    interval: tuple[float, float] | None = None
    """Where a corrupted function answers something else."""


@dataclass(frozen=True)
class FunctionScore:
    """How right an answer is. It comes with the end of a run, and tells the truth: no agent is told it."""

    key: str
    """Family and seed, such as "numeric:17"."""
    outcome: ScoreOutcome
    success: bool = False
    """A numeric answer with an NMSE below 0.1; one about texts that is right for all 10 held-out texts; one about words
    by which 7 of 10 choices or more are right."""
    error: float | None = None
    """NMSE of a numeric answer over 256 points, 0 or more; None where an output is no finite number."""
    right: int | None = None
    """Held-out texts, of 10, for which an answer about texts gives the very output; right choices of 10."""
    why: str = ""
    """What the code raised, or what stopped it."""
    inputs: tuple[ScoredInput, ...] = ()
    truth: TrueFunction | None = None
    judge: str = ""
    """Who chose by the description; "" where code was run."""
    ceiling: int | None = None
    """Choices, of 10, that the same judge has right by the true description; None where code was run."""


def to_json(value: Any) -> str:
    """A number or text as JSON; numbers that are equal are written alike. NaN and infinity become the texts "nan" and
    "inf"."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return json.dumps(str(value)[:VALUE_CHARS], ensure_ascii=False)
    if isinstance(value, str):
        return json.dumps(value[:VALUE_CHARS], ensure_ascii=False)
    if isinstance(value, float) and not math.isfinite(value):
        return json.dumps(str(value))
    return repr(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))


def read_number(text: str) -> float | None:
    """A finite number that stands as JSON; None for a text, NaN, infinity or anything else."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def measure_fit(samples: Sequence[Sample]) -> dict[str, str]:
    """Name of a hypothesis -> how far its predictions are from the outputs, in words; numbers by the largest
    difference, texts by how many are the very same."""
    names = dict.fromkeys(name for sample in samples for name in sample.predictions)
    return {name: _tell_fit([each for each in samples if name in each.predictions], name) for name in names}


def _tell_fit(samples: Sequence[Sample], name: str) -> str:
    numbers = [(read_number(each.output), read_number(each.predictions[name]), each.input) for each in samples]
    apart = [(abs(given - said), at) for given, said, at in numbers if given is not None and said is not None]
    wrong = sum(each.output != each.predictions[name] for each in samples)
    if not apart:
        return f"right for {len(samples) - wrong} of {len(samples)} inputs"
    largest, at = max(apart)
    words = f"differs by at most {largest:.4g}, at {at}" if largest else f"differs nowhere over {len(apart)} inputs"
    odd = wrong - sum(difference > 0 for difference, _ in apart)
    return f"{words}; for {odd} more one of the two is no number" if odd > 0 else words


_INTERVAL = re.compile(r"[\[(\]]\s*(-?[\d.]+|-?inf\w*)\s*,\s*(-?[\d.]+|\+?inf\w*)\s*[\])\[]", re.IGNORECASE)
_EXCEPT = re.compile(r"\b(?:except|but not|not in|not for|outside|excluding|other than)\b", re.IGNORECASE)


def read_exceptions(domain: str) -> list[tuple[float, float]]:
    """The intervals that a domain leaves out: those after "except", "but not" or "outside". Ends may be infinite."""
    found = _EXCEPT.search(domain)
    pairs = (match.groups() for match in _INTERVAL.finditer(domain, found.end())) if found else ()
    return [(low, high) for pair in pairs for low, high in [_read_ends(*pair)] if low < high]


def _read_ends(low: str, high: str) -> tuple[float, float]:
    try:
        return float(low), float(high)
    except ValueError:
        return 0.0, 0.0
