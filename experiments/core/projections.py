"""Derive rows from events, so that pages can list, count and search without reading payloads.

`transcript` calls `update_rows` once for each event; it changes `run` in place. `row_writers` decides where rows go.
The table of events says which status a run has after an event; `PROJECTIONS` says what else follows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.utils import timezone

from experiments.core.row_writers import RowWriter
from experiments.core.search_index import texts
from experiments.models import Event, Experiment, Hypothesis, Observation, Run
from experiments.models.mapped import list_map_columns
from workers.record import events as record
from workers.record.decoding import encode
from workers.record.engine_parameters import keep_known
from workers.record.experiments import Observation as Logged
from workers.record.limits import Usage
from workers.record.origins import Origin

_SCORE_FIELDS = ("outcome", "success", "error", "right")


def update_rows(run: Run, event: Event, state: bytes, rows: RowWriter) -> None:
    """Update the rows for one new event."""
    if event.row.status is not None:
        run.status, run.pause_requested = event.row.status, ""
    if event.row.suspends or event.row.ends:
        run.lease_worker, run.lease_expires = "", None
    if event.row.suspends:
        run.fence += 1  # a worker that still believes it holds the run is refused
    if isinstance(usage := getattr(event.content, "usage", None), Usage):
        # A reply that failed still cost money.
        run.prompt_tokens += usage.prompt_tokens
        run.completion_tokens += usage.completion_tokens
        run.cost += usage.cost
        run.unpriced = run.unpriced or not usage.priced
    if isinstance(event.content, record.ExperimentEnded) and state:
        rows.add_state(event.content.number, state)  # written with the result
    if projection := PROJECTIONS.get(type(event.content)):
        projection(run, event.content, rows)
    texts.index_event(run, event, rows)


def _keep_start(run: Run, start: record.Started, _: RowWriter) -> None:
    run.started = timezone.now()
    run.versions = dict(start.versions)


def _keep_reply(run: Run, reply: record.Replied, rows: RowWriter) -> None:
    run.rounds = max(run.rounds, reply.round)
    rows.add_hypotheses([Hypothesis(run=run, round=reply.round, **encode(each)) for each in reply.hypotheses])


def _keep_experiment(run: Run, begun: record.ExperimentStarted, rows: RowWriter) -> None:
    rows.add_experiment(Experiment(run=run, seq=run.last_seq, number=begun.number, round=begun.round, code=begun.code))
    run.experiment_count += 1


def _keep_result(run: Run, result: record.ExperimentEnded, rows: RowWriter) -> None:
    experiment, logged = rows.experiment(result.number), result.observations
    for field in ("status", "output", "error", "seconds", "tool_seconds"):
        setattr(experiment, field, getattr(result, field))
    experiment.calls = [encode(call) for call in result.calls]
    experiment.seq, experiment.observation_count = run.last_seq, len(logged)
    experiment.best_activation = max((each.activation for each in logged), default=None)
    edited = {each.original for each in logged if each.original}
    # The activations of the originals: from the same experiment, else from when the run first logged them.
    before = {**rows.find_activations(edited), **{each.image: each.activation for each in logged}} if edited else {}
    made = [observation_row(experiment, place, each, before) for place, each in enumerate(logged, 1)]
    rows.add_result(experiment, made)
    if edited:
        rows.mark_originals(edited)
    run.observation_count += len(logged)
    if result.exemplar_mean is not None:
        run.exemplar_mean = result.exemplar_mean
    # Exemplars set the threshold; the agent's own images are measured against it, whether logged or not.
    reached = [each.activation for each in logged if each.origin != Origin.EXEMPLAR]
    known = [each for each in (run.best_activation, result.best) if each is not None]
    run.best_activation = max([*reached, *known], default=None)


def observation_row(experiment: Experiment, position: int, logged: Logged, before: Mapping[str, float]) -> Observation:
    """Return the row. An edit whose original was never logged has no change."""
    original = logged.original or ""
    is_edit = original in before and original != logged.image
    return Observation(
        run_id=experiment.run_id,
        change=logged.activation - before[original] if is_edit else None,
        experiment=experiment,
        position=position,
        title=logged.title[:300],
        activation=logged.activation,
        claimed=logged.claimed,
        measured=logged.measured,
        differs=logged.differs,
        image_id=logged.image,
        masked_id=logged.masked,
        **list_map_columns(logged.map),
        origin=logged.origin,
        prompt=logged.prompt,
        seed=logged.seed,
        parameters=keep_known(logged.parameters) or None,
        original=original,
        is_original=logged.origin == Origin.ORIGINAL,
    )


def _keep_block(run: Run, blocked: record.Blocked, _: RowWriter) -> None:
    run.reason = blocked.reason


def _keep_wait(run: Run, waiting: record.WaitingForPerson, _: RowWriter) -> None:
    run.reason = f"Round {waiting.round} is a person's to write."


def _keep_resumption(run: Run, _: record.Resumed, __: RowWriter) -> None:
    # The run has no result until it ends again.
    run.reason, run.cancel_requested = "", False
    run.ended, run.conclusion, run.score, run.biases = None, {}, {}, []


def _keep_limits(run: Run, changed: record.LimitsChanged, _: RowWriter) -> None:
    run.limits = encode(changed.limits)


def _keep_handover(run: Run, handover: record.HandedOver, _: RowWriter) -> None:
    run.backbone, run.backbone_model = handover.backbone, handover.backbone_model
    if run.versions:
        run.versions = {**run.versions, "backbone": handover.label or handover.backbone}


def _keep_end(run: Run, end: record.Ended, rows: RowWriter) -> None:
    run.reason = end.reason
    run.conclusion = encode(end.conclusion)
    run.score = {name: getattr(end.score, name) for name in _SCORE_FIELDS} if end.score else {}
    if end.score and end.score.ceiling is not None:
        run.score["ceiling"] = end.score.ceiling
    run.biases = encode(end.biases)
    run.ended = timezone.now()
    rows.add_labels(end.conclusion.labels)


PROJECTIONS: Mapping[type[record.Payload], Callable[[Run, Any, RowWriter], None]] = {
    record.Started: _keep_start,
    record.Replied: _keep_reply,
    record.ExperimentStarted: _keep_experiment,
    record.ExperimentEnded: _keep_result,
    record.Blocked: _keep_block,
    record.WaitingForPerson: _keep_wait,
    record.Resumed: _keep_resumption,
    record.LimitsChanged: _keep_limits,
    record.HandedOver: _keep_handover,
    record.Ended: _keep_end,
}
"""What follows from an event besides the run's status. Events that are not listed change no other row."""
