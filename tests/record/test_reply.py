"""The grammar of replies: what counts, what is a quotation, what hostile text costs."""

from __future__ import annotations

import pytest

from workers.record.grammar.reply import MAX_HYPOTHESES, MAX_LABELS, parse
from workers.record.replies import Conclusion, Hypothesis

PROGRAM = "def run_experiment(system, tools):\n    pass"


def conclusion(text):
    found = parse(text).conclusion
    assert found
    return found


def fenced(code=PROGRAM, marks="```", language="python"):
    return f"{marks}{language}\n{code}\n{marks}"


@pytest.mark.parametrize(
    "tag", ["[CODE]:", "[CODE]", "[code]:", "**[CODE]:**", "**[CODE]**:", "### [CODE]:", "  [CODE]:", "__[Code]__"]
)
def test_it_reads_a_tag_however_it_is_dressed(tag):
    assert parse(f"{tag}\n{fenced('x = 1')}").code == "x = 1"


@pytest.mark.parametrize(
    ("marks", "language"),
    [("```", ""), ("```", "python"), ("~~~", "py"), ("````", "Python"), ("```", 'python title="a"')],
)
def test_it_reads_every_kind_of_fence(marks, language):
    assert parse("[CODE]:\n" + fenced(marks=marks, language=language)).code == PROGRAM


def test_a_fence_may_open_on_the_line_of_the_tag():
    assert parse("[CODE]: ```python\nx = 1\n```").code == "x = 1"


def test_windows_line_ends_do_not_reach_the_program():
    assert parse("[CODE]:\r\n```python\r\nx = 1\r\ny = 2\r\n```\r\n").code == "x = 1\ny = 2"


def test_an_indented_fence_gives_an_unindented_program():
    assert parse("[CODE]:\n  ```python\n  if x:\n      y = 1\n  ```").code == "if x:\n    y = 1"


def test_several_fences_are_one_program_in_their_order():
    parsed = parse(f"[CODE]:\n{fenced('first = 1')}\nand then\n{fenced('second = 2')}")
    assert parsed.code == "first = 1\n\nsecond = 2"
    assert parsed.prose == "and then"
    assert parsed.readings == ("2 fences were run together, in order, as one program.",)


def test_a_fence_in_another_language_is_no_program():
    assert parse("[CODE]:\n```json\n{}\n```\n```python\nx = 1\n```").code == "x = 1"


def test_a_reply_that_was_cut_inside_its_program_has_no_program():
    parsed = parse("[CODE]:\n```python\ndef run_experiment(system, tools):\n    images = tools.text2image([")
    assert parsed.code is None
    assert "tools.text2image([" in parsed.prose
    assert "no end" in parsed.readings[0]


def test_an_empty_fence_is_no_program():
    assert parse("[CODE]:\n```python\n\n```").code is None


@pytest.mark.parametrize("name", ["run_experiment", "execute_command"])
def test_a_program_without_its_tag_is_recognised_by_what_it_defines(name):
    code = f"import math\ndef {name}(system, tools):\n    pass"
    assert parse(f"I test this now.\n{fenced(code)}").code == code


def test_an_untagged_fence_that_defines_nothing_of_ours_is_prose():
    parsed = parse(f"For example:\n{fenced('x = 1')}")
    assert parsed.code is None
    assert "x = 1" in parsed.prose


def test_a_fence_inside_a_docstring_does_not_end_the_program():
    code = "def run_experiment(system, tools):\n    '''\n    ```\n    x\n    ```\n    '''\n    return 1"
    assert parse("[CODE]:\n" + fenced(code)).code == code


@pytest.mark.parametrize(
    "quotation",
    [
        "Once I am sure I will write [DESCRIPTION]: and then [LABEL]: something.",
        "`[LABEL]: red`",
        "> [LABEL]: red",
        "```\n[LABEL]: red\n```",
        "~~~text\n[DESCRIPTION]: red\n~~~",
        '[CODE]:\n```python\nprint("""\n[LABEL]: red\n""")\n```',
    ],
)
def test_a_quoted_tag_does_not_count(quotation):
    assert parse(quotation).conclusion is None


def test_hypotheses_keep_their_numbers_fates_and_figures():
    parsed = parse(
        "[HYPOTHESIS LIST]:\nHypothesis_1: red balls [supported: 38.4, n = 6]\n"
        "Hypothesis_2: anything red [refuted: 4.1 on a blue [sic] ball]\nHypothesis_4: round things [open]."
    )
    assert parsed.hypotheses == (
        Hypothesis(1, "red balls", "supported", "38.4, n = 6"),
        Hypothesis(2, "anything red", "refuted", "4.1 on a blue [sic] ball"),
        Hypothesis(4, "round things"),
    )


@pytest.mark.parametrize(
    "lines",
    [
        "Hypothesis_1: red\nHypothesis_2: blue",
        "Hypothesis 1: red\n\nHypothesis 2: blue",
        "**Hypothesis_1:** red\n**Hypothesis_2**: blue",
        "- Hypothesis_1: red\n- Hypothesis_2: blue",
        "hypothesis #1. red\nhypothesis #2. blue",
        "1. red\n2. blue",
        "1) red\n2) blue",
        "- red\n- blue",
        "* red\n* blue",
    ],
)
def test_every_common_form_of_a_list_is_read(lines):
    assert parse(f"[HYPOTHESIS LIST]:\n{lines}").hypotheses == (Hypothesis(1, "red"), Hypothesis(2, "blue"))


def test_a_hypothesis_may_go_on_and_the_list_ends_at_prose():
    parsed = parse(
        "[HYPOTHESIS LIST]:\nHypothesis_1: a red ball\n  - on grass\nHypothesis_2: a cone\n\n"
        "Next:\n1. exemplars\n2. edits"
    )
    assert [each.text for each in parsed.hypotheses] == ["a red ball - on grass", "a cone"]
    assert parsed.prose == "Next:\n1. exemplars\n2. edits"


def test_a_later_list_replaces_an_earlier_one():
    parsed = parse("[HYPOTHESIS LIST]:\n1. red\n\n[HYPOTHESIS LIST]:\n1. blue")
    assert parsed.hypotheses == (Hypothesis(1, "blue"),)


def test_numbers_are_unique_even_if_the_agent_repeats_them():
    parsed = parse("[HYPOTHESIS LIST]:\n2. red\n2. blue\n2. green")
    assert [each.number for each in parsed.hypotheses] == [2, 3, 4]


def test_a_single_hypothesis_needs_no_list():
    assert parse("[HYPOTHESIS]: it is SPURIOUS,\nsince sand alone drives it\n\nNext.").hypotheses == (
        Hypothesis(1, "it is SPURIOUS, since sand alone drives it"),
    )


def test_both_published_forms_of_labels_are_read_in_order_without_repeats():
    concluded = conclusion("[DESCRIPTION]: two things\n[LABEL 1]: red balls\n[LABEL 2]: cones\n[LABEL]: Red balls")
    assert concluded.labels == ("red balls", "cones")
    assert concluded.description == "two things"


def test_a_list_of_labels_under_one_tag_is_read():
    assert conclusion("[LABEL]:\n- red balls\n- cones\n\nThat is all.").labels == ("red balls", "cones")


@pytest.mark.parametrize(
    "words", ["none", "None.", "no label", "N/A", "dead unit", "none (it never activates)", "**none**", "[none]"]
)
def test_no_label_is_a_conclusion_without_a_label(words):
    concluded = conclusion(f"[DESCRIPTION]: It never responds.\n[LABEL]: {words}")
    assert concluded.labels == ()
    assert concluded.description == "It never responds."


@pytest.mark.parametrize("words", ["nonetheless red", "dead leaves", "no entry signs", "nothingness"])
def test_a_label_that_only_begins_like_none_is_kept(words):
    assert conclusion(f"[LABEL]: {words}").labels == (words,)


def test_bias_and_spurious_conclusions_are_read():
    assert conclusion("[BIAS]: weaker at night").bias == "weaker at night"
    spurious = conclusion("[REASONING]: sand alone gives 12.0\n\nand so on\n[LABEL]: SPURIOUS")
    assert (spurious.reasoning, spurious.labels) == ("sand alone gives 12.0\n\nand so on", ("SPURIOUS",))


@pytest.mark.parametrize("text", ["", "[REASONING]: because", "[DESCRIPTION]:", "[LABEL]: <label>", "[CODE]:", "Hm."])
def test_what_concludes_nothing_is_no_conclusion(text):
    assert parse(text).conclusion is None


def test_a_reply_may_hold_a_program_and_a_conclusion():
    parsed = parse(f"[CODE]:\n{fenced()}\n[DESCRIPTION]: red\n[LABEL]: red")
    assert parsed.code == PROGRAM
    assert parsed.conclusion == Conclusion("red", ("red",))


def test_prose_is_what_stands_outside_the_blocks():
    parsed = parse(f"I see red.\n\n[HYPOTHESIS LIST]:\n1. red\n\nSo:\n[CODE]:\n{fenced()}\nI wait.")
    assert parsed.prose == "I see red.\n\nSo:\n\nI wait."


def test_lists_without_end_are_bounded():
    parsed = parse("[HYPOTHESIS LIST]:\n" + "- a\n" * 1000 + "".join(f"[LABEL {n}]: l{n}\n" for n in range(900)))
    assert len(parsed.hypotheses) == MAX_HYPOTHESES
    assert parsed.conclusion
    assert len(parsed.conclusion.labels) == MAX_LABELS


HOSTILE = [
    "[",
    "`",
    "*",
    " ",
    "\n",
    "<",
    "[CODE",
    "[CODE]:",
    "[CODE]\n",
    "```\n",
    "~~~ `",
    "[LABEL]: a\n",
    "[HYPOTHESIS LIST]:\n- a [open\n",
    "[HYPOTHESIS LIST]: - [open [open",
    "Hypothesis_1",
    " \n- ",
    "[CODE]\n```\nx\n```\n",
    "<think>\n",
    "</think>\n",
    '. [LABEL]: "',
    "```python\n[LABEL]: a\n",
    "H1: a (refuted [open ",
    "[LABELS]: (a,",
    "[CODE]: x = 1\n\ny ",
    "[CODE]: so\nx = 1\n",
    "<tool_call>\n",
    "<tool_call>{</tool_call>\n",
    '<invoke name="a">\n<parameter name="b">',
    "<function=a><parameter=b>x</parameter>\n",
    "```json\n{\n```\n",
    "```json\n[",
    "```tool_code\nx\n",
    "CODE:\n",
    "**LABEL:** aaa. A",
    "[LABEL]: aaa (n=4) </a>",
]


@pytest.mark.timeout(20)
@pytest.mark.parametrize("piece", HOSTILE)
@pytest.mark.parametrize(
    "head", ["", "[HYPOTHESIS LIST]:\n- a\n", "[DESCRIPTION]:", "[LABEL]: none ", "[CODE]:\n```\n"]
)
def test_hostile_text_costs_no_more_than_its_length(head, piece):
    """A step that is quadratic in 200 kB takes a minute: the test's own timeout catches it."""
    parse(head + piece * (200_000 // len(piece)) + "x")
