"""A row of everything that somebody may change, each their own and in a state in which something can be done."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from experiments.core import transcript
from experiments.models import (
    ApiToken,
    Backbone,
    Comment,
    Dataset,
    Evaluation,
    Export,
    Invitation,
    Job,
    Observation,
    PairwiseTrial,
    Preset,
    ReviewQueue,
    Role,
    Run,
    RunQueue,
    SavedView,
    Share,
    Sweep,
    Unit,
    VisionModelRow,
)
from tests.support import judged_images, trials
from tests.support.api_world import World
from tests.support.builders import make_run, started
from tests.support.circuits import make_circuit_ids
from tests.support.people import member
from tests.support.studies import make_study_ids
from tests.support.webhook_receiver import make_given_up, make_webhook
from workers.record.decoding import decode
from workers.record.events import Blocked


def make_all(admin: User, world: World) -> dict[str, Any]:
    """What stands in addresses and forms; each is the admin's own, and in a state in which something can be done."""
    soon = timezone.now() + timedelta(days=1)
    model = VisionModelRow.objects.create(name="hf:own", revision="1", added=timezone.now())
    dataset = Dataset.objects.create(key="folder:/own", label="own", added=timezone.now())
    job = Job.objects.create(kind="export", asked_by=admin)
    unit = Unit.objects.get()
    world.label.units.add(unit)
    run_label = unit.labels.create(text="blue cones", source="run", run=world.run)
    trial = PairwiseTrial.objects.create(name="open", owner=admin, sources=["agent", "person"])
    sides = {"text_a": "blue cones", "text_b": "red balls", "source_a": "agent", "source_b": "person"}
    pair = trial.pairs.create(position=1, unit=unit, unit_name=str(unit), label_a=run_label, **sides)
    Backbone.objects.create(
        key="openai", label="Vision-language model", model_names=["gpt-4o"], prices={"gpt-4o": [2.5, 10]}
    )
    ReviewQueue.objects.all().delete()  # while one reviews the run, its comments are hidden
    queue = ReviewQueue.objects.create(name="open", owner=admin)
    queue.items.create(run=make_run(admin, status="concluded"), position=1)
    layer = unit.layer
    labelled = make_run(admin, status="concluded", model=layer.model.name, layer=layer.name, unit=unit.number)
    labelled.conclusion = {"labels": ["blue cones"]}
    labelled.save()
    Backbone.objects.get_or_create(key="scripted", defaults={"label": "Scripted scientist"})
    asking = judged_images.make_waiting(unit)
    return {
        **{name: getattr(world, name).pk for name in ("autoencoder", "run", "job", "layer", "label", "circuit_search")},
        **make_study_ids(admin, world.run, unit),
        **make_circuit_ids(admin, unit),
        "observation": Observation.objects.filter(run=world.run).earliest("pk").pk,
        "waiting": waiting(admin).pk,
        "by_hand": by_hand(admin).pk,
        "share": Share.issue(world.run, admin, soon, names=False, comments=False)[0].pk,
        "preset": Preset.objects.create(owner=admin, name="kept", settings={"task": "describe"}).pk,
        "view": SavedView.objects.create(owner=admin, name="kept").pk,
        "export": Export.objects.create(job=job, what="runs", format="csv").pk,
        "model": model.pk,
        "dataset": dataset.pk,
        "stopped": Job.objects.create(kind="index", subject="folder:/own", status="stopped").pk,
        "token": ApiToken.issue(admin, "old")[0].pk,
        "invitation": Invitation.issue(admin, Role.VIEWER)[0].pk,
        "colleague": member("colleague", "RESEARCHER").pk,
        "thread": world.thread.pk,
        "comment": Comment.objects.get(thread=world.thread).pk,
        "queue": queue.pk,
        "concluded": make_run(admin, status="concluded").pk,
        "trial": trial.pk,
        "pair": pair.pk,
        "unit": unit.pk,
        "labelled": labelled.pk,
        "evaluation": evaluation(admin, "stopped").pk,
        "asking": asking.pk,
        "question": asking.questions.filter(expected=None).earliest("pk").pk,
        "moving": evaluation(admin, "queued").pk,
        "compared": compared(admin).pk,
        "sweep": swept(admin, "running").pk,
        "paused": swept(admin, "paused").pk,
        "failing": swept(admin, "running", "failed").pk,
        **webhooks(admin),
    }


def webhooks(owner: User) -> dict[str, int]:
    """One with a delivery that was given up, and one that is paused."""
    delivery, resting = make_given_up(owner), make_webhook(owner, "https://example.org/", active=False)
    return {"delivery": delivery.pk, "webhook": delivery.webhook_id, "resting": resting.pk}


def swept(owner: User, status: str, of_run: str = "queued") -> Sweep:
    """A sweep of one unit."""
    row = Sweep.objects.create(name=status, owner=owner, task="describe", selection={}, status=status, planned=1)
    RunQueue.objects.create(owner=owner, sweep=row, enabled=status == "running")
    make_run(owner, sweep=row, status=of_run)
    return row


def evaluation(owner: User, status: str) -> Evaluation:
    """One of spurious features whose only unit is still to be judged."""
    job = Job.objects.create(kind="evaluation", subject="own", asked_by=owner, status=status)
    row = Evaluation.objects.create(kind="spurious", name=f"{status} one", owner=owner, job=job, planned=True)
    row.items.create(position=1, group="seed 0", source="agent", unit_name="toybox / layer4 / unit 7")
    return row


def compared(owner: User) -> Evaluation:
    """One of a synthetic neuron that two sources have labelled."""
    row = Evaluation.objects.create(kind="synthetic", name="compared", owner=owner, planned=True)
    neuron = trials.unit(0, trials.layer("concept", ("ball",)))
    for position, (source, text) in enumerate((("agent", "balls"), ("one-shot", "red things")), 1):
        row.items.create(
            position=position,
            group="mono",
            source=source,
            unit=neuron,
            unit_name=str(neuron),
            label=text,
            status="done",
        )
    return row


def waiting(owner: User) -> Run:
    run = make_run(owner)
    transcript.append(run.pk, "started", started())
    transcript.append(run.pk, "blocked", Blocked(0, "The provider is away."))
    return run


def by_hand(owner: User) -> Run:
    run = make_run(owner, backbone="person")
    run.backbone = "person"
    run.save()
    transcript.append(run.pk, "started", started())
    transcript.append(run.pk, "waiting_for_person", decode("waiting_for_person", {"round": 1}))
    return run
