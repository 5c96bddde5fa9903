"""The scripted baselines find functions out by calling them, and say so where they cannot."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Sequence
from typing import Any

import pytest

from workers.errors import ToolMisuse
from workers.functions.atoms import compile_function
from workers.functions.baselines import FunctionAnswer, StudiedFunction, study_numbers, study_texts
from workers.functions.black_box import BlackBox
from workers.functions.numeric import SCORED_POINTS, create_numeric, measure_nmse
from workers.functions.strings import create_strings

VARIANTS = ("clean", "corrupted", "noised", "approximated")


def count_calls(box: BlackBox) -> StudiedFunction:
    """The box's calls, numbered as those of a run."""
    numbers = iter(range(1, 1_000))
    return lambda inputs, _=None: box.call(inputs, next(numbers))


def error_of(answer: FunctionAnswer, box: BlackBox) -> float:
    """NMSE of an answer of ours, which may be run here."""
    return measure_nmse(box.evaluate(SCORED_POINTS), [compile_function(answer.code)(x) for x in SCORED_POINTS])


@pytest.mark.parametrize("variant", VARIANTS)
def test_most_functions_of_each_variant_are_found(variant: str) -> None:
    boxes = [box for box in map(create_numeric, range(120)) if box.truth.variant == variant][:12]
    errors = [error_of(study_numbers(count_calls(box)), box) for box in boxes]
    assert sum(error < 0.1 for error in errors) >= 10


def test_the_corrupted_interval_is_said_and_is_where_it_is() -> None:
    box = next(
        box for box in map(create_numeric, range(200)) if box.truth.corruption and box.truth.corruption.side == "inside"
    )
    corruption = box.truth.corruption
    assert corruption
    said = study_numbers(count_calls(box)).description
    low, high, mean = map(float, re.search(r"except \((\S+), (\S+)\), where it is about (\S+)\.", said).groups())  # type: ignore[union-attr]
    assert (low, high) == pytest.approx((corruption.low, corruption.high), abs=0.5)
    assert mean == pytest.approx(corruption.mean, abs=0.1)


def test_noise_is_said_and_taken_off() -> None:
    box = next(box for box in map(create_numeric, range(200)) if box.truth.noise and box.truth.noise.kind == "poisson")
    answer = study_numbers(count_calls(box))
    assert "noise" in answer.description
    assert error_of(answer, box) < 0.01


def test_the_same_calls_give_the_same_answer() -> None:
    first, second = (study_numbers(count_calls(create_numeric(8))) for _ in range(2))
    assert first == second


def test_what_is_undefined_everywhere_is_unknown() -> None:
    answer = study_numbers(lambda inputs, _=None: [math.nan] * len(inputs))
    assert answer.code == ""
    assert answer.description.startswith("Unknown: 0 points")


def test_texts_are_found_and_pairs_too() -> None:
    boxes = list(map(create_strings, range(40)))
    assert {len(box.truth.atoms) for box in boxes} == {1, 2}
    for box in boxes:
        held_out = box.draw_held_out()
        function = compile_function(study_texts(count_calls(box)).code)
        assert [function(text) for text in held_out] == box.evaluate(held_out), box.key


def test_a_change_that_is_in_no_table_is_unknown() -> None:
    answer = study_texts(lambda inputs, _=None: [hashlib.sha256(text.encode()).hexdigest() for text in inputs])
    assert answer.code == ""
    assert answer.description.startswith("Unknown")


@pytest.mark.parametrize("study", [study_numbers, study_texts])
def test_what_a_function_refuses_is_heard(study: Any) -> None:
    def refuse(inputs: Sequence[Any], _: Any = None) -> list[Any]:
        raise ToolMisuse("This function takes no inputs today.")

    with pytest.raises(ToolMisuse, match="today"):
        study(refuse)
