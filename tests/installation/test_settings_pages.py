"""The settings pages for models and datasets: empty, full, under way, failed; what they ask of workers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from redis import Redis

from experiments.core import notify
from experiments.models import Backbone, Dataset, Job, JobStatus, Layer, LayerIndex, Toolset, VisionModelRow
from tests.support.people import member

pytestmark = pytest.mark.django_db
MODELS, DATASETS = "/settings/models/", "/settings/datasets/"
MISSING = {"available": False, "remedy": "It is not on this machine. Get it: hf download some/thing"}


@pytest.fixture
def admin(client: Client) -> Client:
    client.force_login(member("admin", "ADMIN"))
    return client


def fill(models: int = 1) -> None:
    """A model with six layers, as many more as wanted, one that is missing; two datasets; both backbones."""
    sets = [Dataset.objects.create(key="toybox", label="Toys", images=3000)]
    sets.append(Dataset.objects.create(key="folder:/data/<b>", label="Birds <b>", images=12, added=timezone.now()))
    for number in range(models):
        model = VisionModelRow.objects.create(name=f"hf:own/{number}", label="own", revision="1", added=timezone.now())
        for position in range(6):
            kind = {"kind": "conv", "units": 8, "path": f"stage.{position}"}
            layer = Layer.objects.create(model=model, position=position, name=f"layer{position}", **kind)
            for dataset in sets:
                LayerIndex.objects.create(layer=layer, dataset=dataset)
        Job.objects.create(kind="index", subject="toybox", options={"model": model.name, "layers": ["layer1"]})
    VisionModelRow.objects.create(name="hf:some/thing", label="Some thing", **MISSING)
    Backbone.objects.create(key="openai", label="Language model", model_names=["gpt-4o"])
    Toolset.objects.create(key="diffusion", label="Photographs", **MISSING)


def text(client: Client, path: str, **headers: str) -> str:
    response = client.get(path, headers={"HX-Request": "true", **headers} if headers else {})
    assert response.status_code == 200
    return response.content.decode()


@pytest.mark.parametrize("path", [MODELS, DATASETS])
def test_before_a_worker_has_looked_the_page_says_so(as_owner: Client, path: str) -> None:
    assert "No worker has looked yet" in text(as_owner, path)


def test_models_stand_there_with_what_is_missing_and_the_command_to_copy(admin: Client) -> None:
    fill()
    page = text(admin, MODELS)
    assert page.count("<pre><code>hf download some/thing</code></pre>") == 2
    assert "6 layers" in page
    assert "48 units" in page
    assert "gpt-4o" in page
    model = VisionModelRow.objects.get(name="hf:own/0")
    assert f"/settings/models/{model.pk}/remove/" in page
    layers = text(admin, f"/settings/models/{model.pk}/layers/")
    assert layers.count("<tr>") == 7
    assert "stage.3" in layers


def test_datasets_stand_there_with_their_indexes_and_broken_files(admin: Client) -> None:
    fill()
    broken = [{"file": f"<script>{number}.jpg", "reason": "it is no image"} for number in range(60)]
    Dataset.objects.filter(images=12).update(broken=broken, broken_count=1234)
    page = text(admin, DATASETS)
    assert "Birds &lt;b&gt;" in page
    assert page.count("it is no image") == 50
    assert "1,234 files left out" in page
    assert "and 1184 more" in page
    assert "<script>0" not in page
    assert page.count('<span class="label">layer5</span>') == 2


@pytest.mark.parametrize("path", [MODELS, DATASETS])
def test_a_longer_list_takes_no_more_queries(
    admin: Client, path: str, redis_url: str, django_assert_num_queries: Any
) -> None:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    fill(1)
    with CaptureQueriesContext(connection) as few:
        text(admin, path)
    for kind in (LayerIndex, Layer, VisionModelRow, Dataset, Backbone, Toolset, Job):
        kind.objects.all().delete()
    fill(5)
    with django_assert_num_queries(len(few)):
        text(admin, path)


def waiting(redis_url: str) -> list[tuple[str, str]]:
    with Redis.from_url(redis_url) as redis:
        messages = [json.loads(message)["headers"] for message in redis.lrange("long", 0, -1)]
    return [(message["task"], message["argsrepr"]) for message in messages]


def test_adding_is_asked_of_a_worker_and_nothing_is_touched_here(
    admin: Client, redis_url: str, django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        assert admin.post(f"{MODELS}add/", {"name": " hf:own/model "})["Location"] == MODELS
        admin.post(f"{MODELS}add/", {"name": "hf:own/model"})
        assert admin.post(f"{DATASETS}add/", {"place": "/data/x", "label": "X"})["Location"] == DATASETS
        admin.post(f"{DATASETS}add/", {"place": "/data/y", "follow_links": "1"})
    jobs = Job.objects.order_by("pk")
    assert [(job.kind, job.subject, job.options) for job in jobs] == [
        ("model", "hf:own/model", {}),
        ("dataset", "/data/x", {"label": "X"}),
        ("dataset", "/data/y", {"label": "", "follow_links": True}),
    ]
    assert sorted(waiting(redis_url)) == sorted(("workers.jobs.long.work", f"({job.pk},)") for job in jobs)
    assert "hf:own/model" in text(admin, MODELS)


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        (f"{MODELS}add/", {"name": ""}),
        (f"{MODELS}add/", {"name": "x" * 201}),
        (f"{DATASETS}add/", {"place": "  "}),
        (f"{DATASETS}add/", {"place": "/" * 481}),
        (f"{DATASETS}add/", {"place": "/data", "label": "x" * 201}),
    ],
)
def test_what_cannot_be_added_comes_back_with_the_reason(admin: Client, path: str, sent: dict[str, str]) -> None:
    response = admin.post(path, sent)
    assert response.status_code == 400
    page = response.content.decode()
    assert page.count('aria-invalid="true"') == 1
    assert all(value.strip() in page for value in sent.values())
    assert not Job.objects.exists()


def test_what_was_added_can_be_removed_and_nothing_else(admin: Client) -> None:
    fill()
    named, own = Dataset.objects.get(key="toybox"), Dataset.objects.get(images=12)
    assert admin.post(f"{DATASETS}{named.pk}/remove/").status_code == 404
    assert admin.post(f"{DATASETS}{own.pk}/remove/").status_code == 302
    assert admin.post(f"{MODELS}{VisionModelRow.objects.get(label='own').pk}/remove/").status_code == 302
    assert admin.post(f"{MODELS}{VisionModelRow.objects.get(available=False).pk}/remove/").status_code == 404
    assert [row.key for row in Dataset.objects.all()] == ["toybox"]


def test_a_researcher_starts_stops_and_resumes_an_index(
    as_owner: Client, owner: User, redis_url: str, django_capture_on_commit_callbacks: Any
) -> None:
    fill()
    Job.objects.all().delete()
    sent = {"dataset": "toybox", "model": "hf:own/0", "layers": ["layer1", "layer4"]}
    with django_capture_on_commit_callbacks(execute=True):
        as_owner.post(f"{DATASETS}index/", sent)
    job = Job.objects.get()
    assert (job.options, job.asked_by) == ({"model": "hf:own/0", "layers": ["layer1", "layer4"]}, owner)
    Job.objects.update(status=JobStatus.RUNNING)
    notify.keep_report(job.topic, "Indexing (2 images a second, 3 min left)", 40, 400)
    page = text(as_owner, DATASETS, **{"HX-Target": "work"})
    assert "3 min left): 40 of 400" in page
    assert "every 1s" in page
    assert 'id="list"' not in page
    as_owner.post(f"/settings/jobs/{job.pk}/stop/")
    job.refresh_from_db()
    assert job.stop_requested
    assert "Stopping…" in text(as_owner, DATASETS)
    Job.objects.update(status=JobStatus.STOPPED, result="Stopped. What was done is kept.")
    page = text(as_owner, DATASETS, **{"HX-Target": "work"})
    assert "every 1s" not in page
    assert 'id="list" class="list" hx-swap-oob="true"' in page
    with django_capture_on_commit_callbacks(execute=True):
        as_owner.post(f"/settings/jobs/{job.pk}/resume/")
    job.refresh_from_db()
    assert (job.status, job.stop_requested) == (JobStatus.QUEUED, False)
    as_owner.post(f"/settings/jobs/{job.pk}/stop/")
    job.refresh_from_db()
    assert job.status == JobStatus.STOPPED
    assert len(waiting(redis_url)) == 2


def test_work_that_has_ended_is_not_started_again_by_an_old_button(as_owner: Client) -> None:
    job = Job.objects.create(kind="index", subject="toybox", status=JobStatus.DONE, options={"layers": []})
    as_owner.post(f"/settings/jobs/{job.pk}/resume/")
    as_owner.post(f"/settings/jobs/{job.pk}/stop/")
    job.refresh_from_db()
    assert (job.status, job.stop_requested) == (JobStatus.DONE, False)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"dataset": "birds"}, "Choose a dataset"),
        ({"model": "hf:some/thing"}, "Choose a model"),
        ({"layers": []}, "at least one layer"),
        ({"layers": ["<layer9>"]}, "has no layer “&lt;layer9&gt;”"),
    ],
)
def test_an_index_that_cannot_be_made_is_not_asked_for(as_owner: Client, changes: dict[str, Any], says: str) -> None:
    fill()
    Job.objects.all().delete()
    sent = {"dataset": "toybox", "model": "hf:own/0", "layers": ["layer1"]} | changes
    response = as_owner.post(f"{DATASETS}index/", sent)
    assert response.status_code == 400
    assert says in response.content.decode()
    assert not Job.objects.exists()


def test_the_form_lists_the_layers_of_the_model_that_is_picked(as_owner: Client) -> None:
    fill(2)
    page = text(as_owner, f"{DATASETS}?model=hf:own/1", **{"HX-Target": "index-layers"})
    assert "Layers of hf:own/1" in page
    assert page.count("checked") == 6
    assert "<html" not in page


def test_a_refresh_is_asked_of_a_worker_and_shows_how_far_it_is(
    as_owner: Client, redis_url: str, django_capture_on_commit_callbacks: Any
) -> None:
    VisionModelRow.objects.create(name="toybox")
    with django_capture_on_commit_callbacks(execute=True):
        as_owner.post(f"{MODELS}refresh/")
    assert [task for task, _ in waiting(redis_url)] == ["workers.jobs.long.write_catalogue"]
    notify.keep_report("catalogue", "Looking at toybox", 3, 9)
    assert "Looking at toybox" in text(as_owner, MODELS)
    notify.keep_report("catalogue", "Looked at everything", 9, 9)
    assert "every 1s" not in text(as_owner, MODELS)
