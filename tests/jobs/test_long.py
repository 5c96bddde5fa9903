"""Work that people ask for on the settings pages, done by a real laboratory on small parts."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from redis import Redis

from experiments.core import notify
from experiments.models import Dataset, Exemplar, Job, JobStatus, LayerIndex, Unit, UnitProfile, VisionModelRow
from workers.jobs import lease, long, registration

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("laboratory", "one_thread")]


def done(kind: str, subject: Path | str, by: User | None = None, **options: Any) -> Job:
    """The job, once it has been worked on."""
    job = Job.objects.create(kind=kind, subject=str(subject), options=options, asked_by=by)
    long.work(job.pk)
    job.refresh_from_db()
    return job


@pytest.fixture
def parts(checkpoint: Path, photographs: Path) -> tuple[VisionModelRow, Dataset]:
    return registration.model(str(checkpoint)), registration.dataset(f"folder:{photographs}")


def test_a_model_and_a_dataset_are_added_by_whoever_asked(owner: User, checkpoint: Path, photographs: Path) -> None:
    first, second = done("model", checkpoint, owner), done("dataset", photographs, owner, label="Photographs")
    assert (first.status, second.status) == (JobStatus.DONE, JobStatus.DONE), (first.result, second.result)
    assert "7 layers" in first.result
    assert (VisionModelRow.objects.get().added_by, Dataset.objects.get().added_by) == (owner, owner)
    assert (Dataset.objects.get().label, Dataset.objects.get().key) == ("Photographs", f"folder:{photographs}")


def test_links_out_of_a_folder_are_followed_if_the_job_says_so(owner: User, photographs: Path, tmp_path: Path) -> None:
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "all").symlink_to(photographs)
    refused = done("dataset", tmp_path / "linked", owner)
    assert refused.status == JobStatus.FAILED
    assert "none is an image that can be read. The first: all: it is a link that leads out" in refused.result
    job = done("dataset", tmp_path / "linked", owner, follow_links=True)
    assert job.result.startswith("linked has 10 images.")
    assert Dataset.objects.get().key == f"links:{tmp_path / 'linked'}"


@pytest.mark.parametrize(
    ("kind", "subject", "says"),
    [
        ("model", "nobody/nothing", "hf download nobody/nothing"),
        ("model", "nothing", "There is no model 'nothing'"),
        ("model", "/no/such/folder", "/no/such/folder"),
        ("dataset", "/no/such/folder", "There is no folder /no/such/folder"),
        ("dataset", "photographs", "is not an absolute path"),
        ("dataset", "folder:/no/such/folder", "There is no folder '/no/such/folder'"),
        ("index", "folder:/no/such/folder", "There is no dataset"),
    ],
)
def test_what_cannot_be_done_says_why_and_leaves_nothing(kind: str, subject: str, says: str) -> None:
    job = done(kind, subject, model="toybox", layers=["layer1"])
    assert job.status == JobStatus.FAILED
    assert says in job.result
    assert not VisionModelRow.objects.exists()
    assert not Dataset.objects.exists()


def test_an_index_is_made_and_names_what_could_not_be_read(
    parts: tuple[VisionModelRow, Dataset], redis_url: str
) -> None:
    model, dataset = parts
    job = done("index", dataset.key, model=model.name, layers=["layer1", "logits"])
    assert job.status == JobStatus.DONE, job.result
    assert "10 images indexed. 2 files are left out." in job.result
    assert set(LayerIndex.objects.values_list("layer__name", flat=True)) == {"layer1", "logits"}
    dataset.refresh_from_db()
    assert dataset.broken_count == 2
    assert {each["file"] for each in dataset.broken} == {"broken <b>.jpg", "empty.png"}
    assert not any(each["reason"].startswith(each["file"]) for each in dataset.broken)
    told = notify.read_report(job.topic)
    assert told
    assert told["done"] == told["total"] == 12


def test_work_that_was_stopped_goes_on_when_it_is_asked_for_again(parts: tuple[VisionModelRow, Dataset]) -> None:
    model, dataset = parts
    options = {"model": model.name, "layers": ["layer1"]}
    job = Job.objects.create(kind="index", subject=dataset.key, options=options, stop_requested=True)
    long.work(job.pk)
    job.refresh_from_db()
    assert job.status == JobStatus.STOPPED
    assert not LayerIndex.objects.exists()
    Job.objects.update(status=JobStatus.QUEUED, stop_requested=False)
    long.work(job.pk)
    job.refresh_from_db()
    assert job.status == JobStatus.DONE, job.result


def test_work_of_a_worker_that_stops_waits_for_the_next(parts: tuple[VisionModelRow, Dataset]) -> None:
    model, dataset = parts
    lease.stopping.set()
    try:
        job = done("index", dataset.key, model=model.name, layers=["layer1"])
    finally:
        lease.stopping.clear()
    assert job.status == JobStatus.QUEUED


def test_work_is_done_once(checkpoint: Path) -> None:
    for status in (JobStatus.RUNNING, JobStatus.DONE, JobStatus.STOPPED, JobStatus.FAILED):
        job = Job.objects.create(kind="model", subject=str(checkpoint), status=status)
        long.work(job.pk)
    long.work(99_999)
    assert not VisionModelRow.objects.exists()


def test_work_of_which_nothing_is_heard_is_enqueued_again(redis_url: str) -> None:
    old = timezone.now() - timedelta(minutes=5)
    died = Job.objects.create(kind="model", subject="a/b", status=JobStatus.RUNNING, beat=old)
    lost = Job.objects.create(kind="model", subject="a/b", beat=old)
    Job.objects.create(kind="model", subject="a/b", status=JobStatus.RUNNING)
    Job.objects.create(kind="model", subject="a/b", status=JobStatus.DONE, beat=old)
    long.recover()
    long.recover()
    with Redis.from_url(redis_url) as redis:
        waiting = [json.loads(message)["headers"]["argsrepr"] for message in redis.lrange("long", 0, -1)]
    assert sorted(waiting) == [f"({died.pk},)", f"({lost.pk},)"]
    died.refresh_from_db()
    assert died.status == JobStatus.QUEUED


def test_the_exemplars_of_a_unit_are_written_with_its_figures(
    parts: tuple[VisionModelRow, Dataset], redis_url: str
) -> None:
    model, dataset = parts
    for layer in (model.layers.get(name="layer2"), model.layers.get(name="logits")):
        unit = Unit.objects.create(layer=layer, number=2)
        profile = UnitProfile.objects.create(unit=unit, dataset=dataset)
        long.write_exemplars(profile.pk)
        profile.refresh_from_db()
        assert profile.written, profile.problem
        assert profile.quantile is not None
        assert profile.maximum is not None
        assert sum(profile.histogram["counts"]) == 10
        assert 0 < profile.exemplars.count() <= 10
        assert LayerIndex.objects.filter(layer=layer, dataset=dataset).exists()
    written = Exemplar.objects.count()
    long.write_exemplars(profile.pk)
    assert Exemplar.objects.count() == written


def test_exemplars_that_cannot_be_written_say_why(parts: tuple[VisionModelRow, Dataset], redis_url: str) -> None:
    model, dataset = parts
    Dataset.objects.update(key="folder:/no/such/folder")
    unit = Unit.objects.create(layer=model.layers.get(name="layer2"), number=2)
    profile = UnitProfile.objects.create(unit=unit, dataset=dataset)
    long.write_exemplars(profile.pk)
    profile.refresh_from_db()
    assert not profile.written
    assert "There is no folder '/no/such/folder'" in profile.problem


def test_the_exemplars_of_a_whole_layer_are_written_once(parts: tuple[VisionModelRow, Dataset], redis_url: str) -> None:
    model, dataset = parts
    layer = min(model.layers.all(), key=lambda each: each.units)
    for _ in range(2):
        job = done("index", dataset.key, model=model.name, layers=[layer.name], exemplars=True)
        assert job.status == JobStatus.DONE, job.result
        assert f"Exemplars of {layer.units} of {layer.units} units are there." in job.result
    profiles = UnitProfile.objects.filter(unit__layer=layer, written__isnull=False)
    assert profiles.count() == layer.units
    assert Exemplar.objects.filter(profile__in=profiles, rank=1).count() == layer.units
