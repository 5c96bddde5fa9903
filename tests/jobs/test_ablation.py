"""Runs that may ablate their unit: what their agent is told, what its programs get, and where that is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.contrib.auth.models import User

from experiments.models import Run
from tests.support.builders import make_run
from tests.support.tiny_run import PROGRAM, Seeing, here, install, play, tiny_run
from workers import registry
from workers.jobs import catalogue
from workers.jobs.experiment import run_program
from workers.record.systems import SystemSpec

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("on_toybox", "no_redis")]
CONCLUSION = "[DESCRIPTION]: It responds to balls.\n[LABEL]: balls"
ABLATES = """
import json
images = tools.text2image(["a red ball on grass", "a blue cube on grass"])
print(json.dumps(system.ablate(images), allow_nan=False))
"""


@pytest.fixture(autouse=True)
def written(monkeypatch: pytest.MonkeyPatch) -> None:
    tiny = {"tiny": ("Tiny agent", "tests.support.tiny_run.load_backbone")}
    monkeypatch.setattr(registry, "BACKBONES", registry.BACKBONES | tiny)


def begin(owner: User, ablation: bool, layer: str = "layer4", kind: str = "unit") -> tuple[Run, Seeing]:
    catalogue.look_at_model("toybox")
    here["backbone"] = backbone = Seeing(PROGRAM.format(ABLATES), CONCLUSION)
    what = {"system_kind": kind, "model": "toybox", "layer": layer, "unit": 12, "toolset": "toybox"}
    options = {"label_check": False, **({"ablation": True} if ablation else {})}
    return make_run(owner, **what, backbone="tiny", options=options), backbone


def test_a_run_that_asks_for_it_is_told_and_its_log_shows_what_was_printed(owner: User) -> None:
    run, backbone = begin(owner, ablation=True)
    run = play(run)
    (result,) = (each.content for each in run.events.filter(kind="result"))
    assert (run.status, result.status, result.error) == ("concluded", "ok", "")
    told = json.loads(result.output)
    assert len(told) == 2
    assert told[0].keys() == {"activation", "falls", "rises", "same_answer", "divergence"}
    assert "system.ablate" in [call.name for call in result.calls]
    assert "### system.ablate(" in backbone.heard[0].text
    assert result.output.strip() in str(backbone.heard)


def test_a_run_that_does_not_ask_is_not_told_and_the_call_says_how(owner: User) -> None:
    run, backbone = begin(owner, ablation=False)
    run = play(run)
    (result,) = (each.content for each in run.events.filter(kind="result"))
    assert result.status == "tool_error"
    assert "system.ablate is not part of this run" in result.error
    assert "ablate" not in backbone.heard[0].text


def test_a_class_fails_before_anything_is_paid_for(owner: User) -> None:
    run, backbone = begin(owner, ablation=True, layer="logits", kind="logit")
    run = play(run)
    assert run.status == "failed"
    assert "logits of toybox is the output itself" in run.reason
    assert "Or ask without ablation." in run.reason
    assert not backbone.heard


def test_so_does_a_model_without_an_output(
    owner: User, monkeypatch: pytest.MonkeyPatch, settings, tmp_path: Path
) -> None:
    install(monkeypatch, settings, tmp_path)
    run = play(tiny_run(owner, Seeing(CONCLUSION), options={"ablation": True, "label_check": False}))
    assert run.status == "failed"
    assert "tiny has no output of its own that follows from patches" in run.reason


def test_a_program_of_a_person_may_ablate_without_an_option() -> None:
    def run(spec: SystemSpec) -> dict[str, str]:
        return run_program(ABLATES, spec, seed=0, seconds=60, toolset="toybox", progress=lambda *_: None)

    assert len(json.loads(run(SystemSpec("unit", "toybox", "layer4", 12))["output"])) == 2
    refused = run(SystemSpec("logit", "toybox", "logits", 3))
    assert refused["status"] == "tool_error"
    assert "Choose an earlier layer" in refused["error"]
