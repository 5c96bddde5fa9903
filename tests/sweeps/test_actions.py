"""Sweeps are started, laid out, paused, resumed, stopped, tried again; what is refused; budgets hold."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.utils import timezone

from experiments.core import sweep_totals, transcript
from experiments.core.actors import Actor
from experiments.core.errors import InvalidFields, InvalidInput, StateConflict
from experiments.models import AuditEntry, Job, Layer, Notification, Run, RunQueue, Sweep, SweepPriority
from experiments.sweeps import actions, create_runs
from tests.support import builders
from tests.support.people import member
from tests.support.queued import list_queued
from tests.support.sweeps import create_sweep_runs, fill_in, start
from workers.record.events import Ended

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def rung(redis_url: str) -> str:
    return redis_url


def end(run: Run, kind: str = "concluded", **usage: Any) -> None:
    """Play it to its end: one reply."""
    transcript.append(run.pk, "started", builders.started())
    transcript.append(run.pk, "reply", builders.replied(**usage), seconds=3.0)
    transcript.append(run.pk, kind, Ended("No room." if kind == "failed" else ""))


def test_a_sweep_has_a_flow_and_a_job_that_lays_out_its_runs(owner: User, layers: list[Layer]) -> None:
    sweep = start(owner, layer=["layer3", "layer4"], question="Does {unit} of {layer} like {red}?", priority="high")
    assert (sweep.name, sweep.planned, sweep.created_runs) == ("24 units of 2 layers in toybox", 24, 0)
    assert (sweep.run_queue.enabled, sweep.run_queue.weight, sweep.job.status) == (True, 4.0, "queued")
    assert AuditEntry.objects.get(verb="sweep.started").details == {"runs": 24}
    create_sweep_runs(sweep)
    create_sweep_runs(sweep)
    runs = list(sweep.runs.order_by("sweep_place"))
    assert len(runs) == sweep.created_runs == 24
    assert [run.sweep_place for run in runs] == [*range(1, 25)]
    assert [(run.layer, run.unit) for run in runs] == create_runs.plan_runs(sweep)
    assert {(run.layer, run.unit) for run in runs} == {
        *(("layer3", number) for number in range(8)),
        *(("layer4", number) for number in range(16)),
    }
    assert all(run.question == f"Does {run.unit} of {run.layer} like {{red}}?" for run in runs)
    assert {(run.owner, run.run_queue, run.limits["rounds"]) for run in runs} == {(owner, sweep.run_queue, 5)}
    assert list_queued() == {run.pk for run in runs}
    assert Run.objects.filter(pk__in=[run.pk for run in runs], summary__isnull=False).count() == 24, "found by words"


def test_several_agents_ask_about_each_unit(owner: User, layers: list[Layer]) -> None:
    sweep = create_sweep_runs(start(owner, agent=["scripted", "openai:dear"], toolset=["toybox"], cost=""))
    pairs = list(sweep.runs.values_list("unit", "backbone", "backbone_model"))
    assert len(pairs) == len(set(pairs)) == 16
    assert {tuple(pair[1:]) for pair in pairs} == {("scripted", ""), ("openai", "dear")}


def test_a_worker_that_died_in_the_middle_leaves_no_run_out_and_none_twice(
    owner: User, layers: list[Layer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(create_runs, "CHUNK", 3)
    sweep = start(owner)
    plan = create_runs.plan_runs(sweep)
    assert [create_runs.create_next_batch(sweep.pk, plan) for _ in range(2)] == [3, 6]
    create_sweep_runs(sweep)
    assert sorted(sweep.runs.values_list("unit", flat=True)) == [*range(8)]


@pytest.mark.parametrize(
    ("fields", "field", "problem"),
    [
        ({"model": "none", "layer": []}, "model", "There is no model “none”"),
        ({"layer": ["layer9"]}, "layer", "There is none called “layer9”. Choose of: layer3, layer4."),
        ({"agent": []}, "agent", "Choose who writes the replies."),
        ({"agent": ["person"]}, "agent", "There is none called “person”"),
        ({"agent": ["openai:odd"]}, "agent", "No price is known for odd, so a budget cannot hold"),
        ({"budget_cost": "0"}, "budget_cost", "A budget of 0 lets nothing run"),
        ({"budget_tokens": "-5"}, "budget_tokens", "A budget of -5 lets nothing run"),
        ({"budget_seconds": "nan"}, "budget_seconds", "Enter a number."),
        ({"rounds": "0"}, "rounds", "A limit must be above 0"),
        ({"dataset": "gone"}, "dataset", "There is no dataset “gone”"),
        ({"toolset": ["nothing"]}, "toolset", "There is none called “nothing”"),
    ],
)
def test_what_cannot_be_asked_is_refused_beside_its_field(
    owner: User, layers: list[Layer], fields: dict[str, Any], field: str, problem: str
) -> None:
    with pytest.raises(InvalidFields) as refused:
        start(owner, **fields)
    assert problem in " ".join(refused.value.fields[field])
    assert not Sweep.objects.exists()


def test_without_a_price_it_takes_a_tick(owner: User, layers: list[Layer]) -> None:
    sweep = start(owner, agent=["openai:odd"], unpriced="on")
    assert (sweep.unpriced, sweep.limits["cost"]) == (True, None)


def test_more_runs_than_a_sweep_has_are_refused(owner: User, layers: list[Layer]) -> None:
    Layer.objects.filter(name="layer4").update(units=60_000)
    form = fill_in(owner, layer=["layer4"], agent=["scripted", "openai:dear"], toolset=["toybox"])
    assert "120,000 runs, and a sweep has at most 100,000" in " ".join(form.problems)


def test_paused_nothing_is_claimed_until_it_is_resumed(owner: User, swept: Sweep) -> None:
    by = Actor(owner)
    assert actions.pause(by, swept.pk)
    assert not actions.pause(by, swept.pk), "twice is once"
    assert list_queued() == set()
    swept.refresh_from_db()
    run = swept.runs.select_related("sweep")[0]
    assert sweep_totals.explain_wait(run).startswith("It waits with its sweep, which is paused. Paused by ")
    assert actions.resume(by, swept.pk)
    assert len(list_queued()) == 8


def test_stopped_its_runs_are_stopped_and_what_is_concluded_stays(owner: User, swept: Sweep) -> None:
    end(swept.runs.order_by("pk")[0])
    actions.stop(Actor(owner), swept.pk)
    assert list_queued() == set()
    create_sweep_runs(swept)
    assert sorted(swept.runs.values_list("status", flat=True)) == ["cancelled"] * 7 + ["concluded"]
    with pytest.raises(StateConflict, match="retry what failed or was stopped"):
        actions.resume(Actor(owner), swept.pk)
    assert actions.retry(Actor(owner), swept.pk, "stopped") == 7
    create_sweep_runs(swept)
    assert (swept.status, swept.retrying, len(list_queued())) == ("running", "", 7)


def test_one_stopped_while_it_is_laid_out_gets_no_further_run(owner: User, layers: list[Layer]) -> None:
    sweep = start(owner)
    actions.stop(Actor(owner), sweep.pk)
    assert create_sweep_runs(sweep).runs.count() == 0


def test_what_failed_goes_on_apart_from_all_else(owner: User, swept: Sweep) -> None:
    failed, concluded, *_ = swept.runs.order_by("pk")
    end(failed, "failed")
    end(concluded)
    with pytest.raises(StateConflict, match="No run was stopped"):
        actions.retry(Actor(owner), swept.pk, "stopped")
    assert actions.retry(Actor(owner), swept.pk) == 1
    create_sweep_runs(swept)
    failed.refresh_from_db()
    assert (failed.status, failed.cost) == ("queued", 0.25), "it goes on: what was paid for is kept"
    assert swept.runs.count() == 8


def test_what_failed_on_a_machine_whose_clock_is_ahead_goes_on_too(owner: User, swept: Sweep) -> None:
    run = swept.runs.order_by("pk")[0]
    end(run, "failed")
    Run.objects.filter(pk=run.pk).update(ended=timezone.now() + timedelta(hours=1))
    actions.retry(Actor(owner), swept.pk)
    assert create_runs.retry_some(Actor(owner), swept.pk, 0) == run.pk


def test_a_run_that_fails_again_is_not_tried_for_ever(owner: User, swept: Sweep) -> None:
    run = swept.runs.order_by("pk")[0]
    end(run, "failed")
    Run.objects.filter(pk=run.pk).update(ended=timezone.now() - timedelta(minutes=1))
    actions.retry(Actor(owner), swept.pk)
    assert create_runs.retry_some(Actor(owner), swept.pk, 0) == run.pk
    transcript.append(run.pk, "failed", Ended("No room."))
    assert create_runs.retry_some(Actor(owner), swept.pk, 0) is None


def test_the_last_run_ends_the_sweep(owner: User, swept: Sweep) -> None:
    for run in swept.runs.all():
        assert Sweep.objects.get().status == "running"
        end(run)
    swept.refresh_from_db()
    assert swept.status == "done"
    assert swept.ended is not None
    assert (swept.cost, swept.tokens, swept.seconds) == (2.0, 120, 24.0)
    (told,) = Notification.objects.filter(user=owner)
    assert told.words == f"Your sweep {swept.pk}, “8 units of layer3 in toybox”, is done."


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({"budget_cost": "0.5"}, "The budget of $0.50 is used up: it took $0.50."),
        ({"budget_tokens": "30"}, "The budget of 30 tokens is used up: it took 30 tokens."),
        ({"budget_seconds": "6"}, "The budget of 6 s of work is used up: it took 6 s of work."),
    ],
)
def test_a_budget_that_is_used_up_closes_it(
    owner: User, layers: list[Layer], limits: dict[str, str], reason: str
) -> None:
    sweep = create_sweep_runs(start(owner, **limits))
    first, second, *rest = sweep.runs.order_by("pk")
    end(first)
    assert Sweep.objects.get().status == "running"
    end(second)
    sweep.refresh_from_db()
    assert (sweep.status, sweep.reason) == ("out_of_budget", reason)
    assert list_queued() == set()
    assert {run.pk for run in rest} == set(sweep.runs.filter(status="queued").values_list("pk", flat=True))
    with pytest.raises(StateConflict, match="Raise that budget"):
        actions.resume(Actor(owner), sweep.pk)
    column = next(name for name in ("cost_limit", "token_limit", "seconds_limit") if getattr(sweep, name))
    assert actions.resume(Actor(owner), sweep.pk, {column: 10 * getattr(sweep, column)})
    assert len(list_queued()) == 6


def test_a_budget_lowered_below_what_it_took_closes_it_at_once(owner: User, swept: Sweep) -> None:
    end(swept.runs.order_by("pk")[0])
    changed = actions.change(Actor(owner), swept.pk, SweepPriority.LOW, {"cost_limit": 0.1})
    assert (changed.status, changed.run_queue.weight) == ("out_of_budget", 1.0)
    with pytest.raises(InvalidInput, match="lets nothing run"):
        actions.change(Actor(owner), swept.pk, budget={"cost_limit": 0.0})


def test_a_sweep_is_changed_by_its_owner_and_by_admins(owner: User, swept: Sweep) -> None:
    colleague = member("Cleo", "RESEARCHER")
    for act in (actions.pause, actions.resume, actions.stop, actions.retry, actions.change):
        with pytest.raises(PermissionDenied):
            act(Actor(colleague), swept.pk)
    assert RunQueue.objects.get().enabled
    assert actions.pause(Actor(member("Ada", "ADMIN")), swept.pk)
    with pytest.raises(PermissionDenied):
        actions.start(Actor(member("Vic", "VIEWER")), fill_in(owner))


def test_an_older_job_of_a_sweep_leaves_it_to_the_newer(owner: User, swept: Sweep) -> None:
    older = Job.objects.get()
    actions.pause(Actor(owner), swept.pk)
    actions.resume(Actor(owner), swept.pk)
    assert Job.objects.count() == 2
    from workers.jobs import sweeps

    assert "replaced by a newer one" in sweeps.run_sweep_job(older, lambda what, done, total: None)
