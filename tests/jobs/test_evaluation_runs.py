"""An evaluation asks its agents by sweeps and scores what they say: on the real laboratory, with real runs."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from experiments.core import transcript
from experiments.core.actors import Actor
from experiments.core.errors import StateConflict
from experiments.evaluations import actions, lists
from experiments.models import (
    Evaluation,
    EvaluationItem,
    ItemStatus,
    Job,
    LabelCheck,
    Notification,
    Run,
    RunQueue,
    Sweep,
    SweepStatus,
)
from experiments.runs.actions import add_run
from experiments.runs.drafts import draft_run
from experiments.sweeps import actions as sweep_actions
from experiments.sweeps import of_evaluation
from workers.errors import Cancelled
from workers.jobs import claims, round_threads, rounds
from workers.jobs.evaluations.agent_runs import ask_agent
from workers.jobs.evaluations.engine import evaluate, find_evaluation_type
from workers.protocols import no_progress
from workers.record.events import Paused
from workers.record.systems import SystemSpec

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("on_toybox", "no_redis")]
MODEL = "synthetic:toybox-eyes"
SOURCES = ["agent", "shuffled"]


def start(owner: User, kind: str = "synthetic", units: int = 2, **fields: Any) -> Evaluation:
    options: Any = {"units": units, "model": MODEL, "sources": SOURCES}
    row = Evaluation(kind=kind, name="Two neurons", backbone="scripted", options=options, **fields)
    return actions.begin(Actor(owner), row, enqueue=False)


def go_on(evaluation: Evaluation, progress: Any = no_progress) -> str:
    return evaluate(Job.objects.get(pk=evaluation.job_id or 0), progress)


def plan(evaluation: Evaluation) -> Any:
    """As the engine does it, without a run."""
    evaluation_type = find_evaluation_type(evaluation)
    for position, item in enumerate(evaluation_type.plan(evaluation, no_progress), 1):
        item.evaluation, item.position = evaluation, position
        item.save()
    Evaluation.objects.filter(pk=evaluation.pk).update(planned=True)
    ask_agent(evaluation, evaluation_type, no_progress)
    return evaluation_type


def test_each_item_of_the_agent_has_a_run_of_a_sweep_that_is_not_begun(owner: User) -> None:
    evaluation = start(owner)
    evaluation_type = plan(evaluation)
    sweep = Sweep.objects.get()
    assert (sweep.evaluation, sweep.owner, sweep.planned, sweep.created_runs) == (evaluation, owner, 2, 2)
    assert (sweep.status, RunQueue.objects.get(sweep=sweep).enabled) == (SweepStatus.PAUSED, False)
    runs = list(Run.objects.order_by("sweep_place"))
    assert [(run.toolset, run.options["dataset"], run.options["label_check"]) for run in runs] == [
        ("toybox", "toybox", False)
    ] * 2
    items = list(EvaluationItem.objects.filter(source="agent").select_related("run", "unit"))
    assert [item.run.unit for item in items if item.run] == [item.unit.number for item in items if item.unit]
    assert not EvaluationItem.objects.filter(source="shuffled", run__isnull=False).exists()

    ask_agent(evaluation, evaluation_type, no_progress)
    assert (Sweep.objects.count(), Run.objects.count()) == (1, 2)  # done again, it asks for nothing twice
    runs[0].delete()
    ask_agent(evaluation, evaluation_type, no_progress)
    assert not EvaluationItem.objects.filter(source="agent", run=None).exists()
    assert Sweep.objects.order_by("-pk")[0].planned == 1  # whose run was deleted is asked again


def test_toolsets_of_an_ablation_are_variants_of_one_sweep(owner: User) -> None:
    evaluation = start(owner, "ablation")
    plan(evaluation)
    sweep = Sweep.objects.get()
    assert (sweep.planned, len({variant["toolset"] for variant in sweep.variants})) == (10, 5)
    for item in EvaluationItem.objects.select_related("run", "unit"):
        assert item.run is not None
        assert item.unit is not None
        assert (item.run.toolset, item.run.unit) == (item.options["toolset"], item.unit.number)


def test_the_evaluation_alone_steers_its_sweep(owner: User, as_owner: Client) -> None:
    evaluation = start(owner)
    plan(evaluation)
    sweep = Sweep.objects.get()
    of_evaluation.resume_runs(evaluation, by_workers=True)
    for act in (sweep_actions.pause, sweep_actions.stop, sweep_actions.resume, sweep_actions.retry):
        with pytest.raises(StateConflict, match=f"asks for evaluation {evaluation.pk}"):
            act(Actor(owner), sweep.pk)
    page = as_owner.get(sweep.get_absolute_url()).content.decode()
    assert f'href="{evaluation.get_absolute_url()}"' in page
    assert "pause-sweep" not in page
    told = as_owner.get(f"/api/v1/sweeps?evaluation={evaluation.pk}").json()["items"]
    assert [(each["id"], each["evaluation"]) for each in told] == [(sweep.pk, evaluation.pk)]
    assert f'href="{sweep.get_absolute_url()}"' in as_owner.get(evaluation.get_absolute_url()).content.decode()

    Job.objects.update(status="running")
    actions.stop(Actor(owner), evaluation)
    sweep.refresh_from_db()
    assert (sweep.status, RunQueue.objects.get(sweep=sweep).enabled) == (SweepStatus.PAUSED, False)
    Job.objects.filter(pk=evaluation.job_id).update(status="stopped")
    actions.delete(Actor(owner), Evaluation.objects.get())
    sweep.refresh_from_db()
    assert (sweep.status, sweep.evaluation) == (SweepStatus.STOPPED, None)
    assert Job.objects.get().kind == "sweep"  # a worker stops its runs


@pytest.mark.more
def test_what_the_agent_says_is_checked_and_scored_and_the_sweep_is_done(owner: User) -> None:
    evaluation = start(owner)
    assert go_on(evaluation) == "Done: 4 of 4 items."
    assert Sweep.objects.get().status == SweepStatus.DONE
    for item in EvaluationItem.objects.filter(source="agent").select_related("run", "label_check"):
        assert item.run is not None
        assert item.label == " OR ".join(item.run.labels)
        assert item.label_check is not None
        assert item.run.label_check == item.label_check
        assert item.scores["pearson"] == item.label_check.pearson
        assert item.scores["right"] is not None
        assert item.seconds >= item.run.seconds + item.label_check.seconds
    assert not Notification.objects.exists()  # the evaluation tells how they went, once
    first = Evaluation.objects.get()
    assert {figure["key"]: figure["n"] for figure in first.result["figures"]}["pearson"] == 2

    measured = list(LabelCheck.objects.order_by("pk").values_list("pk", "measured"))
    Job.objects.update(status="done")
    actions.score_again(Actor(owner), first)
    assert set(first.items.values_list("status", flat=True)) == {ItemStatus.PLANNED}
    assert go_on(evaluation) == "Done: 4 of 4 items."
    assert Evaluation.objects.get().result == first.result
    assert (Run.objects.count(), Sweep.objects.count()) == (2, 1)  # nothing is played or measured again
    assert list(LabelCheck.objects.order_by("pk").values_list("pk", "measured")) == measured


@pytest.mark.more
def test_workers_play_while_it_scores_and_it_plays_nothing_itself(owner: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another worker plays a round whenever the evaluation has to wait, and measures a check now and then."""
    monkeypatch.setattr(round_threads, "players", [object()])
    evaluation, waited = start(owner, seconds_limit=0.2), 0

    def play(what: str, done: int, total: int) -> None:
        nonlocal waited
        if what.startswith("Waiting for runs"):
            waited += 1
            if run := claims.Claimer(tuple).claim():
                rounds.execute_claimed(run)

    assert "used up" in go_on(evaluation, play)
    Evaluation.objects.update(seconds_limit=None)  # the sweep forgets the limit too
    assert go_on(evaluation, play) == "Done: 4 of 4 items."
    assert waited > 2
    assert Run.objects.exclude(status="concluded").count() == 0


@pytest.mark.more
def test_a_budget_holds_its_sweep_and_a_larger_one_goes_on(owner: User) -> None:
    evaluation = start(owner, seconds_limit=0.2)
    assert "0 s of work are used up. Unfinished" in go_on(evaluation)
    sweep = Sweep.objects.get()
    assert (sweep.status, "used up" in sweep.reason) == (SweepStatus.PAUSED, True)
    assert Run.objects.exclude(status="concluded").exists()
    Evaluation.objects.update(seconds_limit=None)
    assert go_on(evaluation) == "Done: 4 of 4 items."
    assert Sweep.objects.get().status == SweepStatus.DONE


@pytest.mark.more
def test_stopped_it_holds_its_sweep_and_a_run_that_was_paused_goes_on_with_it(owner: User) -> None:
    evaluation = start(owner)

    def stop(what: str, done: int, total: int) -> None:
        if "round 2" in what:
            raise Cancelled("Somebody stopped it.")

    with pytest.raises(Cancelled):
        go_on(evaluation, stop)
    assert Sweep.objects.get().status == SweepStatus.PAUSED
    run = Run.objects.get(rounds=1)
    transcript.append(run.pk, "paused", Paused(1, "Ada"))
    run.refresh_from_db()
    assert run.status == "paused"
    assert go_on(evaluation) == "Done: 4 of 4 items."


def test_an_item_whose_run_stands_still_fails_and_is_left_to_go_on_with(owner: User) -> None:
    evaluation = start(owner, units=1)
    plan(evaluation)
    Run.objects.update(status="waiting", reason="No key is known.")
    EvaluationItem.objects.filter(source="agent").update(status="failed", reason="Run 1 waits.")
    EvaluationItem.objects.filter(source="shuffled").update(status="lacking")
    row = lists.with_progress(Evaluation.objects.all()).get()
    assert (row.suspended_items, lists.state_of(row).left) == (1, True)
    Job.objects.update(status="done")
    actions.resume(Actor(owner), Evaluation.objects.get())


@pytest.mark.more
def test_runs_that_were_asked_before_there_were_sweeps_are_taken_up(owner: User) -> None:
    evaluation = start(owner, units=1)
    evaluation_type = find_evaluation_type(evaluation)
    for position, item in enumerate(evaluation_type.plan(evaluation, no_progress), 1):
        item.evaluation, item.position = evaluation, position
        if item.source == "agent" and item.unit:
            spec = SystemSpec("synthetic", MODEL, item.unit.layer.name, item.unit.number, {"dataset": "toybox"})
            item.run = add_run(Actor(owner), draft_run(spec, options={"label_check": False}), enqueue=False)
        item.save()
    Evaluation.objects.update(planned=True)
    assert go_on(evaluation) == "Done: 2 of 2 items."
    assert not Sweep.objects.exists()
    assert Run.objects.get().status == "concluded"
    assert LabelCheck.objects.get().status == "done"
    assert EvaluationItem.objects.get(source="agent").status == ItemStatus.DONE
