"""Causal checks as jobs: measured on the probe images of toybox, kept, stopped, and refused where nothing follows."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User

from experiments.core.actors import Actor
from experiments.core.compatibility import explain_unchangeable
from experiments.core.errors import StateConflict
from experiments.models import CausalCheck, Dataset, Job, JobStatus, Layer
from experiments.units import actions
from workers.errors import Cancelled
from workers.jobs import long, registration
from workers.record.causal import CausalQuestion, read_causal_report

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("laboratory", "one_thread", "redis_url"),
]


@pytest.fixture
def layer(laboratory: None) -> Layer:
    Dataset.objects.create(key="toybox", label="Toybox", available=True, images=500)
    return registration.model("toybox", None).layers.get(name="layer4")


def ask(owner: User, layer: Layer, *units: int, **asked: Any) -> CausalCheck:
    return actions.ask_for_causal_check(Actor(owner), layer, "toybox", CausalQuestion(units, **asked))


def work(check: CausalCheck) -> Job:
    assert check.job is not None
    long.work(check.job.pk)
    check.job.refresh_from_db()
    check.refresh_from_db()
    return check.job


def test_one_is_measured_on_probe_images_and_kept(owner: User, layer: Layer) -> None:
    check = ask(owner, layer, 3, 5)
    assert (check.status, check.job.kind, check.job.options) == ("queued", "causal", {"row": check.pk})
    job = work(check)
    assert (job.status, check.status) == (JobStatus.DONE, "done"), job.result
    assert job.result == "toybox / layer4 / unit 3, 5 ablated: measured on 20 images."
    report = read_causal_report(check.result)
    assert (report.measure, report.everywhere.images, len(report.draws)) == ("binary_kl", 20, 5)
    assert report.everywhere.tested > 0


def test_the_same_question_is_measured_once(owner: User, layer: Layer) -> None:
    check = ask(owner, layer, 3)
    assert ask(owner, layer, 3).job == check.job
    work(check)
    assert ask(owner, layer, 3).pk == check.pk
    assert Job.objects.count() == 1
    others = [ask(owner, layer, 3, **asked) for asked in ({"factor": 2.0}, {"reference": "mean"}, {"seed": 1})]
    assert len({check.pk, *(each.pk for each in others)}) == 4


def test_one_that_was_stopped_begins_anew(owner: User, layer: Layer) -> None:
    check = ask(owner, layer, 3)
    assert check.job is not None

    def stop(what: str, done: int, total: int) -> None:
        if what.startswith("Running"):
            raise Cancelled

    status, _ = long.outcome(check.job, stop)
    Job.objects.filter(pk=check.job.pk).update(status=status)
    check.refresh_from_db()
    assert (check.status, check.measured, check.result) == ("stopped", None, {})
    again = ask(owner, layer, 3)
    assert (again.pk, again.job != check.job) == (check.pk, True)
    assert work(again).status == JobStatus.DONE


def test_a_layer_that_nothing_follows_from_is_remembered(owner: User, layer: Layer, monkeypatch: Any) -> None:
    from workers.toybox.model import ToyboxModel

    monkeypatch.delattr(ToyboxModel, "outputs")
    check = ask(owner, layer, 3)
    assert work(check).status == JobStatus.FAILED
    assert "has no output of its own that follows from layer4" in explain_unchangeable(layer)
    with pytest.raises(StateConflict, match="layer4 of toybox cannot be checked"):
        ask(owner, layer, 4)
    layer.model.revision = "other weights"
    layer.model.save()
    assert explain_unchangeable(layer) == ""


def test_one_whose_row_is_gone_says_so(owner: User, layer: Layer) -> None:
    job = Job.objects.create(kind="causal", subject="gone", options={"row": 99})
    long.work(job.pk)
    job.refresh_from_db()
    assert (job.status, "causal check was deleted" in job.result) == (JobStatus.FAILED, True)
