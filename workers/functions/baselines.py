"""Scripted baselines: find out what a function is by rules and experiments, through its calls alone.

No language model is asked. They know the possible kinds of curves and of changes of texts, but not which one it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from workers.functions.atoms import DrawnAtom, compile_function, list_atoms
from workers.functions.fitting import find_fit
from workers.functions.numeric import EDGE
from workers.functions.shapes import Floats
from workers.functions.string_atoms import STRING_ATOMS
from workers.functions.words.concepts import conclude_concepts, study_concepts
from workers.functions.words.relations import conclude_relation, study_relations
from workers.functions.words.typed import DOMAIN

_STEP = 0.5
_AT_ONCE = 1_000
"""Inputs of a call."""
_REPEATS = 8
"""Calls that noise is averaged over."""
_MIN_NOISY_SHARE = 0.9
"""Share of the domain between the outermost noisy points above which the noise is everywhere."""


@dataclass(frozen=True)
class FunctionAnswer:
    """The conclusion about a function."""

    description: str
    domain: str
    code: str
    """Python whose last function is the answer; "" if none was found."""


class StudiedFunction(Protocol):
    """A function under study; `guess` is the expected output before the call."""

    def __call__(self, inputs: Sequence[Any], guess: Guess | None = None, /) -> list[Any]: ...


Guess = Callable[[], FunctionAnswer]


def study_numbers(call: StudiedFunction) -> FunctionAnswer:
    """Find a numeric function: where it is noisy, then the curve that the rest follows."""
    x = np.arange(-EDGE, EDGE + _STEP, _STEP)
    # 1. Twice at the same points: where the outputs differ, there is noise
    first = _measure(call, x)
    second = _measure(call, x, lambda: _conclude(x, first))
    noisy = np.isfinite(first) & (first != second)
    if not noisy.any():
        return _conclude(x, first)
    # Half a step beyond the outermost noisy points, where the next ones are not noisy
    low, high = float(x[noisy].min() - _STEP / 2), float(x[noisy].max() + _STEP / 2)
    # 2. Noise everywhere: average over more calls
    if high - low > _MIN_NOISY_SHARE * np.ptp(x[np.isfinite(first)]):
        runs = [first, second]
        while len(runs) < _REPEATS:
            runs.append(_measure(call, x, lambda: _conclude_noisy(x, runs)))
        return _conclude_noisy(x, runs)
    # 3. Noise on an interval: the function is corrupted there, and the rest is fitted without it
    mean = float(np.mean([first[noisy], second[noisy]]))
    words = f", except ({low:g}, {high:g}), where it is about {mean:.4g}"
    # NaN is left out of the fit
    outside = np.where((x > low) & (x < high), np.nan, first)
    head = f"    if {low!r} < x < {high!r}:\n        return {mean!r}\n"
    return _conclude(x, outside, words, head, f" except ({low:g}, {high:g})")


def _measure(call: StudiedFunction, x: Floats, guess: Guess | None = None) -> Floats:
    """Return the outputs at many points, in calls that are not too large."""
    parts = np.split(x, range(_AT_ONCE, len(x), _AT_ONCE))
    return np.array([value for part in parts for value in call(part.tolist(), guess)], dtype=float)


def _conclude_noisy(x: Floats, runs: Sequence[Floats]) -> FunctionAnswer:
    return _conclude(x, np.mean(runs, axis=0) - _find_offset(runs), "; each output has noise added")


def _find_offset(runs: Sequence[Floats]) -> float:
    """Return the mean of the noise: 1 where it comes in whole numbers, as Poisson noise of that mean does, else 0."""
    steps = (runs[0] - runs[1])[np.isfinite(runs[0])]
    # Differences of Poisson noise are whole numbers, up to the rounding of large outputs
    return float(bool(np.all(np.abs(steps - np.round(steps)) < 1e-6 * np.maximum(1, np.abs(runs[0]).max()))))


def _conclude(x: Floats, y: Floats, words: str = "", head: str = "", but: str = "") -> FunctionAnswer:
    domain = f"numbers from -{EDGE} to {EDGE}{but}"
    try:
        fit = find_fit(x, y)
    except ValueError as error:
        return FunctionAnswer(f"Unknown: {error}", domain, "")
    # The fit's expressions are NumPy's
    code = f"import numpy as np\n\n\ndef f(x):\n{head}    x = np.float64(x)\n    return float({fit.code})\n"
    return FunctionAnswer(f"It follows {fit.words}{words}. Squared error: {fit.error:.2g}.", domain, code)


# --- texts ----------------------------------------------------------------------------------------------

_PROBES = [
    "a",
    "Hello, World",
    "the quick brown fox jumps over it",
    "MiXeD case 1234567890",
    "aabbcc  two spaces",
    "Strengths, oils! and (brackets)",
    "zebra Apple mango apple 7 99",
    "queue",
    "An Old Tin, re-used on trips...",
    "éclair à la carte",
    "",
]
"""Texts of many kinds, so that two changes of texts that differ do so on one of them."""
_FURTHER_PROBES = ["Was it a car or a cat I saw?", "north 42 SOUTH", "x", "Übung macht den Meister", "tree tree Tree."]
_STRING_DOMAIN = "printable texts"


def study_texts(call: StudiedFunction) -> FunctionAnswer:
    """Find a function of texts: one known change, or two in a row, that gives what was seen for every probe.

    The curve found from the first probes must predict other outputs.
    """
    # 1. A first look at texts of many kinds
    seen = dict(zip(_PROBES, call(_PROBES), strict=True))
    # 2. Texts that the conclusion from the first ones must predict
    seen |= zip(_FURTHER_PROBES, call(_FURTHER_PROBES, lambda: _conclude_changes(seen)), strict=True)
    return _conclude_changes(seen)


def _conclude_changes(seen: Mapping[str, str]) -> FunctionAnswer:
    found = _find_changes(seen)
    if found is None:
        return FunctionAnswer("Unknown: no one or two changes of texts give what was seen.", _STRING_DOMAIN, "")
    lines = "".join(f"    s = {each.code}\n" for each in found)
    words = ", then ".join(each.words for each in found)
    return FunctionAnswer(f"It does this: {words}.", _STRING_DOMAIN, f"def f(s):\n{lines}    return s\n")


def _find_changes(seen: Mapping[str, str]) -> tuple[DrawnAtom, ...] | None:
    """Return the first change, or pair of them, in the order of the table."""
    outputs = list(seen.values())
    changes = {atom: compile_function(f"def f(s):\n    return {atom.code}\n") for atom in list_atoms(STRING_ATOMS)}
    # Each change once for all texts: pairs then need only their second step
    between = {atom: [change(text) for text in seen] for atom, change in changes.items()}
    # 1. One change, which explains more simply than two
    for atom, texts in between.items():
        if texts == outputs:
            return (atom,)
    # 2. All ordered pairs; `all` stops at the first text that differs
    for first, texts in between.items():
        for second, change in changes.items():
            if all(change(text) == output for text, output in zip(texts, outputs, strict=True)):
                return first, second
    return None


# --- words ----------------------------------------------------------------------------------------------


def _study_concepts(call: StudiedFunction) -> FunctionAnswer:
    return FunctionAnswer(*study_concepts(call), "")


def _study_relations(call: StudiedFunction) -> FunctionAnswer:
    return FunctionAnswer(*study_relations(call), "")


STUDIES: Mapping[str, Callable[[StudiedFunction], FunctionAnswer]] = {
    "numeric": study_numbers,
    "strings": study_texts,
    "concepts": _study_concepts,
    "relations": _study_relations,
}
"""By family."""


# --- one look -------------------------------------------------------------------------------------------


def _conclude_points(seen: Mapping[float, float]) -> FunctionAnswer:
    x = np.array(sorted(seen), dtype=float)
    return _conclude(x, np.array([seen[each] for each in sorted(seen)], dtype=float))


CONCLUDE_ONCE: Mapping[str, Callable[[Mapping[Any, Any]], FunctionAnswer]] = {
    "numeric": _conclude_points,
    "strings": _conclude_changes,
    "concepts": lambda seen: FunctionAnswer(conclude_concepts(seen), DOMAIN, ""),
    "relations": lambda seen: FunctionAnswer(conclude_relation(seen), DOMAIN, ""),
}
"""By family: what is concluded from some inputs with their outputs, without a call."""
