"""Functions of texts: each follows from its key, takes any printable text and is worth finding out."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from workers.errors import ToolMisuse, UnknownName
from workers.functions.atoms import compile_function, draw_atom, list_atoms
from workers.functions.families import open_function
from workers.functions.numeric_atoms import NUMERIC_ATOMS
from workers.functions.string_atoms import STRING_ATOMS
from workers.functions.strings import StringBox, create_strings

N = 1_000
TEXTS = ["", " ", "a", "Hello, World", "aAeE 123!", "éclair  東京", "x" * 1_000, "don't", "7"]


@pytest.fixture(scope="module")
def boxes() -> list[StringBox]:
    return [create_strings(seed) for seed in range(N)]


def test_there_are_about_seventy_atoms_each_of_another_name() -> None:
    assert len({atom.name for atom in STRING_ATOMS}) == len(STRING_ATOMS) >= 70


def test_every_atom_is_drawn_and_takes_any_text(boxes: list[StringBox]) -> None:
    assert {name for box in boxes for name in box.truth.atoms} == {atom.name for atom in STRING_ATOMS}
    for atom in list_atoms(STRING_ATOMS):
        change = compile_function(f"def f(s):\n    return {atom.code}\n")
        assert all(isinstance(change(text), str) for text in TEXTS), atom


def test_atoms_with_ranges_cannot_be_listed() -> None:
    with pytest.raises(TypeError, match="linear"):
        list_atoms(NUMERIC_ATOMS)


def test_a_listed_atom_is_one_that_is_drawn() -> None:
    listed = set(list_atoms(STRING_ATOMS))
    assert {draw_atom(STRING_ATOMS, random.Random(seed)) for seed in range(200)} <= listed


def test_a_function_follows_from_its_key(boxes: list[StringBox]) -> None:
    for box in boxes[:50]:
        assert open_function(box.key) == box
        assert create_strings(int(box.key.partition(":")[2])).draw_held_out() == box.draw_held_out()
    assert len({box.truth.code for box in boxes}) > N / 2


def test_no_function_gives_the_same_for_all_held_out_texts(boxes: list[StringBox]) -> None:
    for box in boxes[:200]:
        texts = box.draw_held_out()
        assert len(texts) == 10
        assert box.evaluate(texts) != texts


@pytest.mark.parametrize("seed", range(5))
def test_fresh_functions_answer(seed: int) -> None:
    for number in range(100):
        box = create_strings(10_000 * (seed + 1) + number)
        outputs = box.call(TEXTS)
        assert all(isinstance(output, str) for output in outputs)
        assert box.call(TEXTS, 7) == outputs
        assert box.family == box.key.partition(":")[0] == "strings"


@pytest.mark.parametrize(
    ("inputs", "says"),
    [
        ("abc", "inputs are str"),
        (None, "inputs are NoneType"),
        ([], "has 0 inputs"),
        (["a"] * 1_001, "has 1,001 inputs"),
        (["a"] * 10**6, "has 1,000,000 inputs"),
        (["a", 3], "Input 1 is int"),
        ([b"a"], "Input 0 is bytes"),
        (["x" * 1_001], "Input 0 has 1,001 characters"),
        (["a\x00b"], "not printable"),
        (["a\nb"], "not printable"),
        (["\ud800"], "not printable"),
    ],
)
def test_wrong_inputs_say_what_is_wanted(inputs: Any, says: str) -> None:
    with pytest.raises(ToolMisuse, match=says) as refused:
        create_strings(1).call(inputs)
    assert "give a list of" in str(refused.value)


@pytest.mark.parametrize(
    "key",
    ["", "strings", "strings:", "strings:-1", "strings:1.5", "words:1", "numeric:²", f"numeric:{'9' * 19}", "x" * 999],
)
def test_other_keys_are_unknown(key: str) -> None:
    with pytest.raises(UnknownName, match="such as numeric:17 or strings:17") as refused:
        open_function(key)
    assert len(str(refused.value)) < 250


def test_choices_of_a_description_show_what_the_function_gives_and_what_others_do(boxes: list[StringBox]) -> None:
    for box in boxes[:20]:
        triplets = box.draw_triplets()
        assert triplets == box.draw_triplets()
        assert len(triplets) == 10
        for each in triplets:
            pairs = [tuple(map(json.loads, option.split(" → "))) for option in each.options]
            gives = [box.evaluate([given]) == [said] for given, said in pairs]
            assert gives == [place == each.right for place in range(3)]
    assert {each.right for box in boxes[:20] for each in box.draw_triplets()} == {0, 1, 2}
