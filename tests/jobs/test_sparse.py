"""An auto-encoder as a job: trained on toybox-net, stopped in the middle, resumed, and offered as a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as current
from django.contrib.auth.models import User
from django.utils import timezone

from experiments.core import notify
from experiments.models import Job, JobStatus, Layer, SparseAutoencoderRow, VisionModelRow
from workers.jobs import long, registration
from workers.record.sparse_report import read_report

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("laboratory", "one_thread", "redis_url"),
]
OPTIONS = {"layer": "layer4", "dataset": "toybox", "latents": 96, "k": 8, "kind": "topk", "steps": 12, "seed": 0}


@pytest.fixture(autouse=True)
def enough_images(settings: Any, laboratory: None) -> None:
    settings.LAB_DATASET_IMAGES = 100


def make_job(by: User | None = None, **changes: Any) -> Job:
    return Job.objects.create(kind="sparse", subject="toybox", options=OPTIONS | changes, asked_by=by)


def work(job: Job) -> Job:
    long.work(job.pk)
    job.refresh_from_db()
    return job


def files(suffix: str) -> list[Path]:
    return sorted((Path(current.STATE) / "sparse").glob(f"*.{suffix}"))


def stop_at(job: Job, step: int, seen: list[int]) -> Any:
    """Progress that notes each step of the training and is stopped at one, as a worker's is."""
    told = long._reporter(job.topic, lambda: step in seen)

    def report(what: str, done: int, total: int) -> None:
        if what.startswith("Training") and total == OPTIONS["steps"]:
            seen.append(done)
            told(what, total, total)  # due at once
        else:
            told(what, done, total)

    return report


def test_one_that_was_stopped_continues_and_is_offered_as_a_model(owner: User) -> None:
    job, seen = make_job(owner, name="toys"), []
    status, words = long.outcome(job, stop_at(job, 5, seen))
    assert (status, words) == (JobStatus.STOPPED, "Stopped. What was done is kept.")
    assert [path.name for path in files("checkpoint")] == ["toys.checkpoint"]
    assert not SparseAutoencoderRow.objects.exists()
    resumed: list[int] = []
    status, words = long.outcome(job, stop_at(job, -1, resumed))
    assert status == JobStatus.DONE, words
    assert seen == [0, 1, 2, 3, 4, 5]
    assert resumed == [5, 6, 7, 8, 9, 10, 11, 12]
    assert words.startswith("sae:toys has 96 latents and is in the New run form: ")
    assert not files("checkpoint")
    model = VisionModelRow.objects.get(name="sae:toys")
    assert (model.base, model.added_by, model.available) == ("toybox", owner, True)
    assert (model.layers.get().name, model.layers.get().units) == ("layer4", 96)
    card = model.autoencoder.card
    assert (card["model_key"], card["dataset"], card["steps"], card["k"]) == ("toybox", "toybox", 12, 8)
    assert f"{card['quality']['unexplained']:.1%} of variance unexplained" in words


def test_a_worker_does_it_and_tells_how_far_it_is(owner: User) -> None:
    job = work(make_job(owner))
    assert job.status == JobStatus.DONE, job.result
    told = notify.read_report(job.topic)
    assert told
    assert told["done"] == told["total"]
    assert SparseAutoencoderRow.objects.get().model.name == "sae:toybox-layer4-topk-96-k8-seed0"


def test_the_same_again_keeps_its_report_and_other_weights_do_not(owner: User) -> None:
    work(make_job(name="toys"))
    SparseAutoencoderRow.objects.update(report={"stable": 0.5}, measured=timezone.now())
    assert work(make_job(name="toys")).status == JobStatus.DONE
    assert SparseAutoencoderRow.objects.get().report == {"stable": 0.5}
    other = work(make_job(name="toys", seed=1))
    assert other.status == JobStatus.FAILED
    assert "belongs to an auto-encoder of another recipe" in other.result
    files("safetensors")[0].unlink()
    assert work(make_job(name="toys", seed=1)).status == JobStatus.DONE
    row = SparseAutoencoderRow.objects.get()
    assert (row.report["fingerprint"], row.card["seed"]) == (row.card["fingerprint"], 1)


def test_one_is_measured_when_it_was_trained_and_again_when_somebody_asks(owner: User) -> None:
    work(make_job(name="toys"))
    row = SparseAutoencoderRow.objects.get()
    first, report = row.measured, read_report(row.report)
    assert first
    assert (report.name, report.latents, report.images) == ("toys", 96, 5)
    assert report.unexplained == pytest.approx(row.card["quality"]["unexplained"], abs=1e-6)
    assert report.output.measure == "binary_kl"
    SparseAutoencoderRow.objects.update(report={})
    again = work(Job.objects.create(kind="measure", subject="sae:toys"))
    assert (again.status, again.result) == ("done", "sae:toys was measured on 5 images that its training never saw.")
    row.refresh_from_db()
    assert row.measured > first
    assert read_report(row.report) == report
    gone = work(Job.objects.create(kind="measure", subject="sae:cars"))
    assert gone.status == JobStatus.FAILED
    assert "no sparse auto-encoder 'cars', only: toys" in gone.result


def test_one_on_another_is_refused() -> None:
    work(make_job(name="toys"))
    job = Job.objects.create(kind="sparse", subject="sae:toys", options=OPTIONS)
    assert work(job).status == JobStatus.FAILED
    assert "is itself an auto-encoder" in job.result
    assert Layer.objects.filter(kind="latent").count() == 1


def test_one_taken_off_the_list_comes_back_with_the_same_job(admin: User) -> None:
    work(make_job(admin, name="toys"))
    VisionModelRow.objects.all().delete()
    assert not SparseAutoencoderRow.objects.exists()
    assert work(make_job(admin, name="toys")).status == JobStatus.DONE
    assert SparseAutoencoderRow.objects.get().model == registration.model("sae:toys")
