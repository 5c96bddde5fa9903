"""Labels that a file brought are tested: by themselves where the installation does so, else by a button."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from experiments.core.actors import Actor
from experiments.exchange import label_tests
from experiments.models import (
    AuditEntry,
    Backbone,
    Evaluation,
    Import,
    Job,
    JobStatus,
    Label,
    Layer,
    Unit,
    VisionModelRow,
)
from tests.support.people import member
from workers.jobs import long

pytestmark = [pytest.mark.usefixtures("redis_url"), pytest.mark.django_db(transaction=True)]

TOYS, PHOTOGRAPHS = "synthetic:toybox-eyes", "hf:own/net"
FILE = b"layer,unit,description\nmono,0,balls\nmono,1,cubes\n"


@pytest.fixture(autouse=True)
def layers() -> None:
    for name in (TOYS, PHOTOGRAPHS):
        model = VisionModelRow.objects.create(name=name, available=True)
        Layer.objects.create(model=model, position=0, name="mono", path="mono", kind="synthetic", units=2_000)


def bring(client: Client, data: bytes = FILE, model: str = TOYS) -> Job:
    """An import of labels, as a worker leaves it."""
    file = SimpleUploadedFile("labels.csv", data)
    client.post("/imports/bring/", {"kind": "labels", "model": model, "source": "milan", "file": file})
    job = Import.objects.latest("pk").job
    long.work(job.pk)
    job.refresh_from_db()
    return job


def test_imported_labels_are_tested_by_themselves_once(as_owner: Client) -> None:
    job = bring(as_owner)
    row = Evaluation.objects.get()
    assert f"They are tested in evaluation {row.pk}." in job.result
    assert (row.kind, row.owner, row.options["sources"]) == ("labels", job.asked_by, ["import:milan"])
    assert (row.options["model"], row.options["units"], row.backbone) == (TOYS, 2, "")
    assert AuditEntry.objects.filter(verb="evaluation.started").count() == 1
    page = as_owner.get("/imports/").content.decode()
    assert f'href="{row.get_absolute_url()}"' in page
    assert "Test these labels" not in page
    assert "tested" not in bring(as_owner).result  # nothing new came
    more = bring(as_owner, b"layer,unit,description\nmono,2,cones\n").result
    assert f"The queued evaluation {row.pk} will test them too." in more
    Evaluation.objects.update(planned=True)
    bring(as_owner, b"layer,unit,description\nmono,3,rings\n")
    assert Evaluation.objects.count() == 2


def test_where_the_installation_tests_nothing_by_itself_one_button_does(as_owner: Client, settings: Any) -> None:
    settings.LABEL_CHECK = False
    assert "tested" not in bring(as_owner).result
    assert not Evaluation.objects.exists()
    page = as_owner.get("/imports/").content.decode()
    assert "Test these labels" in page
    assert "2 checks on images new to their author" in page
    fields = label_tests.plan_test(TOYS, "milan").fields
    assert all(f'name="{name}" value="{value}"' in page for name, value in fields.items())
    row = Evaluation.objects.get(pk=as_owner.post("/evaluations/new/", fields)["Location"].strip("/").split("/")[-1])
    assert row.options["units"] == 2


def test_no_more_are_begun_at_once_than_is_said(as_owner: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(label_tests, "MAX_TOYS", 1)
    assert "of 1 of their 2 units" in bring(as_owner).result
    assert Evaluation.objects.get().options["units"] == 1


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"available": False, "remedy": "Fetch its weights."}, "is not ready here"),
        ({"available": True}, "Photographs cannot be judged here"),
    ],
)
def test_what_cannot_be_tested_is_said_with_the_remedy(as_owner: Client, change: dict[str, Any], says: str) -> None:
    VisionModelRow.objects.filter(name=PHOTOGRAPHS).update(**change)
    job = bring(as_owner, model=PHOTOGRAPHS)
    assert job.status == JobStatus.DONE
    assert says in job.result
    page = as_owner.get("/imports/").content.decode()
    assert says in page
    assert "Test these labels" not in page
    assert not Evaluation.objects.exists()


def test_a_language_model_looks_at_photographs_within_the_allowance(as_owner: Client, settings: Any) -> None:
    settings.LABEL_CHECK_COST = 0.25
    row = Backbone.objects.create(key="openai", label="OpenAI", available=True, model_names=["gpt-9"], prices={})
    Backbone.objects.filter(pk=row.pk).update(prices={"gpt-9": [1.0, 2.0]})
    bring(as_owner, model=PHOTOGRAPHS)
    begun = Evaluation.objects.get()
    assert (begun.backbone, begun.backbone_model, begun.cost_limit) == ("openai", "gpt-9", 0.5)


def test_without_a_price_nothing_begins_by_itself(as_owner: Client) -> None:
    Backbone.objects.create(key="openai", label="OpenAI", available=True, model_names=["gpt-9"], prices={})
    assert "No price is known for gpt-9" in bring(as_owner, model=PHOTOGRAPHS).result
    assert not Evaluation.objects.exists()


def test_whoever_may_not_start_evaluations_is_told_and_their_labels_stay(db: None) -> None:
    viewer: User = member("vera", "VIEWER")
    unit = Unit.objects.create(layer=Layer.objects.get(model__name=TOYS), number=0)
    Label.objects.create(text="balls", source="milan").units.add(unit)
    assert "They are not tested: This needs the role" in label_tests.begin(Actor(viewer), TOYS, "milan")
    assert Label.objects.count() == 1
