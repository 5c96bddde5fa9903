"""Rows derived from events, so that pages can list, count and search without reading payloads.

`keep` is called by `transcript.append` inside its transaction, once for each event; it changes `run` in place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.utils import timezone

from experiments import search
from experiments.models import Event, Experiment, Hypothesis, Label, Layer, Observation, Run, Unit
from experiments.models.run import Status

Payload = dict[str, Any]


def keep(run: Run, event: Event, state: bytes) -> None:
    """Bring the rows in step with one new event."""
    if keeper := KEEPERS.get(event.kind):
        keeper(run, event.payload)
    if event.kind == "result" and state:
        run.experiments.filter(number=event.payload["number"]).update(state=state)
    search.keep(run, event)


def keep_start(run: Run, payload: Payload) -> None:
    run.started = timezone.now()
    run.versions = payload.get("versions", {})


def keep_reply(run: Run, payload: Payload) -> None:
    run.rounds = max(run.rounds, payload["round"])
    keep_usage(run, payload["usage"])
    Hypothesis.objects.bulk_create(
        Hypothesis(run=run, round=payload["round"], **hypothesis) for hypothesis in payload["hypotheses"]
    )


def keep_loss(run: Run, payload: Payload) -> None:
    """A reply that did not come about was paid for all the same."""
    if usage := payload.get("usage"):
        keep_usage(run, usage)


def keep_usage(run: Run, usage: Payload) -> None:
    run.prompt_tokens += usage["prompt_tokens"]
    run.completion_tokens += usage["completion_tokens"]
    run.cost += usage["cost"]
    run.unpriced = run.unpriced or not usage.get("priced", True)


def keep_experiment(run: Run, payload: Payload) -> None:
    known = {name: payload[name] for name in ("number", "round", "code")}
    Experiment.objects.create(run=run, seq=run.last_seq, **known)
    run.experiment_count += 1


def keep_result(run: Run, payload: Payload) -> None:
    experiment = run.experiments.get(number=payload["number"])
    for field in ("status", "output", "error", "seconds", "tool_seconds", "calls"):
        setattr(experiment, field, payload[field])
    logged = [observation for entry in payload["entries"] for observation in entry["observations"]]
    experiment.seq, experiment.observation_count = run.last_seq, len(logged)
    experiment.best_activation = max((each["activation"] for each in logged), default=None)
    experiment.save()
    keep_usage(run, payload["usage"])
    before = activations_before(run, logged)
    Observation.objects.bulk_create(
        observation_row(experiment, position, observation, before) for position, observation in enumerate(logged, 1)
    )
    mark_originals(run, logged)
    run.observation_count += len(logged)
    if payload["threshold"] is not None:
        run.threshold = payload["threshold"]
    # Exemplars set the threshold; what the agent's own images reach is measured against it, logged or not.
    reached = [o["activation"] for o in logged if o["origin"] != "exemplar"]
    known = [each for each in (run.best_activation, payload.get("best")) if each is not None]
    run.best_activation = max([*reached, *known], default=None)


def mark_originals(run: Run, logged: Sequence[Payload]) -> None:
    """What the run logged of the images that these edits were made from is found as such."""
    keys = {each["original"] for each in logged if each["original"]}
    if keys:
        run.observations.filter(image_id__in=keys, is_original=False).update(is_original=True)


def activations_before(run: Run, logged: Sequence[Payload]) -> dict[str, float]:
    """What the originals of these edits reached: in the same experiment, else when the run first logged them."""
    wanted = {each["original"] for each in logged if each["original"]}
    if not wanted:
        return {}
    rows = run.observations.filter(image_id__in=wanted).order_by("-pk")
    return dict(rows.values_list("image_id", "activation")) | {each["image"]: each["activation"] for each in logged}


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


def keep_halt(run: Run, payload: Payload) -> None:
    stand_still(run, Status.WAITING)
    run.reason = payload["reason"]
    keep_loss(run, payload)


def keep_pause(run: Run, _: Payload) -> None:
    stand_still(run, Status.PAUSED)


def keep_turn(run: Run, payload: Payload) -> None:
    stand_still(run, Status.WAITING)
    run.reason = f"Round {payload['round']} is a person's to write."


def stand_still(run: Run, status: Status) -> None:
    """No worker holds the run any more; one that thinks it does is refused by the fence."""
    run.status, run.pause_requested = status, ""
    run.lease_worker, run.lease_expires = "", None
    run.fence += 1


def keep_resumption(run: Run, _: Payload) -> None:
    run.status = Status.QUEUED
    run.reason, run.pause_requested, run.cancel_requested = "", "", False
    run.ended, run.conclusion = None, {}


def keep_limits(run: Run, payload: Payload) -> None:
    run.limits = payload["limits"]


def keep_handing(run: Run, payload: Payload) -> None:
    run.backbone, run.backbone_model = payload["backbone"], payload["backbone_model"]
    if run.versions:
        run.versions = {**run.versions, "agent": payload["label"] or payload["backbone"]}


def keep_end(status: Status) -> Callable[[Run, Payload], None]:
    def keeper(run: Run, payload: Payload) -> None:
        keep_loss(run, payload)
        run.status = status
        run.reason = payload["reason"]
        run.conclusion = payload["conclusion"]
        run.ended = timezone.now()
        run.pause_requested = ""
        run.lease_worker, run.lease_expires = "", None
        unit = unit_of(run)
        for position, text in enumerate(payload["conclusion"]["labels"], 1):
            label = Label.objects.create(text=text, source="run", run=run, position=position)
            if unit:
                label.units.add(unit)

    return keeper


def unit_of(run: Run) -> Unit | None:
    """The row of the unit that the run is about; None if the catalogue does not know it any more."""
    layer = Layer.objects.filter(model__name=run.model, name=run.layer, units__gt=run.unit).first()
    return Unit.objects.get_or_create(layer=layer, number=run.unit)[0] if layer else None


KEEPERS: dict[str, Callable[[Run, Payload], None]] = {
    "started": keep_start,
    "reply": keep_reply,
    "experiment": keep_experiment,
    "result": keep_result,
    "note": keep_loss,
    "halted": keep_halt,
    "paused": keep_pause,
    "awaited": keep_turn,
    "resumed": keep_resumption,
    "limits": keep_limits,
    "handed": keep_handing,
    "concluded": keep_end(Status.CONCLUDED),
    "limit_reached": keep_end(Status.LIMIT_REACHED),
    "cancelled": keep_end(Status.CANCELLED),
    "failed": keep_end(Status.FAILED),
}
