"""Rows derived from events, so that pages can list, count and search without reading payloads.

`keep` is called by `transcript.append` inside its transaction, once for each event; it changes `run` in place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.utils import timezone

from experiments.models import Event, Experiment, Hypothesis, Label, Observation, Run, Unit
from experiments.models.run import Status

Payload = dict[str, Any]


def keep(run: Run, event: Event, state: bytes) -> None:
    """Bring the rows in step with one new event."""
    if keeper := KEEPERS.get(event.kind):
        keeper(run, event.payload)
    if event.kind == "result" and state:
        run.experiments.filter(number=event.payload["number"]).update(state=state)


def keep_start(run: Run, payload: Payload) -> None:
    run.started = timezone.now()
    run.versions = payload.get("versions", {})


def keep_reply(run: Run, payload: Payload) -> None:
    run.rounds = max(run.rounds, payload["round"])
    run.prompt_tokens += payload["usage"]["prompt_tokens"]
    run.completion_tokens += payload["usage"]["completion_tokens"]
    run.cost += payload["usage"]["cost"]
    Hypothesis.objects.bulk_create(
        Hypothesis(run=run, round=payload["round"], **hypothesis) for hypothesis in payload["hypotheses"]
    )


def keep_experiment(run: Run, payload: Payload) -> None:
    Experiment.objects.create(run=run, number=payload["number"], round=payload["round"], code=payload["code"])
    run.experiment_count += 1


def keep_result(run: Run, payload: Payload) -> None:
    experiment = run.experiments.get(number=payload["number"])
    for field in ("status", "output", "error", "seconds", "tool_seconds", "calls"):
        setattr(experiment, field, payload[field])
    experiment.save()
    logged = [observation for entry in payload["entries"] for observation in entry["observations"]]
    Observation.objects.bulk_create(
        observation_row(experiment, position, observation) for position, observation in enumerate(logged, 1)
    )
    run.observation_count += len(logged)
    if payload["threshold"] is not None:
        run.threshold = payload["threshold"]
    # Exemplars set the threshold; what the agent's own images reach is measured against it.
    reached = [o["activation"] for o in logged if o["origin"] != "exemplar"]
    run.best_activation = max([*reached, *([] if run.best_activation is None else [run.best_activation])], default=None)


def observation_row(experiment: Experiment, position: int, observation: Payload) -> Observation:
    return Observation(
        experiment=experiment,
        position=position,
        title=observation["title"][:300],
        activation=observation["activation"],
        image_id=observation["image"],
        masked_id=observation["masked"],
        origin=observation["origin"],
        prompt=observation["prompt"],
        seed=observation["seed"],
        original=observation["original"] or "",
    )


def keep_end(status: Status) -> Callable[[Run, Payload], None]:
    def keeper(run: Run, payload: Payload) -> None:
        run.status = status
        run.reason = payload["reason"]
        run.conclusion = payload["conclusion"]
        run.ended = timezone.now()
        run.lease_worker, run.lease_expires = "", None
        unit = Unit.objects.filter(layer__model__name=run.model, layer__name=run.layer, number=run.unit).first()
        for position, text in enumerate(payload["conclusion"]["labels"], 1):
            label = Label.objects.create(text=text, source="run", run=run, position=position)
            if unit:
                label.units.add(unit)

    return keeper


KEEPERS: dict[str, Callable[[Run, Payload], None]] = {
    "started": keep_start,
    "reply": keep_reply,
    "experiment": keep_experiment,
    "result": keep_result,
    "concluded": keep_end(Status.CONCLUDED),
    "limit_reached": keep_end(Status.LIMIT_REACHED),
    "cancelled": keep_end(Status.CANCELLED),
    "failed": keep_end(Status.FAILED),
}
