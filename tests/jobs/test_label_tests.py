"""Labels that programs test while a run goes on: in the real laboratory and sandbox, and counted over the whole run."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User

from experiments.label_checks.requests import choose_method, request_check
from experiments.models import Run
from tests.support.builders import make_run
from tests.support.synthetic_units import MODEL, unit
from tests.support.tiny_run import PROGRAM, Seeing, here, play
from workers import registry
from workers.errors import ToolMisuse
from workers.jobs import catalogue
from workers.jobs.label_checks import label_tests
from workers.jobs.label_checks.check import run_check
from workers.jobs.laboratory import laboratory
from workers.lab.imaging import image_key
from workers.lab.label_tests import LabelTestRules
from workers.lab.memory import ImagesInMemory
from workers.protocols import no_progress
from workers.record.systems import SystemSpec

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("on_toybox", "no_redis")]
SPEC = SystemSpec("synthetic", MODEL, "mono", 0)
CONCLUSION = "[DESCRIPTION]: It responds to balls.\n[LABEL]: balls"
SHOWS = """
found = tools.test_label("balls")
activations, masked_images = system.neuron(found["images"])
tools.log_experiment(activations, masked_images, found["titles"], found["summary"])
"""
SEVERAL = """
for label in ("balls", "wibbly balls", "cars"):
    try:
        print(tools.test_label(label)["r"])
    except ToolError as error:
        print(error)
"""


def score(label: str, rules: LabelTestRules) -> dict[str, Any]:
    context = laboratory().experiment_context(SPEC, ImagesInMemory(), 0, label_tests=rules)
    return context.calls("function")["tools.test_label"](label)


def begin(owner: User, *programs: str, **fields: Any) -> tuple[Run, Seeing]:
    catalogue.look_at_model(MODEL)
    here["backbone"] = backbone = Seeing(*map(PROGRAM.format, programs), CONCLUSION)
    what = {"system_kind": "synthetic", "model": MODEL, "layer": "mono", "unit": 0, "toolset": "toybox"}
    return make_run(owner, **what, backbone="tiny", options={"label_check": False}, **fields), backbone


@pytest.fixture(autouse=True)
def written(monkeypatch: pytest.MonkeyPatch) -> None:
    tiny = {"tiny": ("Tiny agent", "tests.support.tiny_run.load_backbone")}
    monkeypatch.setattr(registry, "BACKBONES", registry.BACKBONES | tiny)


def test_a_right_label_scores_near_its_check_and_a_wrong_one_does_not() -> None:
    row = request_check(unit(), "balls", choose_method(MODEL), enqueue=False)
    run_check(row.pk, no_progress)
    row.refresh_from_db()
    rules = label_tests.choose_rules(SPEC)
    right, wrong = score("balls", rules), score("cars", rules)
    assert row.pearson is not None
    assert right["r"] == pytest.approx(row.pearson, abs=0.1)
    assert wrong["r"] < 0.3
    assert 0 < right["base_rate"] < 1
    assert "Read as “balls”." in right["summary"]
    assert "2 tests are left" in right["summary"]
    assert len(right["images"]) == len(right["titles"]) == 6


def test_development_images_are_neither_exemplars_nor_held_out() -> None:
    lab = laboratory()
    development, probe = (lab.held_out(MODEL, "toybox", split) for split in ("development", "probe"))
    own, held_out = (
        {image_key(each.picture(int(at)).image) for at in each.activations("mono")[0]} for each in (development, probe)
    )
    exemplars = {image_key(each.picture.image) for each in lab.subject(SPEC).exemplars()}
    assert len(own) >= 100
    assert held_out
    assert exemplars
    assert not own & (exemplars | held_out)


def test_the_tests_of_a_run_are_counted_from_its_record(owner: User) -> None:
    run, backbone = begin(owner, SEVERAL, SHOWS, SEVERAL)
    run = play(run)
    first, second, third = (each.content for each in run.events.filter(kind="result").order_by("seq"))
    assert [call.failed for call in first.calls] == [False, True, False]
    assert "Read as “balls”. Not understood: “wibbly”." in first.output
    assert "does not count: 2 tests are left" in first.output
    assert second.status == "ok", second.error
    assert {each.origin for each in second.observations} == {"external"}
    assert "no tests are left in this run" in second.entries[0].text
    assert [call.failed for call in third.calls] == [True] * 3
    assert third.output.count("This run has tested 3 labels") == 3
    assert run.experiments.get(number=1).calls[1]["failed"] is True
    assert "### tools.test_label(" in backbone.heard[0].text


def test_a_task_that_ends_in_a_verdict_offers_no_test(owner: User) -> None:
    run, backbone = begin(owner, SHOWS, task="spurious")
    (result,) = (each.content for each in play(run).events.filter(kind="result"))
    assert result.status == "tool_error"
    assert label_tests.VERDICT in result.error
    assert "test_label" not in backbone.heard[0].text


def test_without_a_judge_of_its_own_a_run_is_told_what_to_do_instead() -> None:
    catalogue.look_at_model(MODEL)
    rules = label_tests.choose_rules(SystemSpec("unit", "resnet152", "layer4", 0))
    assert rules.judge == ""
    with pytest.raises(ToolMisuse, match=r"language model or people.* Draw images with tools"):
        score("balls", rules)
