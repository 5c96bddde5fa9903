"""Replies as real models write them, aside from the form that they were shown: what they mean is read, and said."""

from __future__ import annotations

import pytest

from workers.record.grammar.reply import parse
from workers.record.replies import Hypothesis

PROGRAM = 'images = tools.text2image(["a ball"])\ntools.display(*images)'


def conclusion(text):
    found = parse(text).conclusion
    assert found, text
    return found


# --- programs -------------------------------------------------------------------------------------


def test_a_whole_program_whose_fence_has_no_end_is_run_and_its_author_is_told():
    parsed = parse(f"I look.\n\n[CODE]:\n```python\n{PROGRAM}\n")
    assert parsed.code.strip() == PROGRAM
    assert "has no end" in parsed.readings[0]
    assert parsed.prose == "I look."


def test_a_fence_without_end_ends_at_the_next_tag():
    parsed = parse(f"[CODE]:\n```python\n{PROGRAM}\n\n[DESCRIPTION]: balls\n[LABEL]: balls")
    assert parsed.code.strip() == PROGRAM
    assert parsed.conclusion.labels == ("balls",)


@pytest.mark.parametrize("after", ["", "\n\nThen I will compare the means.", "\n\nThis is it.\n\nNow I wait."])
def test_python_behind_the_tag_needs_no_fence(after):
    parsed = parse(f"[CODE]:\nimport numpy as np\n\n{PROGRAM}{after}")
    assert parsed.code == f"import numpy as np\n\n{PROGRAM}"
    assert parsed.prose == after.strip()
    assert "no fence" in parsed.readings[0]


@pytest.mark.parametrize("words", ["see above", "None", "none, I conclude", "program 3"])
def test_words_behind_the_tag_are_no_program(words):
    parsed = parse(f"[CODE]: {words}")
    assert parsed.code is None
    assert parsed.prose == words
    assert "no Python" in parsed.readings[0]


@pytest.mark.parametrize("language", ["python", ""])
def test_a_script_that_uses_the_tools_needs_no_tag(language):
    parsed = parse(f"Let me test this.\n```{language}\n{PROGRAM}\n```\nI wait.")
    assert parsed.code == PROGRAM
    assert parsed.prose.split() == ["Let", "me", "test", "this.", "I", "wait."]
    assert "without [CODE]" in parsed.readings[0]


def test_a_script_that_a_conclusion_quotes_is_not_run():
    parsed = parse(f"[DESCRIPTION]: balls, drawn by\n```python\n{PROGRAM}\n```\n[LABEL]: balls")
    assert parsed.code is None
    assert "tools.display" in parsed.conclusion.description


def test_imports_in_a_fence_of_their_own_belong_to_the_program():
    run = "def run_experiment(system, tools):\n    print(np.mean([1]))"
    parsed = parse(f"[CODE]:\n```python\nimport numpy as np\n```\nand\n```python\n{run}\n```")
    assert parsed.code == f"import numpy as np\n\n{run}"


def test_what_a_model_imagines_its_program_to_give_is_not_run():
    parsed = parse(f"[CODE]:\n```python\n{PROGRAM}\n```\nOutput:\n```\nExperiment 1: ok\n1. a ball - 9.1\n```")
    assert parsed.code == PROGRAM
    assert "Experiment 1: ok" in parsed.prose
    assert parsed.readings == ()


def test_of_two_entry_points_it_says_which_is_called():
    one = "```python\ndef run_experiment(system, tools):\n    print({})\n```"
    parsed = parse(f"[CODE]:\n{one.format(1)}\nBetter:\n{one.format(2)}")
    assert parsed.code.index("print(1)") < parsed.code.index("print(2)")
    assert "only the last was called" in parsed.readings[1]


@pytest.mark.parametrize("opening", ["<think>\n", "", "<THINKING>\n"])
def test_what_was_only_thought_is_neither_run_nor_concluded(opening):
    name = "THINKING" if "ING" in opening else "think"
    thought = f"{opening}Maybe\n[CODE]:\n```python\nwrong = 1\n```\nor\n[LABEL]: wrong\n</{name}>"
    parsed = parse(f"{thought}\n\n[CODE]:\n```python\nright = 1\n```")
    assert parsed.code == "right = 1"
    assert parsed.conclusion is None
    assert "[LABEL]: wrong" in parsed.reasoning
    assert parsed.prose == ""


def test_a_thought_within_a_line_takes_nothing_of_the_reply_along():
    parsed = parse(f"[CODE]:\n```python\n{PROGRAM}\n```\nWhy: <reasoning>it may be red</reasoning>\nThen I go on.")
    assert parsed.code == PROGRAM
    assert parsed.reasoning == ""


def test_a_thought_without_end_is_read_like_the_rest():
    assert parse(f"<think>\nI try.\n[CODE]:\n```python\n{PROGRAM}\n```").code == PROGRAM


# --- conclusions ----------------------------------------------------------------------------------


def test_final_answer_behind_other_words_on_a_line_are_a_conclusion():
    found = conclusion("Final answer: [DESCRIPTION]: It responds to small cylinders. n=12\n\n[LABELS]: cylinders")
    assert (found.description, found.labels) == ("It responds to small cylinders. n=12", ("cylinders",))


@pytest.mark.parametrize(
    "text",
    [
        "[LABEL 1]: mushrooms [LABEL 2]: snowmen",
        "[LABELS]: mushrooms, snowmen",
        "[LABELS]: mushrooms; snowmen",
        '[LABELS]: "mushrooms", "snowmen"',
        "[LABELS]:\nmushrooms\nsnowmen",
        "[LABELS]:\n1. mushrooms\n2. snowmen",
        "So: **[LABEL 1]:** mushrooms **[LABEL 2]:** snowmen",
        "- [LABEL 1]: mushrooms\n- [LABEL 2]: snowmen",
    ],
)
def test_several_labels_are_read_however_they_are_lined_up(text):
    assert conclusion(text).labels == ("mushrooms", "snowmen")


def test_labels_are_parted_at_commas_only_where_there_are_several():
    assert conclusion("[LABELS]: cars (red, small), boats").labels == ("cars (red, small)", "boats")
    assert conclusion("[LABEL]: cars, when a house is there").labels == ("cars, when a house is there",)


def test_a_label_behind_the_words_of_a_description_is_a_label():
    found = conclusion("[DESCRIPTION]: It responds to chairs\nof any colour [LABEL]: chairs")
    assert (found.description, found.labels) == ("It responds to chairs\nof any colour", ("chairs",))


def test_a_label_goes_on_in_small_letters_and_ends_at_a_new_sentence():
    parsed = parse("[LABEL]: the lower end of\na dark cylinder\nI am sure of it.")
    assert parsed.conclusion.labels == ("the lower end of a dark cylinder",)
    assert parsed.prose == "I am sure of it."


@pytest.mark.parametrize(
    "text",
    [
        "Once I am sure I will give a [DESCRIPTION]: and then a [LABEL]: of it.",
        'It wants "[LABEL]: red" from me.',
        "It wants: `[LABEL]: red`.",
        "As you asked: “[LABEL]: red”.",
        "> So: [LABEL]: red",
        "Then: '[LABEL]: red'.",
    ],
)
def test_a_tag_in_the_middle_of_a_sentence_or_in_quotation_marks_is_no_conclusion(text):
    assert parse(text).conclusion is None


def test_a_tag_that_was_read_as_words_is_named_where_nothing_else_was_read():
    assert parse("I give a [LABEL]: later.").readings == (
        "[LABEL] stood in the middle of a sentence and was read as words of it.",
    )
    assert parse("I give a [CODE]: later.\n[LABEL]: red").readings == ()


def test_a_reply_says_which_parts_of_a_conclusion_it_gave():
    assert parse("[DESCRIPTION]: x\n[LABELS]: none").tags == ("DESCRIPTION", "LABEL")
    assert parse("[DESCRIPTION]: x\n[LABEL]: <label>").tags == ("DESCRIPTION",)
    assert parse("[DESCRIPTION]: x\n\n[DESCRIPTION]: y").conclusion.description == "x\n\ny"


# --- hypotheses -----------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["H{}: {}", "**H{}:** {}", "- H{}. {}", "H_{} \u2013 {}", "Hyp {}: {}", "h{}) {}"])
def test_short_names_of_hypotheses_are_read(form):
    lines = "\n".join(form.format(number, text) for number, text in ((1, "red"), (2, "blue")))
    assert parse(f"[HYPOTHESIS LIST]:\n{lines}").hypotheses == (Hypothesis(1, "red"), Hypothesis(2, "blue"))


@pytest.mark.parametrize(
    ("line", "status", "reason"),
    [
        ("red balls (refuted: 4.1, n = 6)", "refuted", "4.1, n = 6"),
        ("red balls [refuted] since blue ones gave 9.1", "refuted", "since blue ones gave 9.1"),
        ("red balls [supported: 9.1], see experiment 2", "supported", "9.1; see experiment 2"),
        ("red balls — REFUTED: 4.1", "refuted", "4.1"),
        ("red balls -> supported (9.1)", "supported", "(9.1)"),
        ("(supported by experiment 2) red balls", "supported", "by experiment 2"),
        ("**red balls** [open]", "open", ""),
    ],
)
def test_fates_are_read_with_the_words_around_them(line, status, reason):
    assert parse(f"[HYPOTHESIS LIST]:\nH1: {line}").hypotheses == (Hypothesis(1, "red balls", status, reason),)


def test_a_fate_before_the_colon_is_read():
    assert parse("[HYPOTHESES]:\nH1 (refuted, 2.2): red balls\nH2: doors (open or closed)").hypotheses == (
        Hypothesis(1, "red balls", "refuted", "2.2"),
        Hypothesis(2, "doors (open or closed)"),
    )
