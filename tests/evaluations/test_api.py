"""The same for scripts: evaluations and checks, what they are refused and what stays hidden."""

from __future__ import annotations

from random import Random

import pytest
from django.contrib.auth.models import User

from experiments.label_checks.evidence import HIDDEN_TRUTH
from experiments.models import Backbone, CheckStatus, Evaluation, EvaluationKind, LabelCheck, ReviewQueue, Run
from tests.support import trials
from tests.support.api_world import Script
from tests.support.builders import make_run
from tests.support.evaluations import work
from tests.support.people import member
from tests.support.seeding import evaluations
from workers.record.evaluations import CAVEAT

pytestmark = pytest.mark.django_db


@pytest.fixture
def script(owner: User) -> Script:
    return Script(owner)


def test_one_is_started_stopped_resumed_and_deleted(script: Script, scripted: Backbone, redis_url: str) -> None:
    asked = {"kind": "synthetic", "backbone": "scripted", "units": 5, "cost": 1.5}
    made = script.post("/evaluations", asked, **{"Idempotency-Key": "one"})
    assert made.status_code == 201, made.content
    found = made.json()
    assert (found["status"], found["unfinished"], found["cost_limit"]) == ("Queued", True, 1.5)
    again = script.post("/evaluations", asked, **{"Idempotency-Key": "one"}).json()
    assert again["id"] == found["id"]
    address = f"/evaluations/{found['id']}"
    assert made["Location"].endswith(address)
    assert script.post(f"{address}/stop").json()["status"] == "Unfinished"
    assert script.post(f"{address}/stop").status_code == 409
    assert script.post(f"{address}/resume", {"cost": 3}).json()["cost_limit"] == 3
    assert script.send("DELETE", address).status_code == 409
    script.post(f"{address}/stop")
    assert script.send("DELETE", address).status_code == 204
    assert not Evaluation.objects.exists()


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"kind": "synthetic"}, "backbone"),
        ({"kind": "everything"}, "kind"),
        ({"kind": "units", "backbone": "scripted", "model": "own"}, "model"),
        ({"kind": "synthetic", "backbone": "scripted", "units": 0}, "units"),
        ({"kind": "labels"}, "source"),
        ({"kind": "spurious", "backbone": "scripted", "latents": 1}, "latents"),
        ({"kind": "spurious", "backbone": "scripted", "latents": 100_000}, "latents"),
    ],
)
def test_what_makes_no_sense_is_refused_by_field(script: Script, scripted: Backbone, body: dict, field: str) -> None:
    refused = script.post("/evaluations", body)
    assert refused.status_code == 422, refused.content
    assert [each["field"] for each in refused.json()["errors"]] == [field]


def test_latents_count_where_they_are_asked_for(script: Script, scripted: Backbone, redis_url: str) -> None:
    for body, kept, name in (
        ({"kind": "spurious", "latents": 64, "units": 5}, 64, "5 of 64 latents of toybox by scripted"),
        ({"kind": "spurious", "latents": 0, "units": 5}, None, "5 units of toybox by scripted"),
        ({"kind": "synthetic", "latents": 64, "units": 5}, None, "5 fresh synthetic neurons by scripted"),
    ):
        made = script.post("/evaluations", {**body, "backbone": "scripted"})
        assert made.status_code == 201, made.content
        row = Evaluation.objects.get(pk=made.json()["id"])
        assert (row.options.get("latents"), row.name) == (kept, name)


def test_a_result_says_how_much_of_it_is_done(script: Script, evaluation: Evaluation) -> None:
    found = script.get(f"/evaluations/{evaluation.pk}").json()
    assert found["caveat"] == CAVEAT
    assert (found["evaluation"]["done_items"], found["evaluation"]["all_items"]) == (2, 6)
    assert found["evaluation"]["unfinished"]
    assert [figure["label"] for figure in found["figures"]] == ["mono", "or", "conditional"]
    items = script.get(f"/evaluations/{evaluation.pk}/items?limit=4").json()
    assert [item["position"] for item in items["items"]] == [1, 2, 3, 4]
    rest = script.get(f"/evaluations/{evaluation.pk}/items?limit=4&cursor={items['next']}").json()
    assert [item["status"] for item in rest["items"]] == ["lacking", "planned"]
    assert script.get("/evaluations?kind=bias").json()["items"] == []


def test_two_are_compared(script: Script, evaluation: Evaluation, every_kind: list[Evaluation]) -> None:
    other = next(each for each in every_kind if each.kind == EvaluationKind.SYNTHETIC)
    found = script.get(f"/evaluations/compare?a={evaluation.pk}&b={other.pk}").json()
    assert {pair["label"] for pair in found["figures"]} == {"mono", "or", "conditional"}
    assert len(found["unfinished"]) == 4
    bias = next(each for each in every_kind if each.kind == EvaluationKind.BIAS)
    assert script.get(f"/evaluations/compare?a={evaluation.pk}&b={bias.pk}").status_code == 422


def test_one_whose_job_is_gone_is_told_all_the_same(script: Script, evaluation: Evaluation) -> None:
    evaluation.job.delete()
    (found,) = script.get("/evaluations").json()["items"]
    assert (found["said"], found["progress"], found["status"]) == ("", None, "Unfinished")


def test_another_one_is_left_alone(evaluation: Evaluation) -> None:
    other = Script(member("other", "RESEARCHER"))
    work(evaluation, "running")
    assert other.post(f"/evaluations/{evaluation.pk}/stop").status_code == 403


# --- checks ---


def test_a_check_is_asked_for_and_read(script: Script, owner: User, redis_url: str) -> None:
    unit = trials.unit(2)
    label = trials.label(unit, "red balls", "person")
    asked = script.post("/checks", {"label": label.pk})
    assert asked.status_code == 202, asked.content
    assert (asked.json()["text"], asked.json()["status"], asked.json()["unit"]) == ("red balls", "queued", 2)
    same = script.post("/checks", {"unit": unit.pk, "text": "red  balls"}).json()
    assert same["id"] == asked.json()["id"]
    assert script.get("/checks?status=queued&unit=2").json()["items"][0]["id"] == same["id"]
    assert script.get("/checks?unit=3").json()["items"] == []
    assert script.post("/checks", {}).status_code == 422
    run = make_run(owner)
    assert script.post("/checks", {"run": run.pk}).status_code == 409


def test_every_image_comes_where_it_is_asked_for(script: Script, done: LabelCheck) -> None:
    found = script.get(f"/checks/{done.pk}").json()
    assert found["natural"]["activations"] == []
    assert found["natural"]["pearson"]["value"] == pytest.approx(done.pearson)
    assert found["caveat"] == CAVEAT
    full = script.get(f"/checks/{done.pk}?full=true").json()
    assert len(full["natural"]["activations"]) == full["natural"]["images"]


def test_the_truth_stays_hidden_from_who_is_to_judge_it(owner: User, script: Script) -> None:
    unit = trials.unit(1, trials.layer("concept", ("cone", "ball")))
    check = evaluations.make_check(unit, "round things", CheckStatus.DONE, Random(0))
    place = {"model": unit.layer.model.name, "layer": unit.layer.name, "unit": 1}
    run = make_run(owner, system_kind="synthetic", **place, status="concluded", label_check=check)
    row = evaluations.make_evaluation(owner, EvaluationKind.SYNTHETIC, [check], [run], Random(0))
    ReviewQueue.objects.create(name="blind", owner=owner, blind=True).items.create(run=run, position=1)
    judge = Script(member("judge", "REVIEWER"))
    hidden, known = (
        judge.get(f"/checks/{check.pk}").json(),
        Script(member("viewer", "VIEWER")).get(f"/checks/{check.pk}"),
    )
    assert (hidden["model"], hidden["natural"]["ceiling"]["what"]) == (None, HIDDEN_TRUTH)
    assert known.json()["natural"]["ceiling"]["what"] == "ball"
    (item,) = judge.get(f"/evaluations/{row.pk}/items").json()["items"]
    assert item["unit"].startswith("neuron ")
    assert item["scores"] == {}
    assert Run.objects.count() == 1
