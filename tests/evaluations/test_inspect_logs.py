"""An evaluation as a log of Inspect: a sample an item, figures with their intervals, nothing that is hidden."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.test import Client
from inspect_ai.log import EvalLog, read_eval_log

from experiments.exchange.safe_zip import ExchangeError
from experiments.models import Evaluation, EvaluationItem, Export, Image, ItemStatus, Unit
from tests.support.api_world import KEY
from tests.support.blind_runs import LAYER, NAME, NUMBER, TOLD, blind_run, catalogue, queued
from tests.support.bundles import brought, exported
from tests.support.people import member
from workers.record.decoding import encode
from workers.record.evaluations import EvaluationResult, Figure

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis_url")]


def log_of(owner: User, evaluation: Evaluation, folder: Path) -> tuple[EvalLog, bytes]:
    job, data = exported(owner, "evaluations", "eval", f"evaluation={evaluation.pk}")
    assert job.status == "done", job.result
    path = folder / "log.eval"
    path.write_bytes(data)
    return read_eval_log(str(path), resolve_attachments=True), data


def test_items_are_samples_and_figures_metrics(owner: User, evaluation: Evaluation, tmp_path: Path) -> None:
    figures = (
        Figure("a.right", "Right", 0.5, 0.25, 0.75, 12, 0.8),
        Figure("b", "Alone", 2.0),
        Figure("c", "None", None),
    )
    evaluation.result = encode(EvaluationResult(figures))
    evaluation.save()
    log, _ = log_of(owner, evaluation, tmp_path)
    items = list(evaluation.items.order_by("position"))
    assert [each.id for each in log.samples or ()] == [item.position for item in items]
    assert (log.eval.task, log.eval.task_display_name, log.status) == ("synthetic", evaluation.name, "cancelled")
    assert log.eval.config.cost_limit == 1.0
    for sample, item in zip(log.samples or (), items, strict=True):
        said = sample.scores or {}
        known = {name: value for name, value in item.scores.items() if value is not None}
        assert {name: said[name].value for name in known} == known
        assert (said["label"].answer if item.label else None) == (item.label or None)
        assert bool(sample.error) == (item.status == ItemStatus.FAILED)
        assert sample.metadata["source"] == item.source
    assert log.results is not None
    found = {each.name: {name: metric.value for name, metric in each.metrics.items()} for each in log.results.scores}
    assert found == {"a.right": {"value": 0.5, "low": 0.25, "high": 0.75}, "b": {"value": 2.0}}
    assert log.results.scores[0].metadata == {"label": "Right", "n": 12, "goal": 0.8, "note": ""}


def test_a_log_is_of_one_evaluation(as_owner: Client, every_kind: list[Evaluation]) -> None:
    asked = {"what": "evaluations", "format": "eval"}
    answer = as_owner.post("/exports/make/", {**asked, "query": ""})
    assert answer.status_code == 400
    assert "An Inspect log holds one evaluation" in answer.content.decode()
    as_owner.post("/exports/make/", {**asked, "query": f"evaluation={every_kind[0].pk}"})
    assert Export.objects.get().format == "eval"


def test_every_kind_is_read(owner: User, every_kind: list[Evaluation], tmp_path: Path) -> None:
    for evaluation in every_kind:
        log, _ = log_of(owner, evaluation, tmp_path)
        assert len(log.samples or ()) == evaluation.items.count()


def test_it_is_not_taken_for_runs(owner: User, evaluation: Evaluation, tmp_path: Path) -> None:
    log_of(owner, evaluation, tmp_path)
    with pytest.raises(ExchangeError, match="Logs of evaluations are only for viewing"):
        brought(tmp_path / "log.eval", owner)


def test_what_a_reviewer_may_not_know_is_in_no_sample(owner: User, tmp_path: Path) -> None:
    judge, run = member("judge", "REVIEWER"), blind_run(owner)
    Image.objects.create(key=KEY, width=1, height=1)
    default_storage.save(Image.path_of(KEY), ContentFile(b"an image"))
    layer = catalogue()
    unit = Unit.objects.create(layer=layer, number=NUMBER)
    evaluation = Evaluation.objects.create(kind="synthetic", name="Neurons", owner=owner, backbone="scripted")
    EvaluationItem.objects.create(
        evaluation=evaluation,
        position=1,
        group=LAYER,
        source="agent",
        unit=unit,
        unit_name=NAME,
        run=run,
        status=ItemStatus.DONE,
        label="red balls",
        scores={"missing": NAME},
    )
    log, _ = log_of(judge, evaluation, tmp_path)
    assert TOLD in log.model_dump_json(), "those who judge nothing read it"
    (sample,) = log.samples or ()
    assert len(sample.messages) > 2
    queued(run, judge, blind=True)
    log, _ = log_of(judge, evaluation, tmp_path)
    assert TOLD not in log.model_dump_json()
    (sample,) = log.samples or ()
    assert len(sample.messages) == 2, "its label, without the transcript"
