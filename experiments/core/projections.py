"""Rows derived from events, so that pages can list, count and search without reading payloads.

`keep` is called by `transcript` once for each event; it changes `run` in place. Where the rows go is for `derived`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from django.utils import timezone

from experiments.core.row_writers import Rows
from experiments.core.search_index import texts
from experiments.models import Event, Experiment, Hypothesis, Observation, Run
from workers.record.statuses import Status

Payload = dict[str, Any]
Keeper = Callable[[Run, Payload, Rows], None]


def keep(run: Run, event: Event, state: bytes, rows: Rows) -> None:
    """Bring the rows in step with one new event."""
    if keeper := KEEPERS.get(event.kind):
        keeper(run, event.payload, rows)
    if event.kind == "result" and state:
        rows.add_state(event.payload["number"], state)
    texts.keep(run, event, rows)


def keep_start(run: Run, payload: Payload, _: Rows) -> None:
    run.started = timezone.now()
    run.versions = payload.get("versions", {})


def keep_reply(run: Run, payload: Payload, rows: Rows) -> None:
    run.rounds = max(run.rounds, payload["round"])
    keep_usage(run, payload["usage"])
    rows.add_hypotheses(
        [Hypothesis(run=run, round=payload["round"], **hypothesis) for hypothesis in payload["hypotheses"]]
    )


def keep_loss(run: Run, payload: Payload, _: Rows) -> None:
    """A reply that did not come about was paid for all the same."""
    if usage := payload.get("usage"):
        keep_usage(run, usage)


def keep_usage(run: Run, usage: Payload) -> None:
    run.prompt_tokens += usage["prompt_tokens"]
    run.completion_tokens += usage["completion_tokens"]
    run.cost += usage["cost"]
    run.unpriced = run.unpriced or not usage.get("priced", True)


def keep_experiment(run: Run, payload: Payload, rows: Rows) -> None:
    known = {name: payload[name] for name in ("number", "round", "code")}
    rows.add_experiment(Experiment(run=run, seq=run.last_seq, **known))
    run.experiment_count += 1


def keep_result(run: Run, payload: Payload, rows: Rows) -> None:
    experiment = rows.experiment(payload["number"])
    for field in ("status", "output", "error", "seconds", "tool_seconds", "calls"):
        setattr(experiment, field, payload[field])
    logged = [observation for entry in payload["entries"] for observation in entry["observations"]]
    experiment.seq, experiment.observation_count = run.last_seq, len(logged)
    experiment.best_activation = max((each["activation"] for each in logged), default=None)
    keep_usage(run, payload["usage"])
    edited = {each["original"] for each in logged if each["original"]}
    before = activations_before(edited, logged, rows)
    rows.add_result(
        experiment,
        [observation_row(experiment, position, observation, before) for position, observation in enumerate(logged, 1)],
    )
    if edited:
        rows.mark_originals(edited)
    run.observation_count += len(logged)
    if payload["threshold"] is not None:
        run.threshold = payload["threshold"]
    # Exemplars set the threshold; what the agent's own images reach is measured against it, logged or not.
    reached = [o["activation"] for o in logged if o["origin"] != "exemplar"]
    known = [each for each in (run.best_activation, payload.get("best")) if each is not None]
    run.best_activation = max([*reached, *known], default=None)


def activations_before(edited: Collection[str], logged: Sequence[Payload], rows: Rows) -> dict[str, float]:
    """What the originals of edits reached: in the same experiment, else when the run first logged them."""
    if not edited:
        return {}
    return dict(rows.reached(edited)) | {each["image"]: each["activation"] for each in logged}


def observation_row(
    experiment: Experiment, position: int, observation: Payload, before: Mapping[str, float]
) -> Observation:
    """The row; an edit whose original was never logged has no change."""
    original, activation = observation["original"] or "", observation["activation"]
    is_edit = original in before and original != observation["image"]
    return Observation(
        run_id=experiment.run_id,
        change=activation - before[original] if is_edit else None,
        experiment=experiment,
        position=position,
        title=observation["title"][:300],
        activation=activation,
        claimed=observation.get("claimed"),
        measured=observation.get("measured", False),
        differs=observation.get("differs", False),
        image_id=observation["image"],
        masked_id=observation["masked"],
        origin=observation["origin"],
        prompt=observation["prompt"],
        seed=observation["seed"],
        original=original,
        is_original=observation["origin"] == "original",
    )


def keep_halt(run: Run, payload: Payload, rows: Rows) -> None:
    stand_still(run, Status.WAITING)
    run.reason = payload["reason"]
    keep_loss(run, payload, rows)


def keep_pause(run: Run, _: Payload, __: Rows) -> None:
    stand_still(run, Status.PAUSED)


def keep_turn(run: Run, payload: Payload, _: Rows) -> None:
    stand_still(run, Status.WAITING)
    run.reason = f"Round {payload['round']} is a person's to write."


def stand_still(run: Run, status: Status) -> None:
    """No worker holds the run any more; one that thinks it does is refused by the fence."""
    run.status, run.pause_requested = status, ""
    run.lease_worker, run.lease_expires = "", None
    run.fence += 1


def keep_resumption(run: Run, _: Payload, __: Rows) -> None:
    run.status = Status.QUEUED
    run.reason, run.pause_requested, run.cancel_requested = "", "", False
    run.ended, run.conclusion = None, {}


def keep_limits(run: Run, payload: Payload, _: Rows) -> None:
    run.limits = payload["limits"]


def keep_handing(run: Run, payload: Payload, _: Rows) -> None:
    run.backbone, run.backbone_model = payload["backbone"], payload["backbone_model"]
    if run.versions:
        run.versions = {**run.versions, "agent": payload["label"] or payload["backbone"]}


def keep_end(status: Status) -> Keeper:
    def keeper(run: Run, payload: Payload, rows: Rows) -> None:
        keep_loss(run, payload, rows)
        run.status = status
        run.reason = payload["reason"]
        run.conclusion = payload["conclusion"]
        run.ended = timezone.now()
        run.pause_requested = ""
        run.lease_worker, run.lease_expires = "", None
        rows.add_labels(payload["conclusion"]["labels"])

    return keeper


KEEPERS: dict[str, Keeper] = {
    "started": keep_start,
    "reply": keep_reply,
    "experiment": keep_experiment,
    "result": keep_result,
    "reminder": keep_loss,
    "blocked": keep_halt,
    "paused": keep_pause,
    "waiting_for_person": keep_turn,
    "resumed": keep_resumption,
    "limits": keep_limits,
    "handover": keep_handing,
    "concluded": keep_end(Status.CONCLUDED),
    "limit_reached": keep_end(Status.LIMIT_REACHED),
    "cancelled": keep_end(Status.CANCELLED),
    "failed": keep_end(Status.FAILED),
}
