"""Numeric functions: one number in, one number out, in the published mix of shapes and variants (FIND, NeurIPS 2023).

850 of 1,000 are atoms and 150 sums or products of two; 483 are clean, 191 corrupted on an interval, 176 noised and 150
approximated by a network. Shape and variant are drawn apart.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from workers.errors import ToolMisuse
from workers.functions.atoms import DrawnAtom, compile_function, compute, draw_atom, draw_one
from workers.functions.black_box import Corruption, Family, Noise, Truth, Variant, check_count, seed_noise
from workers.functions.network import approximate
from workers.functions.numeric_atoms import NUMERIC_ATOMS

EDGE = 128
SCORED_POINTS = tuple(i + 0.5 for i in range(-EDGE, EDGE))
"""The 256 points that answers are scored on."""
HINTS = tuple(range(-EDGE, EDGE + 1, 32))

_COMPOSED_SHARE = 0.15
# The shares of the published benchmark
_VARIANTS: tuple[tuple[Variant, float], ...] = (
    ("clean", 0.483),
    ("corrupted", 0.191),
    ("noised", 0.176),
    ("approximated", 0.150),
)
_MEAN_POINTS = 100
_MAX_SIZE = 1_000_000
_DOMAIN = f"numbers from -{EDGE} to {EDGE}"


@dataclass(frozen=True)
class NumericBox:
    """A numeric function. See `BlackBox`."""

    key: str
    truth: Truth
    family: Family = "numeric"

    def call(self, inputs: Sequence[float], number: int = 0) -> list[float]:
        """Return f of each input, -1e6 … 1e6: NaN where f is undefined, infinity where it is too large."""
        numbers = check_numbers(inputs)
        rng = seed_noise(self.key, number, numbers)
        return [self._answer(x, rng) for x in numbers]

    def evaluate(self, inputs: Sequence[float]) -> list[float]:
        """Return what `call` answers without its noise; in a corrupted interval that is the interval's mean."""
        return [compute(self._function, x) for x in check_numbers(inputs)]

    def draw_held_out(self) -> list[float]:
        """Return the points of FIND, the same for all functions."""
        return list(SCORED_POINTS)

    def draw_hints(self) -> list[float]:
        """Return nine points spread over the domain, the same for all functions."""
        return list(HINTS)

    @cached_property
    def _function(self) -> Callable[[float], float]:
        return compile_function(self.truth.code)

    def _answer(self, x: float, rng: random.Random) -> float:
        value, corruption, noise = compute(self._function, x), self.truth.corruption, self.truth.noise
        if corruption and corruption.low < x < corruption.high:
            return rng.gauss(corruption.mean, corruption.sd)
        # Noise only outside corrupted intervals: no function has both
        return value + draw_noise(noise, rng) if noise else value


def create_numeric(seed: int) -> NumericBox:
    """Return the numeric function of a seed."""
    key = f"numeric:{seed}"
    # Everything that follows is drawn from this one source, so the order of draws is part of the function
    rng = random.Random(key)
    clean = _draw_truth(rng)
    variant = _draw_variant(rng)
    # The atom first and then its change: shape and variant stay independent
    return NumericBox(key, _CHANGES[variant](clean, rng))


def draw_noise(noise: Noise, rng: random.Random) -> float:
    """Return one value of the noise."""
    if noise.kind == "normal":
        return rng.gauss(0.0, 1.0)
    if noise.kind == "uniform":
        return 2 * rng.random() - 1
    # Poisson with a mean of 1, after Knuth: how many uniform numbers keep their product above 1 / e
    count, product = 0, rng.random()
    while product > math.exp(-1):
        count, product = count + 1, product * rng.random()
    return float(count)


def _draw_truth(rng: random.Random) -> Truth:
    if rng.random() >= _COMPOSED_SHARE:
        atom = draw_atom(NUMERIC_ATOMS, rng)
        return _make_truth(_write_code(f"    return {atom.code}"), atom.words, (atom,))
    atoms = draw_atom(NUMERIC_ATOMS, rng), draw_atom(NUMERIC_ATOMS, rng)
    sign, word = draw_one((("+", "sum"), ("*", "product")), rng)
    lines = [f"    {name} = {atom.code}" for name, atom in zip(("first", "second"), atoms, strict=True)]
    code = _write_code("\n".join([*lines, f"    return first {sign} second"]))
    return _make_truth(code, f"the {word} of two: {atoms[0].words}; and {atoms[1].words}", atoms)


def _make_truth(code: str, words: str, atoms: tuple[DrawnAtom, ...]) -> Truth:
    return Truth(code, f"{words[0].upper()}{words[1:]}.", tuple(atom.name for atom in atoms), _DOMAIN)


def _write_code(body: str) -> str:
    return f"import math\n\n\ndef f(x):\n{body}\n"


def _draw_variant(rng: random.Random) -> Variant:
    left = rng.random()
    for variant, share in _VARIANTS:
        left -= share
        if left < 0:
            return variant
    # Rounding may leave a remainder above the last share
    return _VARIANTS[-1][0]


# --- variants ---------------------------------------------------------------------------------------


def _keep(clean: Truth, _: random.Random) -> Truth:
    return clean


def _corrupt(clean: Truth, rng: random.Random) -> Truth:
    """Replace 10 to 40 % of the domain, at one of its ends or inside, by the mean of the function."""
    # 1. Which side, and how wide
    side = draw_one(("smaller", "larger", "inside"), rng)
    width = round((0.1 + 0.3 * rng.random()) * 2 * EDGE)
    # One point of room at both ends, so that "inside" is inside
    start = round(-EDGE + 1 + (2 * EDGE - width - 2) * rng.random())
    low, high = {
        "smaller": (-math.inf, float(width - EDGE)),
        "larger": (float(EDGE - width), math.inf),
        "inside": (float(start), float(start + width)),
    }[side]
    # 2. The mean of the whole function replaces it there
    mean = round(_find_mean(compile_function(clean.code)), 4) + 0.0  # never -0.0
    where = {
        "smaller": f"x < {high:g}",
        "larger": f"x > {low:g}",
        "inside": f"{low:g} < x < {high:g}",
    }[side]
    corruption = Corruption(side, low, high, mean)
    # 3. The condition is written into the code, which is the truth that is shown
    head, _, body = clean.code.partition("def f(x):\n")
    return replace(
        clean,
        code=f"{head}def f(x):\n    if {where}:\n        return {mean!r}\n{body}",
        description=f"{clean.description} Where {where} it is about {mean:g} instead (sd {corruption.sd:g}).",
        variant="corrupted",
        corruption=corruption,
    )


def _add_noise(clean: Truth, rng: random.Random) -> Truth:
    kind = draw_one(("normal", "uniform", "poisson"), rng)
    words = {"normal": "normal, sd 1", "uniform": "uniform, -1 to 1", "poisson": "Poisson, mean 1"}[kind]
    description = f"{clean.description} Noise is added to each output ({words})."
    return replace(clean, description=description, variant="noised", noise=Noise(kind))


def _approximate(clean: Truth, rng: random.Random) -> Truth:
    exact = compile_function(clean.code)
    code = approximate(exact, EDGE, rng)
    network = compile_function(code)
    # On the scored points, so that the error can be compared with answers
    wanted = [compute(exact, x) for x in SCORED_POINTS]
    error = measure_nmse(wanted, [compute(network, x) for x in SCORED_POINTS])
    description = f"{clean.description} A small network computes it; its NMSE is {error:.3g}."
    return replace(clean, code=code, description=description, variant="approximated", approximation_error=error)


_CHANGES: dict[Variant, Callable[[Truth, random.Random], Truth]] = {
    "clean": _keep,
    "corrupted": _corrupt,
    "noised": _add_noise,
    "approximated": _approximate,
}


def measure_nmse(truth: Sequence[float], estimate: Sequence[float]) -> float:
    """Return sum |t - e|² / sum |t|² over the points where the truth is finite; infinity if an estimate there is not.

    A truth that is 0 everywhere gives 0 if the estimate is too, else infinity.
    """
    pairs = [(t, e) for t, e in zip(truth, estimate, strict=True) if math.isfinite(t)]
    if not all(math.isfinite(e) for _, e in pairs):
        return math.inf
    size = max((abs(t) for t, _ in pairs), default=0.0) or 1.0  # so that squares of large numbers stay finite
    total = sum((t / size) ** 2 for t, _ in pairs)
    # Capped: the square of a huge error would overflow
    error = sum(min(abs(t / size - e / size), 1e100) ** 2 for t, e in pairs)
    return error / total if total else math.inf if error else 0.0


def _find_mean(function: Callable[[float], float]) -> float:
    """Return the mean of f over 100 evenly spaced points of the domain, those where it is undefined left out."""
    step = 2 * EDGE / (_MEAN_POINTS - 1)
    values = [compute(function, -EDGE + i * step) for i in range(_MEAN_POINTS)]
    finite = [value for value in values if math.isfinite(value)]
    return sum(finite) / len(finite) if finite else 0.0


def check_numbers(inputs: Any) -> list[float]:
    """Return the inputs as floats. Raises ToolMisuse."""
    wanted = f"numbers, such as [-{EDGE}, 0, 3.5]"
    check_count(inputs, wanted)
    for place, value in enumerate(inputs):
        # A bool is an int for Python
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ToolMisuse(f"Input {place} is {type(value).__name__}: give a list of {wanted}.")
        # `not … <=` also refuses NaN
        if not abs(value) <= _MAX_SIZE:
            shown = f"{value:.6g}" if isinstance(value, float) else f"a whole number of {value.bit_length()} bits"
            words = f"Input {place} is {shown}, which is not from -{_MAX_SIZE:,} to {_MAX_SIZE:,}"
            raise ToolMisuse(f"{words}: give a list of {wanted}.")
    return [float(value) for value in inputs]
