"""`manage.py evaluate`: the whole path in the foreground on the real laboratory; stopped, it goes on where it was."""

from __future__ import annotations

import json
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from experiments.models import (
    Evaluation,
    EvaluationItem,
    ItemStatus,
    Job,
    JobStatus,
    Label,
    LabelCheck,
    Notification,
    Run,
    Unit,
)
from workers.errors import Cancelled
from workers.jobs import catalogue, foreground
from workers.jobs.label_checks.check import run_check
from workers.protocols import no_progress

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("on_toybox")]
MODEL = "synthetic:toybox-eyes"
TEXTS = ("balls", "cubes", "various things")


@pytest.fixture
def imported() -> list[Unit]:
    """Three units with a label each, of another method's file; the last says nothing that can be tested."""
    layer = catalogue.look_at_model(MODEL).layers.get(name="mono")
    units = [Unit.objects.create(layer=layer, number=number) for number in range(3)]
    for unit, text in zip(units, TEXTS, strict=True):
        Label.objects.create(text=text, source="milan").units.add(unit)
    return units


def evaluate(*options: str) -> dict[str, Any]:
    out = StringIO()
    call_command("evaluate", *options, "--json", stdout=out, stderr=StringIO())
    found: dict[str, Any] = json.loads(out.getvalue().splitlines()[-1])
    return found


def test_imported_labels_are_tested_and_one_that_says_nothing_counts_0(imported: list[Unit]) -> None:
    told = evaluate("labels", "--source", "import:milan", "--model", MODEL)
    assert told["items"] == {"done": 3, "of": 3, "failed": 0}
    median = told["baselines"]["import:milan"]["pearson"]
    assert median["n"] == 3  # the label that cannot be tested counts 0
    assert median["value"] > 0.7
    assert (median["low"], median["high"]) == (None, None)  # three values bound no median
    last = EvaluationItem.objects.get(unit=imported[-1])
    assert "various things" in last.reason
    assert last.scores["pearson"] is None
    assert Job.objects.get().status == JobStatus.DONE


def test_a_network_of_photographs_is_given_no_toys_unasked() -> None:
    with pytest.raises(CommandError, match=r"Name --toolset, one of .*diffusion.* and --dataset"):
        evaluate("units", "--model", "hf:lab/net", "--units", "2")
    assert not Evaluation.objects.exists()


def test_a_budget_that_is_used_up_is_unfinished_and_no_smaller_denominator(imported: list[Unit]) -> None:
    told = evaluate("labels", "--source", "import:milan", "--model", MODEL, "--seconds", "0.001")
    assert told["items"] == {"done": 0, "of": 3, "failed": 0}
    assert "Unfinished" in Job.objects.get().result
    Evaluation.objects.update(seconds_limit=None)
    checked = run_check(LabelCheck.objects.get().pk, no_progress)  # it was asked for: another worker may measure it
    assert checked is not None
    again = evaluate("--resume", str(told["evaluation"]))
    assert again["items"]["done"] == 3
    assert LabelCheck.objects.get(pk=checked.pk).measured == checked.measured  # nothing is measured twice


def test_stopped_half_way_it_keeps_what_is_done_and_goes_on(
    imported: list[Unit], monkeypatch: pytest.MonkeyPatch
) -> None:
    work = foreground.work

    def stopped(job: Job, line: Any) -> str:
        def report(what: str, done: int, total: int) -> None:
            if done == 1:
                raise Cancelled("stopped")

        return work(job, report)

    monkeypatch.setattr(foreground, "work", stopped)
    with pytest.raises(CommandError, match="--resume"):
        evaluate("labels", "--source", "import:milan", "--model", MODEL)
    monkeypatch.undo()
    counts = [EvaluationItem.objects.filter(status=status).count() for status in (ItemStatus.DONE, ItemStatus.PLANNED)]
    assert counts == [1, 2]
    assert evaluate("--resume", str(Evaluation.objects.get().pk))["items"]["done"] == 3


@pytest.mark.more
def test_of_a_worker_that_was_killed_it_is_taken_and_of_a_live_one_not(imported: list[Unit]) -> None:
    told = evaluate("labels", "--source", "import:milan", "--model", MODEL, "--seconds", "0.001")
    Evaluation.objects.update(seconds_limit=None)
    Job.objects.update(status=JobStatus.RUNNING, beat=timezone.now())
    with pytest.raises(CommandError, match="A worker is at evaluation"):
        evaluate("--resume", str(told["evaluation"]))
    Job.objects.update(beat=timezone.now() - timedelta(minutes=2))
    assert evaluate("--resume", str(told["evaluation"]))["items"]["done"] == 3


@pytest.mark.more
def test_the_agent_and_the_one_shot_labeller_on_a_unit() -> None:
    told = evaluate("units", "--units", "1", "--layers", "layer4", "--source", "agent", "one-shot", "shuffled")
    run = Run.objects.get()
    items = {item.source: item for item in EvaluationItem.objects.select_related("label_check")}
    assert items["agent"].run == run
    assert (run.status, run.options["label_check"]) == ("concluded", False)
    assert not Notification.objects.exists()  # nobody is told of each run of an evaluation
    assert items["agent"].label_check is not None
    assert items["one-shot"].label
    assert items["shuffled"].status == ItemStatus.LACKING  # one unit has no other to swap with
    assert told["pearson"]["n"] == 1
    assert told["difference"]["one-shot"]["pearson"]["n"] == 1


def test_what_makes_no_sense_is_told_in_a_sentence() -> None:
    with pytest.raises(CommandError, match="Say what to evaluate"):
        evaluate()
    with pytest.raises(CommandError, match="no evaluation 99"):
        evaluate("--resume", "99")
    with pytest.raises(CommandError, match="a source of labels"):
        evaluate("labels")
