"""A run on a function: played by a worker into the database, shown on its page, and what hostile programs get."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from experiments.models import Run
from tests.support.builders import make_run
from tests.support.function_runs import FUNCTION, play
from workers.errors import RequestError
from workers.functions.families import open_function
from workers.functions.scoring import score_answer
from workers.lab.laboratory import Laboratory
from workers.protocols import Bounds, LabSettings
from workers.record.functions import to_json
from workers.record.grammar.reply import parse
from workers.record.limits import Usage
from workers.record.systems import SystemSpec


@pytest.mark.usefixtures("redis_url", "_laboratory")
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("layer", "unit"), [("numeric", 10), ("strings", 5)])
def test_the_scripted_baseline_finds_a_function_out(
    owner: User, client: Client, sandbox: Any, layer: str, unit: int
) -> None:
    run = play(make_run(owner, layer=layer, unit=unit, question="What does it compute?", **FUNCTION))
    assert run.status == "concluded", run.events.last().payload
    assert run.conclusion["domain"]
    assert score_answer(open_function(f"{layer}:{unit}"), run.conclusion["code"], sandbox).success
    client.force_login(owner)
    page = client.get(f"/runs/{run.pk}/").content.decode()
    for words in ("Input", "Output", "Domain", "def f(", "Scripted baseline"):
        assert words in page
    assert client.get(f"/api/v1/runs/{run.pk}").json()["conclusion"]["code"] == run.conclusion["code"]


@pytest.mark.usefixtures("_laboratory")
@pytest.mark.django_db
@pytest.mark.parametrize(
    ("changes", "field", "says"),
    [
        ({"task": "describe"}, "task", "A function takes no images"),
        ({"backbone": "scripted"}, "backbone", "calls no function"),
        ({"model": "toybox", "layer": "layer4"}, "task", "is asked of functions alone"),
        ({"unit": "1000"}, "unit", ""),
    ],
)
def test_what_does_not_go_together_is_refused(
    owner: User, client: Client, changes: dict[str, str], field: str, says: str
) -> None:
    from workers.jobs import registration

    for model in ("functions", "toybox"):
        registration.model(model, owner)
    client.force_login(owner)
    asked = {"question": "What?", "layer": "numeric", "unit": "7", **FUNCTION, **changes}
    asked.pop("system_kind")
    answer = client.post("/api/v1/runs", json.dumps(asked), content_type="application/json")
    assert answer.status_code == 422, answer.content
    assert says in str(answer.json())
    assert field in str(answer.json())
    assert not Run.objects.exists()


# --- programs ---------------------------------------------------------------------------------------------


def run_program(sandbox: Any, program: str, layer: str = "numeric", unit: int = 3) -> Any:
    context = Laboratory(LabSettings(Path("unused"))).function_context(SystemSpec("function", "functions", layer, unit))
    result = sandbox.run(program, context.calls("script"), context.facts, bounds=Bounds(seconds=10))
    return result, context.tools


@pytest.mark.parametrize(
    ("program", "says"),
    [
        ("system.call('abc')", "inputs are str"),
        ("system.call([1] * 10**6)", "1,000,000 inputs"),
        ("system.call(['1'])", "Input 0"),
        ("system.call([float('nan')])", "Input 0"),
        ("tools.log_experiment([1], [2, 3])", "1 inputs and 2 outputs"),
        ("tools.log_experiment(1, 2)", "must be lists"),
        ("tools.log_experiment([1], [2])", "was not called with it"),
        ("tools.log_experiment([1], [system.call([1])[0] + 1])", "is not what the function gave"),
        ("for _ in range(3):\n    tools.log_experiment([1] * 999, system.call([1] * 999))", "2,000 at most"),
        ("system.neuron([])", "has no attribute 'neuron'"),
        ("tools.text2image(['a ball'])", "has no attribute 'text2image'"),
        ("system.subject", "has no attribute 'subject'"),
        ("import workers.functions.numeric", "No module named"),
    ],
)
def test_what_a_program_does_wrong_is_told(sandbox: Any, program: str, says: str) -> None:
    result, _ = run_program(sandbox, program)
    assert result.status in ("tool_error", "program_error")
    assert says in result.error


def test_a_program_that_prints_pairs_needs_no_log(sandbox: Any) -> None:
    result, tools = run_program(
        sandbox, "for pair in zip(['a', 'b'], system.call(['a', 'b'])): print(*pair)", "strings", 5
    )
    assert (result.status, result.output) == ("ok", "a a\nb b\n")
    assert (tools.entries, tools.measured) == ([], 2)


def test_what_is_logged_comes_back(sandbox: Any) -> None:
    program = "tools.log_experiment([1, 2.5], system.call([1, 2.5]), 'two')\nprint(tools.experiment_log[0]['text'])"
    result, tools = run_program(sandbox, program)
    assert result.output == "two\n"
    assert [sample.input for sample in tools.entries[0].samples] == ["1", "2.5"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(1, "1"), (1.0, "1"), (2.5, "2.5"), (float("nan"), '"nan"'), (1e300, "1e+300"), ("é", '"é"'), (None, '"None"')],
)
def test_values_are_written_as_json(value: Any, text: str) -> None:
    assert to_json(value) == text
    json.loads(to_json(value))


def test_a_function_sees_no_image() -> None:
    lab = Laboratory(LabSettings(Path("unused")))
    with pytest.raises(RequestError, match="takes no images"):
        lab.model("functions").maps([], ["numeric"])
    subject = lab.subject(SystemSpec("function", "functions", "numeric", 3))
    with pytest.raises(RequestError, match="takes no images"):
        subject.respond([])
    assert (list(subject.exemplars()), subject.ordinary()) == ([], None)


# --- replies ----------------------------------------------------------------------------------------------

ANSWER = "[DESCRIPTION]: It doubles.\n[DOMAIN]: all numbers\n[CODE]:\n```python\ndef f(x):\n    return 2 * x\n```"


def test_code_beside_a_domain_is_an_answer() -> None:
    found = parse(ANSWER)
    assert found.code is None
    assert found.conclusion
    assert (found.conclusion.domain, found.conclusion.code) == ("all numbers", "def f(x):\n    return 2 * x")
    assert set(found.tags) == {"DESCRIPTION", "DOMAIN", "CODE"}


def test_a_reply_that_describes_and_experiments_runs_the_experiment_first() -> None:
    program = "[CODE]:\n```python\nprint(system.call([1]))\n```"
    for text in (f"{ANSWER}\n\n{program}", f"{program}\n\n{ANSWER}"):
        found = parse(text)
        assert found.code is not None
        assert "system.call" in found.code
        assert found.conclusion
        assert found.conclusion.code == ""


def test_code_without_a_domain_is_a_program() -> None:
    found = parse(ANSWER.replace("[DOMAIN]: all numbers\n", ""))
    assert found.code == "def f(x):\n    return 2 * x"


def test_usage_of_the_baseline_costs_nothing() -> None:
    backbone = Laboratory(LabSettings(Path("unused"))).backbone("scripted-functions")
    said: list[Any] = []
    reply = backbone.reply([], lambda key: None, said.append, 0)
    assert reply.usage.cost == Usage().cost
    assert said == [reply.text]
    assert parse(reply.text).code
