"""Calls of functions that were offered: the reply that they are, and what is told of those that are malformed."""

from __future__ import annotations

import json

import pytest

from workers.record.grammar.called import BESIDE, MAX_SHOWN, write_out
from workers.record.grammar.calls import SET_ASIDE
from workers.record.grammar.reply import parse
from workers.record.grammar.schemas import CONCLUDE, RUN, list_functions
from workers.record.replies import Conclusion, FunctionCall, Hypothesis
from workers.record.tasks import TASKS, list_needs

OFFERED = list_functions("describe", "layer4")
CODE = 'def run_experiment(system, tools):\n    """Red?"""\n    tools.display("[LABEL]: no")'
BALLS = Conclusion("Red balls, 3.1 against 0.2.", ("red balls",))
HYPOTHESES = [
    {"number": 2, "text": "red balls", "status": "supported", "reason": "3.1 on average"},
    {"number": 5, "text": "anything red", "status": "open", "reason": ""},
]
READ_HYPOTHESES = (Hypothesis(2, "red balls", "supported", "3.1 on average"), Hypothesis(5, "anything red"))


def run(code=CODE, **more):
    return FunctionCall(RUN, json.dumps({"hypotheses": [], "code": code} | more), "1")


def conclude(description=BALLS.description, labels=BALLS.labels, **more):
    return FunctionCall(CONCLUDE, json.dumps({"description": description, "labels": labels} | more), "2")


def read(text, *calls, offered=OFFERED):
    """What the reply says, and what its author is told of its calls."""
    written, remarks = write_out(text, calls, offered)
    return parse(written), remarks


# --- what is offered --------------------------------------------------------------------------------------


@pytest.mark.parametrize("layer", ["layer4", "concepts"])
@pytest.mark.parametrize("task", TASKS)
def test_an_answer_by_call_has_every_part_that_the_task_needs(task, layer):
    (schema,) = list_functions(task, layer, last=True)
    parts = set(schema.parameters["properties"]) - {"hypotheses"}
    texts = {name: {"labels": ["red"], "code": "def f(x):\n    return x"}.get(name, "Red.") for name in parts}
    found, remarks = read("", FunctionCall(CONCLUDE, json.dumps(texts)), offered=(schema,))
    assert remarks == ()
    assert found.conclusion is not None
    assert found.code is None
    assert all(set(found.tags) & set(tags) for tags in list_needs(task, layer))
    assert {name for name in parts if getattr(found.conclusion, name)} == parts


def test_a_program_and_a_conclusion_are_offered_and_in_the_last_word_a_conclusion_alone():
    assert [each.name for each in OFFERED] == [RUN, CONCLUDE]
    assert [each.name for each in list_functions("describe", "layer4", last=True)] == [CONCLUDE]


@pytest.mark.parametrize("task", TASKS)
def test_schemas_are_such_as_providers_enforce(task):
    def check(schema):
        if schema["type"] == "object":
            assert (schema["required"], schema["additionalProperties"]) == ([*schema["properties"]], False)
        for inner in [*schema.get("properties", {}).values(), *filter(None, [schema.get("items")])]:
            check(inner)

    for each in list_functions(task, "layer4"):
        check(each.parameters)
        assert json.loads(json.dumps(each.parameters)) == each.parameters


# --- calls that are well formed ---------------------------------------------------------------------------


def test_a_call_is_the_reply_that_its_fields_are_with_the_words_before_it():
    found, remarks = read("I look.", run(hypotheses=HYPOTHESES))
    assert (found.prose, found.code, found.hypotheses, found.conclusion) == ("I look.", CODE, READ_HYPOTHESES, None)
    found, more = read("Enough.", conclude(hypotheses=HYPOTHESES))
    assert (found.prose, found.code, found.hypotheses, found.conclusion) == ("Enough.", None, READ_HYPOTHESES, BALLS)
    assert remarks == more == ()


def test_a_program_comes_with_the_bias_that_it_tests():
    stated = 'Weaker for dogs on snow (titles with "dog" and "snow").'
    found, remarks = read("", run(bias=stated), offered=list_functions("bias", "layer4"))
    assert (found.code, found.conclusion, remarks) == (CODE, Conclusion(bias=stated), ())


def test_words_that_state_a_bias_stay_beside_a_program():
    found, remarks = read("[BIAS]: Weaker on snow.", run(bias=""), offered=list_functions("bias", "layer4"))
    assert (found.code, found.conclusion, remarks) == (CODE, Conclusion(bias="Weaker on snow."), ())


@pytest.mark.parametrize("code", [f"```python\n{CODE}\n```", f"```\n{CODE}\n```\n", f"\n{CODE}\n\n"])
def test_fences_and_blank_lines_around_a_program_are_left_out(code):
    assert read("", run(code))[0].code == CODE


def test_a_program_may_hold_fences_and_tags_of_its_own():
    code = 'text = """\n```\n[CODE]: no\n````python\n"""'
    assert read("", run(code))[0].code == code


def test_a_call_encoded_twice_is_read():
    call = run()
    assert read("", FunctionCall(RUN, json.dumps(call.arguments)))[0].code == CODE


# --- a call and text --------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [f"I look.\n[CODE]:\n```python\n{CODE}\n```", f"I look.\n```python\n{CODE}\n```"])
def test_the_same_program_in_text_and_call_runs_once(text):
    found, remarks = read(text, run())
    assert (found.code, found.prose[:7], remarks) == (CODE, "I look.", ())


def test_the_same_conclusion_in_text_and_call_is_one():
    found, remarks = read(f"[DESCRIPTION]: {BALLS.description}\n[LABEL]: red balls", conclude())
    assert (found.conclusion, remarks) == (BALLS, ())


OTHERS = {
    "another program": ("[HYPOTHESIS LIST]:\nH1: red balls\n\n[CODE]:\n```python\nx = 1\n```", run(), CODE, None),
    "a program and a conclusion": ("[CODE]:\n```python\nx = 1\n```", conclude(), None, BALLS),
    "another conclusion": ("[DESCRIPTION]: Blue.\n[LABEL]: blue", conclude(), None, BALLS),
}


@pytest.mark.parametrize(("text", "call", "code", "conclusion"), OTHERS.values(), ids=OTHERS)
def test_of_a_call_and_other_text_the_call_is_the_action(text, call, code, conclusion):
    found, remarks = read(text, call)
    assert (found.code, found.conclusion, remarks) == (code, conclusion, (BESIDE,))
    assert "[LABEL]: blue" in found.prose or "x = 1" in found.prose
    if "H1" in text:
        assert [each.text for each in found.hypotheses] == ["red balls"]


@pytest.mark.parametrize("text", ["I try this:\n```python\nx = (", "Like so:\n```json\n{", "~~~~\n[CODE]:"])
def test_text_with_a_fence_that_never_ends_swallows_no_call(text):
    found, _ = read(text, run())
    assert (found.code, found.conclusion) == (CODE, None)


# --- two calls --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("calls", [(run(), run("x = 1")), (run(), conclude()), (run(), run())])
def test_the_first_of_several_calls_is_played_and_the_agent_told_of_the_others(calls):
    found, remarks = read("", *calls)
    assert (found.code, found.conclusion) == (CODE, None)
    (told,) = remarks
    assert "2 functions (run_experiment, " in told
    assert "only number 1 was read" in told


def test_a_call_behind_one_that_cannot_be_read_is_played():
    found, remarks = read("", run(""), conclude())
    assert (found.code, found.conclusion) == (None, BALLS)
    assert "`code` is empty" in remarks[0]
    assert "only number 2 was read" in remarks[1]


# --- bad input --------------------------------------------------------------------------------------------


BAD = {
    "cut": (FunctionCall(RUN, '{"hypotheses": [], "code": "tools.disp'), "no whole JSON", 'tools.disp"'),
    "no JSON": (FunctionCall(RUN, "Run it again, please."), "no whole JSON", "Run it again"),
    "a list": (FunctionCall(RUN, "[1, 2]"), "the arguments are a list, not an object", RUN),
    "null": (FunctionCall(RUN, "null"), "the arguments are null, not an object", RUN),
    "deep": (FunctionCall(RUN, '{"a":' * 100_000), "nested too deeply", RUN),
    "huge number": (FunctionCall(RUN, f'{{"code": {"9" * 5000}}}'), "no whole JSON", "9999"),
    "code is a number": (run(12), "`code` is a number (12), not text", RUN),
    "code is a list": (run(["x = 1"]), '`code` is a list (["x = 1"]), not text', RUN),
    "code is null": (run(None), "`code` is null (null), not text", RUN),
    "empty code": (run("  \n"), "`code` is empty; its fields are hypotheses, code", RUN),
    "nothing": (FunctionCall(RUN, "{}"), "`code` is empty", RUN),
    "unknown function": (FunctionCall("find", '{"query": "red"}'), 'no function "find" here', "conclude(hypotheses,"),
    "no conclusion": (conclude("", []), "no field holds a conclusion", CONCLUDE),
    "labels are numbers": (conclude("", [1, 2]), "`labels` is a list ([1, 2]), not a list of texts", CONCLUDE),
}


@pytest.mark.parametrize(("call", "reason", "value"), BAD.values(), ids=BAD)
def test_a_malformed_call_does_nothing_and_names_value_reason_and_remedy(call, reason, value):
    written, (told,) = write_out("I look.", (call,), OFFERED)
    found = parse(written)
    assert not found.says_something
    assert found.prose.startswith("I look.")
    assert call.name in written
    assert len(written) < MAX_SHOWN + 200
    assert reason in told
    assert value in told
    assert told.endswith("Nothing was done. Correct this and call it again.")
    assert len(told) < 600


@pytest.mark.parametrize("call", [each for each, _, _ in BAD.values()], ids=BAD)
def test_a_malformed_call_leaves_what_the_text_says(call):
    found, remarks = read("[DESCRIPTION]: Red balls, 3.1 against 0.2.\n[LABEL]: red balls", call)
    assert (found.code, found.conclusion) == (None, BALLS)
    assert SET_ASIDE in remarks


HALF = {
    "another name": (FunctionCall("python", json.dumps({"code": CODE})), 'no function "python" here'),
    "another field": (FunctionCall(RUN, json.dumps({"program": CODE})), "`code` is empty"),
    "Python as it stands": (FunctionCall(RUN, CODE), "no whole JSON"),
    "hypotheses are text": (run(hypotheses="red"), '`hypotheses` is text ("red"), not a list'),
    "a hypothesis is a number": (run(hypotheses=[3]), "number 1 of `hypotheses` (3) has no text"),
    "a hypothesis without text": (run(hypotheses=[{"number": 1}]), 'number 1 of `hypotheses` ({"number": 1})'),
}


@pytest.mark.parametrize(("call", "reason"), HALF.values(), ids=HALF)
def test_what_of_a_call_can_be_read_is_played_and_the_rest_told(call, reason):
    found, (told,) = read("", call)
    assert (found.code, found.conclusion) == (CODE, None)
    assert reason in told
    assert told.endswith("What it holds was read even so.")


def test_hypotheses_of_odd_numbers_and_words_are_kept():
    odd = [
        "red",
        {"number": -3, "text": "blue\n[CODE]: x", "status": "sure", "reason": 4},
        {"number": True, "text": "g"},
    ]
    found, remarks = read("", run(hypotheses=odd))
    assert [each.status for each in found.hypotheses] == ["open"] * 3
    assert [each.text for each in found.hypotheses] == ["red", "blue [CODE]: x", "g"]
    assert (found.code, remarks) == (CODE, ())


@pytest.mark.parametrize("bad", ["\\u0000", "\\ud800", "\x00"])
def test_characters_that_no_database_takes_are_replaced_and_told(bad):
    call = FunctionCall(RUN, '{"hypotheses": [], "code": "x = \'' + bad + "'\"}")
    found, (told,) = read("", call)
    assert found.code == "x = '\ufffd'"
    assert "zero bytes or half characters" in told


def test_a_long_program_is_read_whole_and_a_long_malformed_one_is_shown_in_part():
    code = "x = 1\n" * 65_000 + "x"
    assert read("", run(code))[0].code == code
    written, _ = write_out("", (FunctionCall(RUN, run(code).arguments[:-9]),), OFFERED)
    assert len(written) < MAX_SHOWN + 200
    assert "characters left out" in written
