"""What may be done with evaluations: started, stopped, resumed, repaired, deleted, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import QueryDict
from django.test import Client

from experiments.core.actors import Actor
from experiments.core.errors import InvalidInput, StateConflict
from experiments.evaluations import actions, forecast
from experiments.evaluations.form import NewEvaluation
from experiments.models import AuditEntry, Backbone, Evaluation, EvaluationItem, Job, LabelCheck, Run
from experiments.pairwise import sources
from tests.support import trials
from tests.support.builders import make_run
from tests.support.evaluations import work
from tests.support.people import member
from workers.record.evaluation_kinds import KINDS

pytestmark = pytest.mark.django_db


def form(**fields: Any) -> NewEvaluation:
    """Filled in as a browser sends it."""
    sent = QueryDict(mutable=True)
    known = {"kind": "synthetic", "backbone": "scripted", "units": "8", "seed": "3"} | fields
    for name, value in known.items():
        sent.setlist(name, value if isinstance(value, list) else [str(value)])
    return NewEvaluation(sent, sources.list_sources())


def test_one_is_started_with_a_job_that_a_worker_finds(owner: User, scripted: Backbone, redis_url: str) -> None:
    row = actions.start(Actor(owner), form(cost="2.5", reflections="2"))
    assert (row.kind, row.backbone, row.seed, row.cost_limit) == ("synthetic", "scripted", 3, 2.5)
    assert row.options == {"units": 8, "repeats": 1, "batch": "fresh", "reflections": 2}
    assert row.name == "8 fresh synthetic neurons by scripted"
    assert (row.job.kind, row.job.status, row.job.asked_by) == ("evaluation", "queued", owner)
    assert not row.planned
    assert AuditEntry.objects.filter(verb="evaluation.started").count() == 1


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"kind": "everything"}, "Kind"),
        ({"backbone": ""}, "Choose who writes the replies"),
        ({"backbone": "nobody"}, "There is no backbone “nobody”"),
        ({"backbone": "person"}, "A person writes rounds on the pages"),
        ({"backbone": "openai:gpt-9"}, "No price is known for gpt-9"),
        ({"units": "0"}, "How many"),
        ({"kind": "units"}, "Choose a model"),
        ({"kind": "units", "model": "own"}, "There is no model “own”"),
        ({"kind": "units", "model": "toybox", "layer": "layer4, layer9"}, "has no layer “layer9”"),
        ({"kind": "units", "model": "toybox", "dataset": "none"}, "There is no dataset “none”"),
        ({"kind": "labels", "backbone": ""}, "Choose whose labels are tested"),
        ({"kind": "labels", "source": ["import:nobody"]}, "Sources"),
    ],
)
def test_what_cannot_be_measured_is_refused_with_the_reason(
    owner: User, scripted: Backbone, fields: dict[str, Any], problem: str
) -> None:
    trials.layer()
    Backbone.objects.create(key="person")
    Backbone.objects.create(key="openai", model_names=["gpt-9"])
    filled = form(**fields)
    with pytest.raises(InvalidInput):
        actions.start(Actor(owner), filled)
    assert problem in " ".join(filled.problems)
    assert not Evaluation.objects.exists()


def test_without_a_price_it_takes_a_tick(owner: User, redis_url: str) -> None:
    Backbone.objects.create(key="openai", model_names=["gpt-9"])
    assert actions.start(Actor(owner), form(backbone="openai:gpt-9", unpriced="on")).unpriced


def test_a_source_is_checked_label_by_label(owner: User, redis_url: str) -> None:
    trials.labelled(owner, 3)
    row = actions.check_source(Actor(owner), trials.MILAN)
    assert (row.kind, row.options["sources"]) == ("labels", [trials.MILAN])


def test_who_reads_only_starts_nothing(evaluation: Evaluation, scripted: Backbone) -> None:
    viewer = Actor(member("viewer", "VIEWER"))
    for act in (
        lambda: actions.start(viewer, form()),
        lambda: actions.stop(viewer, evaluation),
        lambda: actions.resume(viewer, evaluation),
        lambda: actions.delete(viewer, evaluation),
        lambda: actions.check_source(viewer, "agent"),
    ):
        with pytest.raises(PermissionDenied):
            act()


def test_another_researcher_leaves_it_alone_and_an_admin_may(evaluation: Evaluation, redis_url: str) -> None:
    with pytest.raises(PermissionDenied, match="Another user"):
        actions.resume(Actor(member("other", "RESEARCHER")), evaluation)
    actions.resume(Actor(member("admin", "ADMIN")), evaluation)
    assert Job.objects.get(pk=evaluation.job_id).status == "queued"


def test_it_stops_and_goes_on_with_a_higher_budget(owner: User, evaluation: Evaluation, redis_url: str) -> None:
    actor, job = Actor(owner), Job.objects.get(pk=evaluation.job_id)
    with pytest.raises(StateConflict, match="nothing to stop"):
        actions.stop(actor, evaluation)
    actions.resume(actor, evaluation, cost=5.0)
    evaluation.refresh_from_db()
    assert evaluation.cost_limit == 5.0
    with pytest.raises(StateConflict, match="already running"):
        actions.resume(actor, evaluation)
    work(evaluation, "running")
    actions.stop(actor, evaluation)
    job.refresh_from_db()
    assert (job.status, job.stop_requested) == ("running", True)
    work(evaluation, "queued")
    actions.stop(actor, evaluation)
    job.refresh_from_db()
    assert (job.status, job.result) == ("stopped", "Stopped before it began.")


@pytest.mark.parametrize("limits", [(0.0, None), (float("nan"), None), (None, -1.0), (float("inf"), None)])
def test_a_budget_that_is_none_is_refused(
    owner: User, evaluation: Evaluation, limits: tuple[float | None, float | None]
) -> None:
    with pytest.raises(InvalidInput, match="above 0"):
        actions.resume(Actor(owner), evaluation, *limits)


def test_one_that_is_done_is_not_done_again(owner: User, evaluation: Evaluation) -> None:
    evaluation.items.filter(status="planned").update(status="done")
    with pytest.raises(StateConflict, match="Every item"):
        actions.resume(Actor(owner), evaluation)


def test_labels_are_scored_again_by_whoever_started_and_what_it_cost_stays(
    owner: User, evaluation: Evaluation, redis_url: str
) -> None:
    work(evaluation, "running")
    with pytest.raises(StateConflict, match="score it again when it is done"):
        actions.score_again(Actor(owner), evaluation)
    work(evaluation, "done")
    item = evaluation.items.filter(status="done")[0]
    item.scores = {**item.scores, "cost": 0.25}
    item.save()
    labels = list(evaluation.items.values_list("label", flat=True))
    actions.score_again(Actor(owner), evaluation)
    item.refresh_from_db()
    assert (item.status, item.scores) == ("planned", {"cost": 0.25})
    assert list(evaluation.items.values_list("label", flat=True)) == labels
    assert Evaluation.objects.get(pk=evaluation.pk).job.status == "queued"
    work(evaluation, "done")
    evaluation.items.update(status="lacking")
    with pytest.raises(StateConflict, match="nothing to score again"):
        actions.score_again(Actor(owner), evaluation)


def test_only_spurious_units_are_repaired(owner: User, every_kind: list[Evaluation], redis_url: str) -> None:
    by_kind = {row.kind: row for row in every_kind}
    with pytest.raises(StateConflict, match="Only an evaluation of spurious"):
        actions.repair(Actor(owner), by_kind["bias"], 0.0)
    for factor in (1.0, -0.5, float("nan")):
        with pytest.raises(InvalidInput):
            actions.repair(Actor(owner), by_kind["spurious"], factor)
    actions.repair(Actor(owner), by_kind["spurious"], 0.25)
    row = Evaluation.objects.get(pk=by_kind["spurious"].pk)
    assert row.options["repair"] == 0.25
    assert row.job.status == "queued"
    with pytest.raises(StateConflict, match="is running"):
        actions.repair(Actor(owner), row, 0.0)
    row.options = {**row.options, "latents": 64}
    with pytest.raises(StateConflict, match="weighs units, not latents"):
        actions.repair(Actor(owner), row, 0.0)


def test_a_deleted_one_leaves_its_runs_and_checks(owner: User, evaluation: Evaluation, runs: list[Run]) -> None:
    work(evaluation, "running")
    with pytest.raises(StateConflict, match="stop it"):
        actions.delete(Actor(owner), evaluation)
    work(evaluation, "stopped")
    evaluation.refresh_from_db()
    actions.delete(Actor(owner), evaluation)
    assert not Evaluation.objects.exists()
    assert not EvaluationItem.objects.exists()
    assert (Run.objects.count(), LabelCheck.objects.count()) == (len(runs), len(runs))


# --- what it would take ---


def test_a_forecast_rests_on_recorded_runs_or_on_what_they_took_elsewhere(
    owner: User, scripted: Backbone, checks: list[LabelCheck]
) -> None:
    filled = form(units="10")
    assert filled.is_valid(), filled.problems
    LabelCheck.objects.filter(status="done").update(seconds=2.0)
    unknown = forecast.predict(filled.draft())
    assert (unknown.runs, unknown.checks, unknown.recorded) == (10, 30, 0)
    assert unknown.elsewhere
    kind = KINDS["synthetic"]
    assert unknown.seconds is not None
    assert unknown.seconds.expected == 10 * kind.run_seconds + 30 * 2.0 + kind.preparation
    for seconds in (10.0, 20.0, 30.0):
        make_run(owner, status="concluded", seconds=seconds, cost=0.1)
    Evaluation.objects.create(kind="synthetic", owner=owner, planned=True, prepared={forecast.PLANNING: 40.0})
    known = forecast.predict(filled.draft())
    assert not known.elsewhere
    assert known.seconds is not None
    assert known.cost is not None
    assert known.seconds.expected == 300.0, "with the time before the first item"
    assert known.preparation == 40.0
    assert known.cost.expected == pytest.approx(1.0)
    assert known.cost.upper == pytest.approx(1.0)  # each cost the same


def test_a_sum_varies_less_than_each_of_it_and_more_where_little_is_recorded() -> None:
    """Of many sums of fresh draws nine of ten stay below the upper limit."""
    rng = np.random.default_rng(0)
    held, sums = 0, 400
    for _ in range(sums):
        spread = forecast.PredictionInterval.of(rng.exponential(10, 30).tolist(), 20)
        assert spread is not None
        held += rng.exponential(10, 20).sum() <= spread.upper
    assert 0.85 < held / sums < 0.95
    values = [10.0, 20.0, 30.0]
    few, many = forecast.PredictionInterval.of(values, 100), forecast.PredictionInterval.of(values * 20, 100)
    assert few is not None
    assert many is not None
    assert few.expected == many.expected == 2000.0
    assert many.upper < few.upper
    assert many.upper < 100 * 25.0
    once = forecast.PredictionInterval.of([7.0], 3)
    assert once == forecast.PredictionInterval(21.0, 42.0)
    assert forecast.PredictionInterval.of([], 3) is None


def test_the_form_shows_what_it_would_take_and_starts_it(
    as_owner: Client, owner: User, scripted: Backbone, redis_url: str
) -> None:
    assert "Synthetic neurons" in as_owner.get("/evaluations/new/").content.decode()
    page = as_owner.get("/evaluations/new/?kind=synthetic&backbone=scripted&units=4").content.decode()
    assert "No run of scripted is recorded here: these figures are from" in page
    assert "<dt>Work</dt>" in page
    assert not Evaluation.objects.exists()
    response = as_owner.post("/evaluations/new/", {"kind": "synthetic", "backbone": "scripted", "units": "4"})
    row = Evaluation.objects.get()
    assert response["Location"] == row.get_absolute_url()
    refused = as_owner.post("/evaluations/new/", {"kind": "synthetic", "backbone": "none"})
    assert refused.status_code == 400
    assert "There is no backbone" in refused.content.decode()


def test_latents_are_a_field_of_spurious_features_alone(as_owner: Client, scripted: Backbone) -> None:
    assert 'name="latents"' not in as_owner.get("/evaluations/new/?kind=units").content.decode()
    address = "/evaluations/new/?kind=spurious&backbone=scripted&latents="
    page = as_owner.get(f"{address}64").content.decode()
    assert 'name="latents" value="64"' in page
    for wrong in ("1", "100000", "-1", "many"):
        assert '<a href="#id_latents">' in as_owner.get(f"{address}{wrong}").content.decode()


def test_pages_act_and_say_why_they_do_not(as_owner: Client, evaluation: Evaluation, redis_url: str) -> None:
    address = evaluation.get_absolute_url()
    refused = as_owner.post(f"{address}resume/", {"cost": "much"})
    typed = refused.content.decode()
    assert refused.status_code == 400
    assert 'value="much"' in typed
    assert 'id="id_cost_error"' in typed
    assert as_owner.post(f"{address}resume/", {"cost": "9"}).status_code == 302
    assert "already running" in as_owner.post(f"{address}resume/", follow=True).content.decode()
    assert "stop it before it is deleted" in as_owner.post(f"{address}delete/", follow=True).content.decode()
    assert as_owner.post(f"{address}stop/").status_code == 302
    assert as_owner.post(f"{address}delete/")["Location"] == "/evaluations/"
    assert not Evaluation.objects.exists()
