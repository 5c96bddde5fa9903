"""Functions that are offered to models: to which, what a provider refuses of them, and whole runs by calls alone."""

from __future__ import annotations

import json

import pytest

from tests.support.openai_backbone import TASK, ask, backbone
from tests.support.playback import CONCLUSION, RED_BALLS, Lab, end, kinds, logged, new_run_log, notes, play
from tests.support.provider import Handler, Provider, calls, refuses, says, streams, unless
from tests.support.quick_laboratory import QUICK_IMAGES
from tests.support.toybox_run import play as play_on_toybox
from workers.agent.instructions import choose_example
from workers.backbones.openai.call_drafts import CallDraft
from workers.backbones.openai.options import needs_functions
from workers.lab.laboratory import Laboratory
from workers.protocols import LabSettings, Message, StatusNote
from workers.protocols import Provider as Settings
from workers.record.grammar.schemas import CONCLUDE, RUN, list_functions
from workers.record.limits import Limits
from workers.record.replies import FunctionCall
from workers.record.systems import SystemSpec

PROGRAM = 'def run_experiment(system, tools):\n    """Red “é”?"""\n    tools.display("\\t1\\\\n")'
PLAYED = (RUN, {"hypotheses": [], "code": PROGRAM})
CONCLUDED = (
    CONCLUDE,
    {"hypotheses": [], "description": RED_BALLS.description, "labels": list(RED_BALLS.labels)},
)
OFFERING = (TASK[0], Message("user", TASK[1].parts, functions=list_functions("describe", "layer4")))


def offered(body):
    return [each["function"]["name"] for each in body.get("tools", ())]


def is_strict(body):
    return [each["function"].get("strict", False) for each in body.get("tools", ())]


def replies(run_log):
    return [event.payload for event in run_log.events() if event.kind == "reply"]


# --- who gets them ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "model", "tools", "called", "expected"),
    [
        ("", "gpt-5.1", "auto", False, True),
        ("https://api.openai.com/v1", "o3", "auto", False, True),
        ("", "gpt-4o", "auto", False, False),
        ("http://127.0.0.1:8000/v1", "gpt-5.1", "auto", False, False),
        ("http://127.0.0.1:8000/v1", "qwen3-vl", "auto", True, True),
        ("", "gpt-5.1", "no", True, False),
        ("http://127.0.0.1:8000/v1", "qwen3-vl", "yes", False, True),
    ],
)
def test_functions_are_offered_by_setting_model_and_what_it_did(url, model, tools, called, expected):
    assert needs_functions(Settings(base_url=url, tools=tools), model, called=called) == expected


def test_a_request_offers_them_only_where_a_turn_has_some_and_leaves_the_choice_to_the_model():
    with Provider(says("red")) as server:
        assert not ask(server, TASK, tools="yes").offered
        assert ask(server, OFFERING, tools="yes").offered
        assert not ask(server, OFFERING, tools="no").offered
        assert not ask(server, OFFERING).offered
    assert [offered(body) for body in server.asked] == [[], [RUN, CONCLUDE], [], []]
    assert not any("tool_choice" in body for body in server.asked)
    assert is_strict(server.asked[1]) == [True, True]
    sent = [each["function"]["parameters"] for each in server.asked[1]["tools"]]
    assert sent == [each.parameters for each in OFFERING[1].functions]


def test_a_model_that_calls_a_function_unasked_is_offered_some_from_then_on():
    with Provider(calls(("run", {"code": PROGRAM})), calls(CONCLUDED)) as server:
        run_log = play(backbone(server), Lab(logged(3.5)))
    assert [offered(body) for body in server.asked] == [[], [RUN, CONCLUDE]]
    assert end(run_log).conclusion == RED_BALLS
    assert [bool(each.readings) for each in replies(run_log)] == [True, False]


# --- what a provider refuses ------------------------------------------------------------------------------

REFUSALS = {
    "OpenAI": refuses(400, "Unsupported parameter: 'tools' is not supported with this model.", param="tools"),
    "Ollama": refuses(400, "registry.ollama.ai/library/gemma3:4b does not support tools"),
    "vLLM": refuses(400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
    "OpenRouter": refuses(404, "No endpoints found that support tool use."),
    "llama.cpp": refuses(500, "tools param requires --jinja flag"),
    "FastAPI": refuses(422, body='{"detail": [{"loc": ["body", "tools"], "msg": "Extra inputs are not permitted"}]}'),
}


@pytest.mark.parametrize("refused", REFUSALS.values(), ids=REFUSALS)
def test_a_provider_that_takes_no_functions_is_asked_without_and_learnt(refused):
    with Provider(unless(says("red"), refused, lambda body: not offered(body))) as server:
        it = backbone(server, tools="yes", reasoning_effort="low")
        found = [it.reply(OFFERING, {}.__getitem__, lambda piece: None, 1) for _ in range(3)]
    assert [(each.text, each.offered) for each in found] == [("red", False)] * 3
    assert [bool(offered(body)) for body in server.asked][-1] is False
    assert sum(bool(offered(body)) for body in server.asked) <= 2, "a value that was refused is tried once more"
    assert all("reasoning_effort" in body for body in server.asked), "the rest stays"
    assert "'tools'" in found[0].provider_errors[0]


STRICT = {
    "OpenAI": refuses(400, "Unknown parameter: 'tools[0].function.strict'.", param="tools[0].function.strict"),
    "Gemini": refuses(400, "Invalid JSON payload received. Unknown name \"strict\" at 'tools[0].function'"),
    "FastAPI": refuses(422, body='{"detail": [{"loc": ["tools", 0, "strict"], "msg": "Extra inputs not permitted"}]}'),
}


@pytest.mark.parametrize("refused", STRICT.values(), ids=STRICT)
def test_a_provider_that_enforces_no_schemas_gets_them_plain(refused):
    with Provider(unless(calls(PLAYED), refused, lambda body: not any(is_strict(body)))) as server:
        it = backbone(server, tools="yes")
        found = [it.reply(OFFERING, {}.__getitem__, lambda piece: None, 1) for _ in range(2)]
    assert [is_strict(body) for body in server.asked] == [[True, True], [False, False], [False, False]]
    assert all(each.offered and each.calls[0].name == RUN for each in found)


# --- runs by calls ----------------------------------------------------------------------------------------


def test_a_run_by_calls_alone_is_recorded_as_one_by_tags():
    with Provider(calls(PLAYED, words="I look."), calls(CONCLUDED)) as server:
        run_log = play(backbone(server, tools="yes"), Lab(logged(3.5)))
    first, last = replies(run_log)
    assert (first.prose, first.code, first.readings) == ("I look.", PROGRAM, ())
    assert first.text == f"I look.\n\n[CODE]:\n```python\n{PROGRAM}\n```"
    assert first.calls == (FunctionCall(RUN, json.dumps(PLAYED[1]), "call_0"),)
    assert (kinds(run_log)[-1], end(run_log).conclusion, last.readings) == ("concluded", RED_BALLS, ())
    said = server.asked[1]["messages"]
    assert {each["role"] for each in said} == {"system", "user", "assistant"}
    assert [each for each in said if each["role"] == "assistant"] == [{"role": "assistant", "content": first.text}]


def test_a_malformed_call_costs_no_round_of_its_own_and_is_told():
    with Provider(calls((RUN, '{"code": "x = ')), calls(PLAYED), calls(CONCLUDED)) as server:
        run_log = play(backbone(server, tools="yes"), Lab(logged(3.5)))
    assert end(run_log).conclusion == RED_BALLS
    assert notes(run_log) == ["format"]
    told = json.dumps(server.asked[1]["messages"][-1], ensure_ascii=False)
    assert "no whole JSON" in told
    assert "There are no functions" not in told


def test_a_call_that_a_server_left_in_the_text_is_read_without_a_denial():
    text = f"<tool_call>\n{json.dumps({'name': RUN, 'arguments': PLAYED[1]})}\n</tool_call>"
    with Provider(says(text), says(CONCLUSION)) as server:
        run_log = play(backbone(server, tools="yes"), Lab(logged(3.5)))
    assert replies(run_log)[0].code == PROGRAM
    assert "no functions" not in json.dumps(server.asked[1]["messages"])


def test_in_the_last_word_a_conclusion_alone_is_offered():
    with Provider(calls(PLAYED), calls(CONCLUDED)) as server:
        run_log = play(backbone(server, tools="yes"), Lab(logged(3.5)), new_run_log(limits=Limits(rounds=1)))
    assert [offered(body) for body in server.asked] == [[RUN, CONCLUDE], [CONCLUDE]]
    assert (kinds(run_log)[-1], end(run_log).conclusion) == ("limit_reached", RED_BALLS)


@pytest.mark.parametrize(
    "arguments", ['{"code": "' + "x" * 410_000 + '"}', "[" * 399_000, '{"code": "' + "x" * 399_000]
)
def test_endless_arguments_end_no_run(arguments):
    with Provider(calls((RUN, arguments), step=50_000), calls(PLAYED), calls(CONCLUDED)) as server:
        run_log = play(backbone(server, tools="yes"), Lab(logged(3.5)))
    assert end(run_log).conclusion == RED_BALLS
    assert len(json.dumps(server.asked[-1])) < 60_000


@pytest.mark.more
def test_a_run_on_toybox_by_calls_finds_what_the_same_run_by_tags_finds(quick_laboratory, sandbox):
    laboratory = Laboratory(LabSettings(quick_laboratory, dataset_images=QUICK_IMAGES))
    spec, found = SystemSpec("unit", "toybox", "layer4", 12), []
    contrast = choose_example("", "text2image").replace("a first image", "a red ball on grass by day")
    contrast = contrast.replace("the same image with one thing changed", "a blue ball on grass by day")
    programs = [choose_example("", "dataset_exemplars"), contrast]
    listed = [{"number": 1, "text": "red balls", "status": "open", "reason": ""}]
    by_tags = [f"[HYPOTHESIS LIST]:\nH1: red balls [open]\n\n[CODE]:\n```python\n{each}\n```" for each in programs]
    by_calls = [calls((RUN, {"hypotheses": listed, "code": each})) for each in programs]
    for answers in ([*map(says, by_tags), says(CONCLUSION)], [*by_calls, calls(CONCLUDED)]):
        with Provider(*answers) as server:
            it = backbone(server, tools="yes")
            found.append(play_on_toybox(laboratory, sandbox, spec, seed=3, backbone=it))
        assert all(offered(body) == [RUN, CONCLUDE] for body in server.asked)
    written, called = found
    assert [each.kind for each in called] == [each.kind for each in written]
    assert (called[-1].kind, called[-1].payload.conclusion) == ("concluded", RED_BALLS)
    for one, two in zip(called, written, strict=True):
        if one.kind == "reply":
            assert (one.payload.hypotheses, one.payload.code) == (two.payload.hypotheses, two.payload.code)
            assert one.payload.calls
        if one.kind == "result":
            assert len(one.payload.observations) > 1
            assert one.payload.observations == two.payload.observations


# --- what is shown while a call is written ----------------------------------------------------------------


@pytest.mark.parametrize("step", [1, 3, 1000])
def test_a_program_is_shown_as_it_is_written(step):
    shown = []
    with Provider(calls(PLAYED, words="I look.", step=step)) as server:
        ask(server, OFFERING, tools="yes", emit=lambda piece: shown.append(piece))
    text = "".join(each for each in shown if isinstance(each, str))
    assert text == f"I look.\n\n[CODE]:\n```python\n{PROGRAM}\n```"
    assert not any("function call" in each.what for each in shown if isinstance(each, StatusNote))


def test_what_was_shown_of_a_call_that_broke_off_is_void():
    shown = []
    part = {"index": 0, "id": "1", "function": {"name": RUN, "arguments": '{"code": "x = 1'}}
    broken = streams({"choices": [{"index": 0, "delta": {"tool_calls": [part]}}]}, then=Handler.cut)
    with Provider(broken, calls(PLAYED)) as server:
        ask(server, OFFERING, tools="yes", emit=lambda piece: shown.append(piece))
    assert None in shown
    assert "".join(filter(lambda each: isinstance(each, str), shown[shown.index(None) + 1 :])).count("[CODE]") == 1


def test_the_texts_of_a_conclusion_are_shown_behind_their_tags():
    arguments = json.dumps({"reasoning": "3.1 \U0001f534 \\", "description": 'a "red" ball', "labels": ["red"]})
    draft = CallDraft()
    shown = "".join(draft.add(each) for each in arguments)
    assert shown.split("\n\n")[1:][1] == '[DESCRIPTION]: a "red" ball'
    assert CallDraft().add(arguments.replace("\\\\", "\\q")).startswith("\n\n[REASONING]: 3.1")
