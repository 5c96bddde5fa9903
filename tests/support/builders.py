"""Rows and payloads that tests start from."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User

from experiments.models import Run
from workers.record import decoding, events
from workers.record.events import ExperimentEnded, ExperimentStarted, Payload, Replied, Started
from workers.record.experiments import LogEntry, Observation
from workers.record.limits import Usage
from workers.record.systems import SystemSpec


def make_run(owner: User, **fields: Any) -> Run:
    """A queued run on a unit of toybox-net."""
    known = {
        "question": "What does it respond to?",
        "task": "describe",
        "model": "toybox",
        "layer": "layer4",
        "unit": 7,
        "backbone": "scripted",
    }
    return Run.objects.create(owner=owner, **(known | fields))


def started() -> Started:
    spec = SystemSpec("unit", "toybox", "layer4", 7)
    return Started("What?", "describe", spec, "scripted", events.Limits(), 0, "instructions", "assignment", "reference")


def replied(round_number: int = 1, **fields: Any) -> Replied:
    known = {"author": "scripted", "text": "Look.", "prose": "Look.", "usage": Usage(10, 5, 0.25)}
    return Replied(round=round_number, **(known | fields))


def experiment(number: int = 1) -> ExperimentStarted:
    return ExperimentStarted(round=number, number=number, code="tools.display('hello')")


def result(number: int = 1, images: tuple[str, ...] = (), **fields: Any) -> ExperimentEnded:
    observations = tuple(Observation(f"image {n}", float(n), key) for n, key in enumerate(images, 1))
    return ExperimentEnded(number, number, "ok", (LogEntry(observations, "words"),), **fields)


def as_json(payload: Payload) -> dict[str, Any]:
    data = decoding.encode(payload)
    assert isinstance(data, dict)
    return data
