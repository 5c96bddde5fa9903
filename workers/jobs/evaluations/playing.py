"""Plays a run of an evaluation to its end, in the thread of the evaluation's job.

The run is one like any other: its page shows it live, people may look into it. Stopped, it is paused, and the next
claim of the evaluation goes on with it. Where another worker took it up, its end is waited for.
"""

from __future__ import annotations

import time

from experiments.core import compatibility, transcript
from experiments.core.actors import Actor
from experiments.core.display_name import person
from experiments.models import Evaluation, EvaluationItem, Run
from experiments.runs import actions
from experiments.runs.drafts import draft_run
from workers.errors import Cancelled, LeaseLost, MachineryError, RequestError
from workers.jobs import lease
from workers.jobs.evaluations.budget import require_round
from workers.jobs.foreground import pause
from workers.protocols import Progress
from workers.record import tasks
from workers.record.statuses import Status
from workers.record.systems import SystemSpec

LOOK_EVERY = 0.5
"""Seconds between two looks at a run that somebody else plays."""


def spec_of(evaluation: Evaluation, item: EvaluationItem) -> SystemSpec:
    """The system that an item is about, over the dataset that was named or suits its model. Raises RequestError if its
    unit is not in the catalogue any more."""
    if item.unit is None:
        raise RequestError(f"{item.unit_name} is not in the catalogue any more.")
    named = str(item.options.get("dataset") or "")
    return item.unit.spec(named or find_dataset(evaluation, item.unit.layer.model.name))


def find_dataset(evaluation: Evaluation, model: str) -> str:
    """Where images of a model come from: what was named, else what suits it."""
    return str(evaluation.options.get("dataset") or "") or compatibility.dataset_for(model)


def play(
    evaluation: Evaluation, item: EvaluationItem, progress: Progress, *, task: str = "describe", question: str = ""
) -> Run:
    """The item's run, ended; made if it is not there.

    Raises Cancelled, BudgetReached; RequestError if it waits for somebody.
    """
    if item.run is None:
        require_round(evaluation)  # before there is a run that would only be paused
    run = item.run or _make(evaluation, item, task, question)
    if item.run is None:
        item.run = run
        item.save(update_fields=["run"])
    while not run.has_ended:
        if run.status == Status.WAITING:
            raise RequestError(f"Run {run.pk} waits: {run.reason} Put this right, then go on with the evaluation.")
        transcript.resume(run.pk, person(evaluation.owner))
        claimed = lease.claim(run.pk)
        if claimed:
            _play_on(evaluation, claimed, progress)
        else:
            progress(f"Run {run.pk} is played by another worker", 0, 1)
            time.sleep(LOOK_EVERY)
        run.refresh_from_db()
    return run


def _make(evaluation: Evaluation, item: EvaluationItem, task: str, question: str) -> Run:
    from workers.jobs.laboratory import laboratory
    from workers.jobs.run_round import first_event

    run = draft(evaluation, item, task, question)
    if evaluation.unpriced and not laboratory().backbone(run.backbone, run.backbone_model).price_known:
        run.limits = {**run.limits, "cost": None}
    first_event(run)  # raises RequestError if what the run asks for cannot be done
    return actions.add_run(Actor(evaluation.owner), run, enqueue=False)


def draft(evaluation: Evaluation, item: EvaluationItem, task: str = tasks.USUAL, question: str = "") -> Run:
    """The item's run, not saved. Raises RequestError if its unit is not in the catalogue any more."""
    return draft_run(
        spec_of(evaluation, item),
        task=task,
        question=question,
        options={"label_check": False} | _options_of(evaluation),
        toolset=str(item.options.get("toolset") or evaluation.options.get("toolset") or ""),
        backbone=evaluation.backbone,
        backbone_model=evaluation.backbone_model,
        seed=evaluation.seed,
    )


def _options_of(evaluation: Evaluation) -> dict[str, int]:
    """How often a failed label goes back to the agent, where the evaluation says so."""
    reflections = int(str(evaluation.options.get("reflections") or 0))
    return {"reflections": reflections} if reflections else {}


def _play_on(evaluation: Evaluation, claimed: Run, progress: Progress) -> None:
    """Rounds until it ends, waits or is lost; a stop, and the end of the budget, pause it."""
    from workers.jobs.run_round import play as play_round

    with lease.hold_lease(claimed) as lost:
        try:
            goes_on = True
            while goes_on:
                current = Run.objects.get(pk=claimed.pk, fence=claimed.fence)
                require_round(evaluation)
                progress(f"Run {claimed.pk}, round {current.rounds + 1}", 0, 1)
                try:
                    goes_on = play_round(current, lost, any_model=True)
                except MachineryError:  # recorded in the run, which is tried again
                    time.sleep(LOOK_EVERY)
        except Cancelled:
            pause(claimed)
            raise
        except (LeaseLost, Run.DoesNotExist) as error:
            if lease.stopping.is_set():
                raise Cancelled("The worker stops.") from error
