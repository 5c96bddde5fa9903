"""Answers are scored in the sandbox: what is right, what is wrong, and what hurts nobody."""

from __future__ import annotations

from typing import Any

import pytest

from workers.functions.black_box import BlackBox
from workers.functions.families import open_function
from workers.functions.numeric import create_numeric
from workers.functions.scoring import CODE_CHARS, score_answer, summarise_scores
from workers.functions.strings import create_strings


def find(variant: str) -> BlackBox:
    return next(box for box in map(create_numeric, range(200)) if box.truth.variant == variant)


@pytest.mark.parametrize("variant", ["clean", "corrupted", "noised", "approximated"])
def test_the_truth_is_a_perfect_answer(sandbox: Any, variant: str) -> None:
    box = find(variant)
    score = score_answer(box, box.truth.code, sandbox)
    assert (score.outcome, score.success) == ("scored", True)
    assert score.error == pytest.approx(0, abs=1e-12)


def test_the_truth_of_texts_is_a_perfect_answer(sandbox: Any) -> None:
    box = create_strings(5)
    score = score_answer(box, box.truth.code, sandbox)
    assert (score.key, score.outcome, score.success, score.right) == (box.key, "scored", True, 10)
    assert [each.answer for each in score.inputs] == [each.truth for each in score.inputs]


def test_0_scores_1_and_fails(sandbox: Any) -> None:
    score = score_answer(find("clean"), "def f(x):\n    return 0", sandbox)
    assert score.error == pytest.approx(1)
    assert not score.success
    assert {each.answer for each in score.inputs} == {"0"}
    assert score.truth
    assert score.truth.interval is None


def test_the_last_function_counts_whatever_its_name(sandbox: Any) -> None:
    box = find("clean")
    code = f"{box.truth.code}\n\ndef another_name(x):\n    return f(x)\n"
    assert score_answer(box, code, sandbox).success
    assert not score_answer(box, f"{code}\n\ndef last(x):\n    return -f(x)\n", sandbox).success


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        ("", "no code"),
        ("   \n", "no code"),
        ("x = 3", "no function"),
        ("f = lambda x: x", "no function"),
        ("def f(x:\n", "raised"),
        ("def f(x):\n    raise ValueError('no')", "raised"),
        ("def f():\n    return 0", "raised"),
        ("def f(x):\n    return f(x)", "raised"),
        ("import sys\nsys.exit(0)\ndef f(x):\n    return 0", "raised"),
        ("def f(x):\n    return open('/etc/passwd').read()", "raised"),
        ("import os\ndef f(x):\n    os.kill(os.getppid(), 9)\n    return 0", "raised"),
        ("import socket\ndef f(x):\n    return socket.create_connection(('127.0.0.1', 80))", "raised"),
        ("from workers.functions.families import open_function\ndef f(x):\n    return 0", "raised"),
        ("def f(x):\n    while True:\n        pass", "timed out"),
        ("def f(x):\n    return [0] * 10**9", "too large"),
        ("x" * (CODE_CHARS + 1), "too large"),
        ("import os\ndef f(x):\n    os._exit(0)", "killed"),
        ("tools.report('scored', 3)\ndef f(x):\n    raise ValueError", "raised"),
    ],
)
def test_answers_that_come_to_nothing(sandbox: Any, code: str, outcome: str) -> None:
    score = score_answer(find("clean"), code, sandbox)
    assert (score.outcome, score.success) == (outcome, False)


@pytest.mark.parametrize(
    "value", ["None", "'3'", "float('nan')", "float('inf')", "10**400", "[0]", "'x' * 10**7", "True", "object()"]
)
def test_outputs_that_are_no_finite_numbers_are_wrong(sandbox: Any, value: str) -> None:
    score = score_answer(find("clean"), f"def f(x):\n    return {value}", sandbox)
    assert (score.outcome, score.error, score.success) == ("scored", None, False)


@pytest.mark.parametrize("value", ["3", "s.encode()", "None", "s * 100000", "s + ' '", "chr(0xd800)"])
def test_outputs_that_are_other_texts_are_wrong(sandbox: Any, value: str) -> None:
    score = score_answer(create_strings(5), f"def f(s):\n    return {value}", sandbox)
    assert (score.outcome, score.right, score.success) == ("scored", 0, False)


def test_one_output_that_is_no_text_leaves_the_others_right(sandbox: Any) -> None:
    box = create_strings(5)
    once = "_n = []\ndef other(s):\n    _n.append(s)\n    return chr(0xd800) if len(_n) == 1 else f(s)\n"
    code = f"{box.truth.code}\n\n{once}"
    assert score_answer(box, code, sandbox).right == 9


_FRAMES = """
import sys
_frame = sys._getframe()
while "tools" not in _frame.f_globals:
    _frame = _frame.f_back
tools = _frame.f_globals["tools"]
"""


@pytest.mark.parametrize(
    ("forged", "outcome"),
    [
        ("tools.report('scored', [0.0] * 256)", "scored"),
        ("tools.report('scored', [])", "raised"),
        ("tools.report('scored', [['0']] * 256)", "scored"),
        ("tools.report('a success', [0.0] * 256)", "no function"),
        ("tools.report({'success': True}, [0.0] * 256)", "no function"),
        ("tools.report()", "raised"),
        ("tools.other()", "raised"),
        ("for _ in range(1000): tools.report('scored', [0.0] * 256)", "scored"),
    ],
)
def test_an_answer_that_reports_itself_gives_no_more_than_outputs(sandbox: Any, forged: str, outcome: str) -> None:
    score = score_answer(find("clean"), f"{_FRAMES}{forged}\ndef f(x):\n    raise SystemExit\n", sandbox)
    assert (score.outcome, score.success) == (outcome, False)
    assert score.error is None or score.error >= 1


def test_a_half_right_answer_about_texts_tells_how_many(sandbox: Any) -> None:
    box = create_strings(5)
    code = f"{box.truth.code}\n\ndef other(s):\n    return f(s) if len(s) % 2 else 'no'\n"
    score = score_answer(box, code, sandbox)
    assert score.right is not None
    assert 0 < score.right < 10
    assert not score.success


def test_an_answer_need_not_know_where_the_function_is_undefined(sandbox: Any) -> None:
    box = next(box for box in map(create_numeric, range(300)) if box.truth.atoms == ("square root",))
    code = box.truth.code.replace(" if x >= 0 else math.nan", "")
    assert score_answer(box, code, sandbox).success


def test_scores_are_summed_up_by_what_functions_have_in_common(sandbox: Any) -> None:
    boxes = [create_numeric(seed) for seed in range(30)]
    scored = [(box, score_answer(box, box.truth.code, sandbox)) for box in boxes[:15]]
    scored += [(box, score_answer(box, "def f(x):\n    return 0", sandbox)) for box in boxes[15:]]
    rows = summarise_scores(scored)
    assert (rows["all"].n, rows["all"].value) == (30, 0.5)
    variants = [rows[name].n for name in ("clean", "corrupted", "noised", "approximated") if name in rows]
    assert sum(variants) == rows["one atom"].n + rows["two atoms"].n == 30
    assert next(iter(rows)) == "all"


def test_functions_are_found_by_their_keys(sandbox: Any) -> None:
    for key in ("numeric:17", "strings:17"):
        box = open_function(key)
        assert score_answer(box, box.truth.code, sandbox).key == key
