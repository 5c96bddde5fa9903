"""Published functions that can be called: of numbers and texts by their code, in the sandbox; of words by nearness."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from workers.errors import MissingPart, ToolMisuse
from workers.functions.atoms import compile_function, compute
from workers.functions.black_box import BlackBox, Corruption, Family, Noise, NoiseKind, Truth, Variant, seed_noise
from workers.functions.numeric import HINTS, SCORED_POINTS, check_numbers
from workers.functions.published.code_runner import CodeRunner, Kind
from workers.functions.published.conflicts import SHIPPED, TWO_VERSIONS, read_code
from workers.functions.published.layout import WEIGHTS, Category
from workers.functions.published.network_weights import write_network_code
from workers.functions.published.rows import (
    ConceptRow,
    NumericRow,
    PairTest,
    StringRow,
    WordTest,
    list_atoms_of,
    read_corruption,
)
from workers.functions.strings import DOMAIN, check_strings, write_texts
from workers.functions.words.concepts import ConceptBox, describe_concepts
from workers.functions.words.triplets import PAIR_QUESTION, Triplet
from workers.functions.words.typed import MAX_CHARS
from workers.sentences import Nearness

_HINTS = 10


class NoAnswer(ToolMisuse):
    """Raised when the code of a function does not finish with these inputs; `why` gives the reason."""

    def __init__(self, why: str) -> None:
        super().__init__(f"The function gave nothing. {why} Call it with fewer inputs, or with others.")
        self.why = why


_NOISES: dict[str, NoiseKind] = {"normal": "normal", "uniform": "uniform", "poisson": "poisson"}


@dataclass(frozen=True)
class PublishedNumbers:
    """A numeric function. See `BlackBox`."""

    key: str
    truth: Truth
    runner: CodeRunner
    family: Family = "numeric"

    def call(self, inputs: Sequence[float], number: int = 0) -> list[float]:
        """Return f of each input, -1e6 … 1e6: NaN where it raises or gives no real number, infinity where that is too
        large. Raises ToolMisuse where the code does not come to an end."""
        numbers = check_numbers(inputs)
        # 32 bits: numpy's seed has no more
        return self._answer(numbers, seed_noise(self.key, number, numbers).getrandbits(32))

    def evaluate(self, inputs: Sequence[float]) -> list[float]:
        """Return what `call` answers without noise; in a corrupted interval that is the interval's mean."""
        numbers = check_numbers(inputs)
        # The scored points are asked for again and again, and each call starts the sandbox
        return list(self._scored) if tuple(numbers) == SCORED_POINTS else self._answer(numbers, None)

    def draw_held_out(self) -> list[float]:
        """Return the points of FIND, the same for all functions."""
        return list(SCORED_POINTS)

    def draw_hints(self) -> list[float]:
        """Return nine points spread over the domain, the same for all functions."""
        return list(HINTS)

    @cached_property
    def _scored(self) -> list[float]:
        # Kept, so that the truth at the end of a run is the one that the function was opened with
        return self._answer(SCORED_POINTS, None)

    def _answer(self, numbers: Sequence[float], seed: int | None) -> list[float]:
        # Its weights are our own code after `write_network_code`, so the sandbox is not needed
        if self.truth.variant == "approximated":
            return [compute(self._network, x) for x in numbers]
        return _run(self.runner, numbers, "number", seed)

    @cached_property
    def _network(self) -> Callable[[float], float]:
        return compile_function(self.truth.code)


@dataclass(frozen=True)
class PublishedStrings:
    """A function of texts. See `BlackBox`."""

    key: str
    truth: Truth
    runner: CodeRunner
    tests: PairTest
    family: Family = "strings"
    question: str = PAIR_QUESTION

    def call(self, inputs: Sequence[str], number: int = 0) -> list[str]:  # noqa: ARG002 there is no noise
        """Return f of each input, printable texts of at most 1,000 characters. Where the code raises, or gives no text,
        the output says so. Raises ToolMisuse where the code does not come to an end."""
        return self._answer(check_strings(inputs))

    def evaluate(self, inputs: Sequence[str]) -> list[str]:
        """Return what `call` returns; the inputs of the published tests may hold any characters."""
        # Published tests may hold characters that an agent's inputs may not: they are not checked again
        known = self._scored
        others = [text for text in inputs if text not in known]
        known = known | dict(zip(others, self._answer(check_strings(others)), strict=True)) if others else known
        return [known[text] for text in inputs]

    def draw_held_out(self) -> list[str]:
        """Return the 10 right inputs of the published unit tests, without those for which the code gives no text."""
        return [given for given, _ in self.list_executions() if given in self._scored]

    def draw_hints(self) -> list[str]:
        """Return 10 other inputs of the published unit tests."""
        right = {given for given, _ in self.list_executions()}
        others = (text for given, _ in self.tests.test_vec for text in given)
        # Only hints that an agent could give as inputs itself
        return [text for text in dict.fromkeys(others) if text not in right and _is_allowed(text)][:_HINTS]

    def draw_triplets(self) -> list[Triplet]:
        """Return the choices of the published unit tests, the options in their order."""
        tests = zip(self.tests.test_vec, self.tests.correct_inx, strict=True)
        # Published options count from 1, ours from 0
        return [Triplet(_write_pairs(given, said), right - 1) for (given, said), right in tests]

    def list_executions(self) -> list[tuple[str, str]]:
        """Return the right input of each test with its output, as published."""
        pairs = zip(self.tests.test_vec, self.tests.correct_inx, strict=True)
        return [(given[right - 1], said[right - 1]) for (given, said), right in pairs]

    def list_differences(self) -> list[str]:
        """List the held-out inputs for which the code gives something else than was published, in words."""
        wrong = [(x, y) for x, y in self.list_executions() if self._scored.get(x, "").strip() != y.strip()]
        return [f"{x!r} gives {self._scored.get(x, 'no text')!r}, published as {y!r}" for x, y in wrong]

    @cached_property
    def _scored(self) -> dict[str, str]:
        texts = list(dict.fromkeys(given for given, _ in self.list_executions()))
        answers = self.runner.run(texts, "text", 0)
        if answers.why:
            raise NoAnswer(answers.why)
        return {text: said for text, said in zip(texts, answers.outputs, strict=True) if said is not None}

    def _answer(self, texts: Sequence[str]) -> list[str]:
        return _run(self.runner, texts, "text", 0)


def _write_pairs(given: Sequence[str], said: Sequence[str]) -> tuple[str, str, str]:
    first, second, third = (write_texts(*pair) for pair in zip(given, said, strict=True))
    return first, second, third


def _run(runner: CodeRunner, inputs: Sequence[float | str], kind: Kind, seed: int | None) -> list[Any]:
    answers = runner.run(inputs, kind, seed)
    if answers.why:
        raise NoAnswer(answers.why)
    told = zip(answers.outputs, answers.raised, strict=True)
    # What went wrong is the output: the agent sees it, and the others of the call stay
    return [f"(no output: {raised or 'no text'})" if output is None else output for output, raised in told]


def _is_allowed(text: str) -> bool:
    try:
        check_strings([text])
    except ToolMisuse:
        return False
    return True


# --- how they are made ------------------------------------------------------------------------------------


def create_numbers(category: Category, number: int, runner: CodeRunner) -> PublishedNumbers:
    """Return the numeric function of a number that nothing is wrong with. Raises MissingPart for weights of another
    form."""
    row = category.rows[number]
    # For the type checker: `explain_trouble` has checked the kind
    assert isinstance(row, NumericRow)
    variant = SHIPPED[category.shipped[number]]
    return PublishedNumbers(f"numeric:{number}", _find_truth(category, number, row, variant), runner)


def _find_truth(category: Category, number: int, row: NumericRow, variant: Variant) -> Truth:
    low, high = row.domain
    # Every entry has both; only the function's variant says which applies
    corruption = read_corruption(row) if variant == "corrupted" else None
    noise = Noise(_NOISES[row.noise_type]) if variant == "noised" else None
    code, about = read_code(category, number), ""
    if corruption:
        where = f"{corruption.low:g} < x < {corruption.high:g}"
        about = f" Where {where} it is about {corruption.mean:g} instead (sd {corruption.sd:g})."
    elif noise:
        about = f" Noise is added to each output ({noise.kind})."
    elif variant == "approximated":
        code = _read_network(category, number)
        about = " A small network computes it."
    return Truth(
        code,
        f"{row.name}.{about}",
        list_atoms_of(row),
        f"numbers from {low:g} to {high:g}",
        variant,
        corruption,
        noise,
        row.approx_mse_error if variant == "approximated" else None,
    )


def _read_network(category: Category, number: int) -> str:
    """Return the network of an approximated function as code of ours. Raises MissingPart."""
    try:
        return write_network_code(category.functions[number].files[WEIGHTS])
    except ValueError as error:
        raise MissingPart(f"it is a network, and of its {WEIGHTS} {error}") from error


def create_texts(category: Category, number: int, runner: CodeRunner) -> PublishedStrings:
    """Return the function of texts of a number that nothing is wrong with."""
    row, tests = category.rows[number], category.tests[number]
    assert isinstance(row, StringRow)
    assert isinstance(tests, PairTest)
    truth = Truth(read_code(category, number), row.description.strip(": \n"), (), DOMAIN)
    return PublishedStrings(f"strings:{number}", truth, runner, tests)


def create_words(category: Category, number: int, nearness: Nearness) -> ConceptBox:
    """Return the function of concepts of a number that nothing is wrong with."""
    row, tests = category.rows[number], category.tests[number]
    assert isinstance(row, ConceptRow)
    assert isinstance(tests, WordTest)
    triplets = tuple(Triplet(words, right - 1) for words, right in zip(tests.test_vec, tests.correct_inx, strict=True))
    options = {word for each in triplets for word in each.options}
    # Options of the tests are no hints: they would be scored
    hints = tuple(word for word in dict.fromkeys(row.initial) if word not in options and 0 < len(word) <= MAX_CHARS)
    truth = describe_concepts(row.concepts)
    return ConceptBox(f"concepts:{number}", truth, row.concepts, nearness, hints=hints[:_HINTS], triplets=triplets)


def find_gap(box: BlackBox) -> str:
    """Run a function on the scored inputs: return why it cannot be scored, "" if it can. Raises NoAnswer if it cannot
    be called.
    """
    if isinstance(box, PublishedStrings):
        return "" if box.draw_held_out() else "its code gives no text for any input of its unit tests"
    # 1. It must give a number somewhere
    values = box.evaluate(box.draw_held_out())
    if not any(map(math.isfinite, values)):
        return f"its code gives no finite number at any of the {len(values)} points of the score"
    # 2. A corrupted one must answer its mean where data.json says, or the code is of another version
    return _find_other_interval(box.truth.corruption, values) if box.truth.corruption else ""


def _find_other_interval(corruption: Corruption, values: Sequence[float]) -> str:
    """Return where the code answers anything but the mean in the interval of data.json; "" if it does not."""
    for x, y in zip(SCORED_POINTS, values, strict=True):
        if corruption.low < x < corruption.high and not math.isclose(y, corruption.mean, rel_tol=1e-6, abs_tol=1e-9):
            said = f"data.json says that it is corrupted at {x:g} with a mean of {corruption.mean:g}"
            return f"{TWO_VERSIONS}: {said}, and its code gives {y:g} there"
    return ""
