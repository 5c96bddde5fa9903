"""A synthetic neuron whose name reviewers may not know, and what tells of it."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User

from experiments.core import audit, transcript
from experiments.core.actors import Actor
from experiments.models import Layer, ReviewQueue, Run, VisionModelRow
from experiments.reviews import actions
from tests.support import builders
from tests.support.api_world import KEY
from tests.support.builders import make_run
from workers.record import decoding
from workers.record.events import Ended, Forked
from workers.record.replies import Conclusion
from workers.record.systems import SystemSpec

MODEL, LAYER, NAME, NUMBER = "synthetic:hayloft-eyes", "hayloft-kind", "hayloft concept", 1
"""The three words of which none may be told. No random token, of which pages hold many, has theirs by chance."""
TOLD = "hayloft"


def blind_run(owner: User) -> Run:
    """A run on a synthetic neuron that concluded. It asks again what was asked of an ordinary unit, and has a fork."""
    asked = make_run(owner, status="concluded")
    system = {"system_kind": "synthetic", "model": MODEL, "layer": LAYER, "unit": NUMBER}
    row = make_run(owner, parent=asked, **system, versions={"model": MODEL, "backbone": "Scripted"})
    start = decoding.encode(builders.started()) | {"system": as_json_spec(), "versions": {"model": MODEL}}
    transcript.append(row.pk, "started", decoding.decode("started", start))
    transcript.append(row.pk, "reply", builders.replied())
    transcript.append(row.pk, "experiment", builders.experiment())
    transcript.append(row.pk, "result", builders.result(images=(KEY,)))
    transcript.append(row.pk, "forked", Forked(1, "owner", asked.pk, {"layer": LAYER, "seed": "3"}))
    transcript.append(row.pk, "concluded", Ended("", Conclusion("It likes red.", ("red balls",))))
    make_run(owner, parent=row, fork_round=1, **system, status="concluded")
    audit.record(Actor(owner), "run.asked", row)
    row.refresh_from_db()
    return row


def as_json_spec() -> dict[str, Any]:
    spec = SystemSpec("synthetic", MODEL, LAYER, NUMBER)
    return {"kind": spec.kind, "model": spec.model, "layer": spec.layer, "unit": spec.unit, "options": {}}


def queued(run: Run, *people: User, **fields: Any) -> ReviewQueue:
    queue = ReviewQueue(**({"name": "q", "filters": f"layer={LAYER}"} | fields))
    return actions.make_queue(Actor(run.owner), Run.objects.filter(pk=run.pk), queue, people)


def catalogue() -> Layer:
    return Layer.objects.create(
        model=VisionModelRow.objects.create(name=MODEL, label="Synthetic"),
        position=0,
        name=LAYER,
        kind="concept",
        units=3,
        names=["other", NAME, "third"],
    )
