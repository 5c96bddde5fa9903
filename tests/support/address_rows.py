"""A row of every kind that stands in an address."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.utils import timezone

from experiments.models import (
    Comment,
    Dataset,
    Evaluation,
    Export,
    Job,
    Label,
    LabelCheck,
    Layer,
    Notification,
    PairwiseTrial,
    Preset,
    ReviewQueue,
    Run,
    SavedView,
    Share,
    Sweep,
    Thread,
    Unit,
    VisionModelRow,
)
from tests.support.addresses import KEY
from tests.support.autoencoders import make_autoencoder
from tests.support.circuits import make_circuit, make_circuit_search, make_studied
from tests.support.studies import make_study_ids
from tests.support.webhook_receiver import make_given_up


def make_ids(run: Run) -> dict[str, int]:
    """What stands in the addresses."""
    own = VisionModelRow.objects.create(name="own")
    layer = Layer.objects.create(model=own, position=0, name="fc", kind="logit", units=2)
    unit = Unit.objects.create(layer=layer, number=1)
    label = Label.objects.create(text="red", source="person")
    label.units.add(unit)
    dataset = Dataset.objects.create(key="folder:/own", label="own", added=timezone.now())
    view = SavedView.objects.create(owner=User.objects.create_user("leaver"), name="theirs")
    job = Job.objects.create(kind="index", subject="folder:/own", options={"model": "hf:own", "layers": ["fc"]})
    return {
        "run": run.pk,
        "export": Export.objects.create(job=Job.objects.create(kind="export"), what="runs", format="csv").pk,
        "model": VisionModelRow.objects.create(name="hf:own", revision="1", added=timezone.now()).pk,
        "dataset": dataset.pk,
        "job": job.pk,
        "view": view.pk,
        "preset": Preset.objects.create(owner=view.owner, name="theirs").pk,
        "share": Share.issue(run, run.owner, timezone.now(), names=False, comments=False)[0].pk,
        **said(run),
        "queue": queue_of(run).pk,
        "trial": PairwiseTrial.objects.create(name="theirs", owner=run.owner, sources=["agent", "person"]).pk,
        "evaluation": Evaluation.objects.create(name="theirs", kind="labels", owner=run.owner).pk,
        "sweep": Sweep.objects.create(name="theirs", owner=run.owner, task="describe", selection={}).pk,
        "check": LabelCheck.objects.create(key=KEY, unit=unit, text="red", options={}).pk,
        "label": label.pk,
        "autoencoder": make_autoencoder("theirs").pk,
        **make_study_ids(run.owner, run, unit),
        "circuit": make_circuit(run.owner, unit, "theirs").pk,
        "studied": make_studied("own").number,
        "circuit_search": make_circuit_search(layer, dataset).pk,
        "delivery": (delivery := make_given_up(run.owner)).pk,
        "webhook": delivery.webhook_id,
    }


def queue_of(run: Run) -> ReviewQueue:
    """A queue with this run to review."""
    queue = ReviewQueue.objects.create(name="theirs", owner=run.owner)
    queue.items.create(run=run, position=1)
    return queue


def said(run: Run) -> dict[str, int]:
    """A thread with a comment, and what its author was told."""
    thread = Thread.objects.create(run=run, on="run")
    comment = Comment.objects.create(thread=thread, author=run.owner, text="Too few.")
    told = Notification.objects.create(user=run.owner, kind="reply", words="Look.", url="/")
    return {"thread": thread.pk, "comment": comment.pk, "notification": told.pk}
