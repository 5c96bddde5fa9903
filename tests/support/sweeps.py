"""A model with two layers, and sweeps of it."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.http import QueryDict

from experiments.core.actors import Actor
from experiments.core.system_names import SystemNameMasker
from experiments.models import Backbone, Dataset, Job, Layer, Sweep, Toolset, VisionModelRow
from experiments.sweeps import actions
from experiments.sweeps.form import NewSweep
from workers.jobs import sweeps


def make_layers() -> list[Layer]:
    model = VisionModelRow.objects.create(name="toybox", label="Toybox net")
    sizes = {"layer3": 8, "layer4": 16}
    made = [
        Layer.objects.create(model=model, position=place, name=name, path=name, kind="conv", units=units)
        for place, (name, units) in enumerate(sizes.items())
    ]
    Dataset.objects.create(key="toybox", label="Toybox")
    Toolset.objects.create(key="toybox", label="Toybox")
    Backbone.objects.create(key="scripted", label="Scripted scientist")
    Backbone.objects.create(key="openai", label="OpenAI", model_names=["dear", "odd"], prices={"dear": [1.0, 2.0]})
    return made


def fill_in(viewer: User, **fields: Any) -> NewSweep:
    """The form as a browser sends it."""
    sent = QueryDict(mutable=True)
    known = {"model": "toybox", "layer": ["layer3"], "choose": "layers", "task": "describe", "agent": ["scripted"]}
    for name, value in (known | {"rounds": "5"} | fields).items():
        sent.setlist(name, [str(each) for each in value] if isinstance(value, list) else [str(value)])
    return NewSweep(sent, SystemNameMasker(viewer))


def start(owner: User, **fields: Any) -> Sweep:
    return actions.start(Actor(owner), fill_in(owner, **fields))


def create_sweep_runs(sweep: Sweep) -> Sweep:
    """Do what its newest job asks for, as a worker does."""
    sweep.refresh_from_db()
    assert sweep.job is not None
    sweeps.run_sweep_job(Job.objects.get(pk=sweep.job.pk), lambda what, done, total: None)
    sweep.refresh_from_db()
    return sweep
