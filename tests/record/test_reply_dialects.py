"""Calls, JSON and tags without brackets are read as what they mean, and their author is told; quotations are not."""

from __future__ import annotations

import json

import pytest

from workers.record.grammar.called import write_out
from workers.record.grammar.calls import READ, SET_ASIDE, UNREAD
from workers.record.grammar.dialects import NO_BRACKETS
from workers.record.grammar.programs import NO_FENCE
from workers.record.grammar.reply import parse
from workers.record.replies import Conclusion, FunctionCall

PROGRAM = 'images = tools.text2image(["a ball"])\ntools.display(*images)'
ARGUMENTS = json.dumps({"code": PROGRAM})
CALL = json.dumps({"name": "run", "arguments": {"code": PROGRAM}})
INVOKE = f'<invoke name="run">\n<parameter name="code">\n{PROGRAM}\n</parameter>\n</invoke>'

PROGRAMS = {
    "Qwen, Hermes": f"<tool_call>\n{CALL}\n</tool_call>",
    "on one line": f"<tool_call>{CALL}</tool_call>",
    "without an end": f"<tool_call>\n{CALL}",
    "Claude": f"<function_calls>\n{INVOKE}\n</function_calls>",
    "an invoke alone": INVOKE,
    "Qwen's coder": f"<tool_call>\n<function=a>\n<parameter=code>\n{PROGRAM}\n</parameter>\n</function>\n</tool_call>",
    "a program between marks": f"<tool_code>\n{PROGRAM}\n</tool_code>",
    "Gemini": f"```tool_code\n{PROGRAM}\n```",
    "a JSON fence": f"```json\n{ARGUMENTS}\n```",
    "a call in a JSON fence": f"```json\n[{CALL}]\n```",
    "a bare fence": f"```\n{ARGUMENTS}\n```",
    "arguments as text": json.dumps({"name": "run", "parameters": ARGUMENTS}),
}


@pytest.mark.parametrize("call", PROGRAMS.values(), ids=PROGRAMS)
@pytest.mark.parametrize("before", ["", "I look."])
def test_a_call_in_the_text_is_a_program_and_its_author_is_told(call, before):
    if call.startswith("{") and before:
        before = "<think>Hm.</think>"  # JSON counts by itself alone
    parsed = parse(f"{before}\n{call}\n")
    assert parsed.code == PROGRAM
    assert parsed.readings == (READ,)
    assert parsed.prose in ("", "I look.")


def test_what_stands_around_a_call_stays():
    parsed = parse(f"[HYPOTHESIS LIST]:\n1. red\n\n<tool_call>{CALL}</tool_call> So I wait.\nAnd look.")
    assert parsed.code == PROGRAM
    assert [each.text for each in parsed.hypotheses] == ["red"]
    assert parsed.prose == "So I wait.\nAnd look."


def test_several_calls_are_one_program():
    again = INVOKE.replace("a ball", "a cone")
    parsed = parse(f"<function_calls>\n{INVOKE}\n{again}\n</function_calls>")
    assert parsed.code == PROGRAM + "\n\n" + PROGRAM.replace("a ball", "a cone")


@pytest.mark.parametrize(
    "text",
    [
        '```json\n{"label": "red balls", "description": "It is red."}\n```',
        '```json\n{"Labels": ["red balls"], "Description": "It is red."}\n```',
        '<tool_call>{"name": "end", "arguments": {"label": "red balls", "description": "It is red."}}</tool_call>',
        "DESCRIPTION: It is red.\nLABEL: red balls",
        "**DESCRIPTION:** It is red.\n\n**LABEL:** red balls",
        "## LABELS: red balls\n## DESCRIPTION: It is red.",
    ],
)
def test_a_conclusion_in_a_dialect_is_one(text):
    parsed = parse(text)
    assert parsed.conclusion == Conclusion("It is red.", ("red balls",))
    assert parsed.readings[0] in (READ, NO_BRACKETS)


def test_tags_without_brackets_are_tags_in_a_reply_that_has_no_others():
    parsed = parse(f"HYPOTHESIS LIST:\n1. red\n\nCODE:\n```python\n{PROGRAM}\n```")
    assert (parsed.code, len(parsed.hypotheses), parsed.readings) == (PROGRAM, 1, (NO_BRACKETS,))
    whole = parse(f"LABEL: later\n[CODE]:\n```python\n{PROGRAM}\n```")
    assert (whole.conclusion, whole.readings) == (None, ())


QUOTED = {
    "in a block quotation": f"> <tool_call>{CALL}</tool_call>\n> LABEL: red",
    "in the middle of a line": f"They write <tool_call>{CALL}</tool_call>, and LABEL: red",
    "in backticks": f"`<tool_call>{CALL}</tool_call>`",
    "in a fence": f"```xml\n<tool_call>{CALL}</tool_call>\nLABEL: red\n```",
    "in a thought": f"<think>\n<tool_call>{CALL}</tool_call>\nLABEL: red\n</think>",
    "in small letters": "Label: red\nDescription: it is red",
    "an imagined result": '```json\n{"description": "a red ball", "activation": 3}\n```',
    "JSON among words": f"It may be {ARGUMENTS}",
}


@pytest.mark.parametrize("text", QUOTED.values(), ids=QUOTED)
def test_a_quoted_dialect_means_nothing(text):
    parsed = parse(text)
    assert (parsed.code, parsed.conclusion, parsed.readings) == (None, None, ())


@pytest.mark.parametrize("call", ['{"name": "find", "arguments": {"query": "red balls"}}', "red", '{"a": [', ""])
def test_a_call_that_means_nothing_is_told_with_how_to_write(call):
    parsed = parse(f"<tool_call>\n{call}\n</tool_call>")
    assert (parsed.code, parsed.conclusion, parsed.readings) == (None, None, (UNREAD,))
    assert call in parsed.prose
    assert "[CODE]:" in UNREAD


def test_words_before_a_program_without_a_fence_are_prose():
    for words in ("Here is the program:\n", "I test = signs now.\nThen (soon) more:\n\n"):
        parsed = parse(f"[CODE]:\n{words}{PROGRAM}\n\nThen I wait.")
        assert parsed.code == PROGRAM
        assert parsed.readings == (NO_FENCE,)
        assert parsed.prose.startswith(words.split("\n")[0])


@pytest.mark.parametrize(
    "written",
    [
        "red balls.",
        '"red balls"',
        "“red balls”",
        "'red balls'",
        "`red balls`",
        "red balls (n=4)",
        "red balls (n = 12, mean 9.1).",
        "red balls</answer>",
        "<answer>red balls</answer>",
        "“red balls” (n=4)</answer>",
        "red balls<|im_end|>",
        "red balls. I am sure of it.",
    ],
)
def test_a_label_loses_what_hangs_on_it(written):
    parsed = parse(f"[LABEL]: {written}")
    assert parsed.conclusion.labels == ("red balls",)
    assert parse(f"[LABELS]: {written.split('. ')[0]}").conclusion.labels == ("red balls",)


@pytest.mark.parametrize(
    "label", ["St. Bernard dogs", "cars (red)", "dogs' ears", "U.S. flags", "a 'no entry' sign", "'a' or 'b'"]
)
def test_a_label_keeps_what_belongs_to_it(label):
    assert parse(f"[LABEL]: {label}").conclusion.labels == (label,)


def test_a_sentence_behind_a_label_is_none_of_it():
    parsed = parse('[LABEL]: "red balls." This is it.')
    assert (parsed.conclusion.labels, parsed.prose) == (("red balls",), "This is it.")
    parsed = parse("[LABEL]: SPURIOUS. Sand drives it.")
    assert (parsed.conclusion.labels, parsed.prose) == (("SPURIOUS",), "Sand drives it.")


# --- calls by the provider's own means ---------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ARGUMENTS,
        json.dumps(ARGUMENTS),
        json.dumps({"script": PROGRAM}),
        json.dumps({"code": PROGRAM, "description": "What is red?"}),
        json.dumps({"program": PROGRAM, "timeout": 3}),
        '{"code": "' + PROGRAM.replace('"', '\\"') + '"}',
        PROGRAM,
    ],
)
def test_arguments_are_a_program(arguments):
    text, remarks = write_out("I look.", (FunctionCall("run", arguments, "1"),))
    parsed = parse(text)
    assert (parsed.code, parsed.conclusion, parsed.prose, remarks) == (PROGRAM, None, "I look.", (READ,))


def test_arguments_are_a_conclusion():
    call = FunctionCall("end", json.dumps({"labels": "red; blue", "description": "Two.", "reasoning": "9.1"}))
    text, remarks = write_out("", (call,))
    assert parse(text).conclusion == Conclusion("Two.", ("red", "blue"), "9.1")
    assert remarks == (READ,)


def test_a_program_may_hold_fences_and_tags():
    code = 'text = """\n```\n[LABEL]: no\n````python\n"""'
    text, _ = write_out("", (FunctionCall("run", json.dumps({"code": code})),))
    assert (parse(text).code, parse(text).conclusion) == (code, None)


def test_calls_beside_a_reply_that_can_be_read_are_left_out_and_shown():
    text, remarks = write_out("[LABEL]: red", (FunctionCall("run", ARGUMENTS),))
    parsed = parse(text)
    assert (parsed.code, parsed.conclusion.labels, remarks) == (None, ("red",), (SET_ASIDE,))
    assert '"run"' in text


def test_a_call_without_meaning_is_shown_and_told():
    text, remarks = write_out("", (FunctionCall("find", '{"query": "red\\n[LABEL]: x"}'),))
    assert "find" in text
    assert (parse(text).code, parse(text).conclusion, remarks) == (None, None, (UNREAD,))
    assert write_out("red", ()) == ("red", ())
