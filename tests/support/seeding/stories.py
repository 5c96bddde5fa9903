"""What seeded runs ask, say and conclude; transcripts for the newest."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User

from experiments.models import Event, Experiment, Observation, Run, TextKind, Unit
from workers.record.decoding import encode
from workers.record.events import Ended, ExperimentEnded, ExperimentStarted, Payload, Replied, Started
from workers.record.experiments import ExperimentStatus, LogEntry, ToolCall
from workers.record.experiments import Observation as Logged
from workers.record.limits import Limits
from workers.record.replies import Conclusion, Hypothesis
from workers.record.statuses import Status
from workers.record.systems import SystemSpec

TOLD = 100
"""Runs, the newest, that have a transcript."""
CONCEPTS = ("round red things", "wheels", "animals in snow", "vertical edges", "text on signs", "dark skies", "faces")
CODE = """def run_experiment(system, tools):
    prompts = ["a red ball on grass", "a blue cube in snow"]
    images = tools.text2image(prompts)
    activations, masked = system.neuron(images)
    tools.log_experiment(activations, masked, prompts, "")
"""
SearchPassage = tuple[Run, str, int | None, datetime, str]


def run_of(owner: User, unit: Unit, observations: int, created: datetime, chance: random.Random) -> Run:
    concept = chance.choice(CONCEPTS)
    status = chance.choice([Status.CONCLUDED] * 16 + [Status.LIMIT_REACHED, Status.CANCELLED, Status.FAILED])
    labels = [concept] if status == Status.CONCLUDED else []
    return Run(
        owner=owner,
        created=created,
        question=f"What does unit {unit.number} of {unit.layer.name} respond to?",
        task=chance.choice(["describe", "describe", "bias"]),
        model=unit.layer.model.name,
        layer=unit.layer.name,
        unit=unit.number,
        backbone="scripted",
        options={"seeded": True},
        status=status,
        started=created,
        ended=created + timedelta(minutes=5),
        seconds=float(chance.randrange(40, 900)),
        observation_count=observations,
        prompt_tokens=chance.randrange(4_000, 90_000),
        conclusion={"description": f"It responds to {concept}.", "labels": labels, "reasoning": "", "bias": ""},
    )


def experiment_of(run: Run, number: int, observations: int) -> Experiment:
    return Experiment(
        run=run,
        number=number,
        round=number,
        code=CODE,
        status="program_error" if number % 17 == 0 else "ok",
        error="ValueError: no image" if number % 17 == 0 else "",
        seconds=1.5,
        tool_seconds=4.0,
        observation_count=observations,
    )


def passages(run: Run) -> Iterator[SearchPassage]:
    """What search reads of a run beside the titles of its images."""
    yield run, TextKind.QUESTION, None, run.created, run.question
    yield run, TextKind.DESCRIPTION, None, run.created, run.conclusion["description"]
    yield from ((run, TextKind.LABEL, None, run.created, label) for label in run.labels)


def tell(runs: Sequence[Run]) -> None:
    """Transcripts of the newest runs."""
    for run in runs[-TOLD:]:
        seqs: dict[int, int] = {}
        events = []
        for seq, (kind, payload) in enumerate(story(run), 1):
            events.append(Event(run=run, seq=seq, kind=kind, payload=encode(payload), time=run.created))
            if isinstance(payload, ExperimentEnded):
                seqs[payload.number] = seq
        Event.objects.bulk_create(events)
        for experiment in (rows := list(run.experiments.only("number", "run"))):
            experiment.seq = seqs[experiment.number]
        Experiment.objects.bulk_update(rows, ["seq"])
        Run.objects.filter(pk=run.pk).update(last_seq=len(events))


def story(run: Run) -> Iterator[tuple[str, Payload]]:
    """The events of a run, from its rows."""
    spec = SystemSpec("unit", run.model, run.layer, run.unit)
    yield "started", Started(run.question, "describe", spec, "scripted", Limits(), 0, "", run.question, "")
    for row in run.experiments.prefetch_related("observations"):
        number, words = row.number, f"Test {run.conclusion['description'].removeprefix('It responds to ')}"
        hypotheses = (Hypothesis(1, words.removeprefix("Test ").rstrip(".")),)
        yield "reply", Replied(number, "Scripted scientist", words, words, hypotheses, CODE)
        yield "experiment", ExperimentStarted(number, number, CODE)
        entry = LogEntry(tuple(map(logged, row.observations.all())), "")
        calls = (ToolCall("text2image", "2 prompts", 3.0), ToolCall("neuron", "2 images", 1.0))
        status: ExperimentStatus = "ok" if row.status == "ok" else "program_error"
        took: dict[str, Any] = {"seconds": row.seconds, "tool_seconds": row.tool_seconds, "calls": calls}
        yield "result", ExperimentEnded(number, number, status, (entry,), error=row.error, exemplar_mean=22.0, **took)
    said = Conclusion(run.conclusion["description"], tuple(run.labels))
    yield run.status, Ended("", said)


def logged(row: Observation) -> Logged:
    title, image, masked = row.title, row.image_id, row.masked_id
    return Logged(title, row.activation, image, masked, row.origin, row.prompt, row.seed, row.original or None)  # type: ignore[arg-type]
