"""Workers tell what they hold and do, and the Workers page shows it: through a real Redis."""

from __future__ import annotations

import re
import sys
import time
from types import ModuleType, SimpleNamespace
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.test import Client

from experiments.core import notify, worker_status
from experiments.display.number_format import size
from tests.support.builders import make_run
from workers.jobs import heartbeat as told
from workers.jobs import lease, worker
from workers.jobs.heartbeat import Heartbeat, summarize_report

pytestmark = pytest.mark.django_db

GIGA = 1 << 30
NET = {"name": "hf:microsoft/resnet-152", "bytes": 3 * GIGA // 2, "used": 42.0, "busy": False}
EYES = {"name": "toybox-eyes", "bytes": 300 * 1024, "used": 0.1, "busy": True}
MESSAGE = "7-0f8fad5b-d9cb-469f-a165-70867728950e"
OF_BEAT = ("f615a056-0b8e-4e6f-93f4-5d6a0b8c9d21", "12345678-1234-4234-8234-123456789012", "e2a19ead", "")
"""Beat names its messages by UUIDs, some of which begin like a number."""
REPORT = {
    "name": "lab:17",
    "device": "cuda:0",
    "precision": "float16",
    "threads": 4,
    "up": 3700.0,
    "budget": 4 * GIGA,
    "places": [EYES, NET],
    "jobs": [],
    "memory": {"of": "NVIDIA <H100>", "used": 20 * GIGA, "total": 80 * GIGA},
}


@pytest.fixture(autouse=True)
def with_redis(redis_url: str) -> None:
    """Every test here has an empty Redis."""


def page(client: Client, **headers: str) -> str:
    response = client.get("/settings/workers/", headers=headers)
    assert response.status_code == 200
    return response.content.decode()


def test_without_a_worker_it_says_how_to_start_one(as_owner: Client) -> None:
    text = page(as_owner)
    assert "No worker is here" in text
    assert "make run" in text
    assert 'href="/settings/workers/" aria-current="page"' in text


def test_without_redis_it_says_that_nothing_is_lost(as_owner: Client, settings) -> None:
    settings.REDIS_URL = "unix:///nowhere/redis.sock"
    notify.redis.cache_clear()
    assert not worker_status.publish_status("lab:17", REPORT)
    worker_status.remove_worker("lab:17")
    text = page(as_owner)
    assert "Redis is away" in text
    assert "safe in the database" in text


def test_it_shows_device_memory_and_models(as_owner: Client) -> None:
    assert worker_status.publish_status("lab:17", REPORT)
    text = page(as_owner)
    for words in ("lab:17", "NVIDIA &lt;H100&gt; (cuda:0)", "float16", "4 threads", "4 free", "Ready", "up 1 h 1 min"):
        assert words in text
    assert "<b>20.0 GB</b> of 80.0 GB" in text
    assert "<b>1.50 GB</b> of 4.00 GB" in text
    for words in ("hf:microsoft/resnet-152", "1.50 GB", "42 s ago", "toybox-eyes", "300 kB", "in use"):
        assert words in text
    assert "Nothing; it waits for work." in text


def test_files_that_a_worker_left_out_are_shown_with_the_reason(as_owner: Client) -> None:
    told = "'a<b>.glb': it has a skeleton; apply the pose."
    worker_status.publish_status("lab:17", REPORT | {"problems": [told]})
    text = page(as_owner)
    assert "<h3>Left out</h3>" in text
    assert "&#x27;a&lt;b&gt;.glb&#x27;: it has a skeleton; apply the pose." in text
    (row,) = as_owner.get("/api/v1/workers").json()["items"]
    assert row["problems"] == [told]
    worker_status.publish_status("lab:17", REPORT)
    assert "<h3>Left out</h3>" not in page(as_owner)


def test_each_loaded_name_is_said_once() -> None:
    other = [{**NET, "name": name} for name in ("resnet", "bert", "clip", "sam")]
    said = worker_status.describe_places(REPORT | {"places": [EYES, NET, EYES, *other]})
    assert said == "toybox-eyes (2 times), hf:microsoft/resnet-152, resnet, bert and 2 more"


def test_without_a_limit_or_models_it_says_so(as_owner: Client) -> None:
    worker_status.publish_status(
        "lab:17", REPORT | {"budget": 0, "places": [], "memory": {"of": "", "used": 5, "total": 9}}
    )
    text = page(as_owner)
    assert "no limit" in text
    assert "Nothing is loaded" in text
    assert "Memory of the process" in text


def test_it_shows_what_a_worker_does_and_links_to_its_runs(as_owner: Client, owner: User) -> None:
    run = make_run(owner, question="What is <b>it</b>?")
    notify.progress(run.pk, "Drawing", 3, 8)
    jobs = [
        {"name": "round", "row": run.pk, "seconds": 75.0},
        {"name": "workers.jobs.long.write_catalogue", "row": None, "seconds": 2.0},
        {"name": "workers.jobs.long.some_later_job", "row": 4, "seconds": 2.0},
        {"name": "round", "row": 999, "seconds": 2.0},
        {"name": "workers.jobs.long.work", "row": 999, "seconds": 2.0},
        {"name": "workers.jobs.long.write_exemplars", "row": 999, "seconds": 2.0},
    ]
    worker_status.publish_status("lab:17", REPORT | {"jobs": jobs})
    text = page(as_owner)
    for words in ("Working", "A round of a run", "What is &lt;b&gt;it&lt;/b&gt;?", f'href="/runs/{run.pk}/"'):
        assert words in text
    for words in ("Drawing: 3 of 8", "1:15", "Looking at every model", "Some later job", "Exemplars of a unit"):
        assert words in text


def test_a_silent_worker_is_shown_as_such_and_then_forgotten(as_owner: Client) -> None:
    worker_status.publish_status("lab:17", REPORT)
    notify.redis().expire("maia:worker:lab:17", worker_status.KEPT_SECONDS - 40)
    text = page(as_owner)
    assert re.search(r"No heartbeat for 4\d s", text), "the page may come a few seconds later"
    assert "gone silent" in text
    notify.redis().pexpire("maia:worker:lab:17", 1)
    wait_for(lambda: not notify.redis().exists("maia:worker:lab:17"))
    assert "No worker is here" in page(as_owner)


def test_workers_stand_in_order_and_one_that_leaves_is_gone(as_owner: Client) -> None:
    for name in ("b:2", "a:1"):
        worker_status.publish_status(name, REPORT | {"name": name})
    told_by = worker_status.alive_workers()
    assert told_by is not None
    assert [each["name"] for each in told_by] == ["a:1", "b:2"]
    worker_status.remove_worker("a:1")
    assert "a:1" not in page(as_owner)


def test_the_list_alone_comes_for_htmx(as_owner: Client) -> None:
    text = page(as_owner, HX_Request="true")
    assert text.startswith('<div id="workers"')
    assert "<nav" not in text


def test_a_viewer_may_look(client: Client, teammate: User) -> None:
    client.force_login(teammate)
    assert "Workers" in page(client)


def test_the_rail_leads_to_the_settings(as_owner: Client) -> None:
    assert "<span>Settings</span>" in as_owner.get("/runs/").content.decode()


# --- the worker's side ----------------------------------------------------------------------------------


def test_a_worker_says_what_it_does() -> None:
    here = Heartbeat(3)
    here.began_round(MESSAGE, 7)
    here.began(f"0-{uuid4()}", "workers.jobs.recovery.recover")
    for ours in OF_BEAT:
        here.began(ours, "workers.jobs.recovery.recover")
    report = here.report()
    assert [(job["name"], job["row"]) for job in report["jobs"]] == [
        ("round", 7),
        *[("workers.jobs.recovery.recover", None)] * (1 + len(OF_BEAT)),
    ]
    for ours in OF_BEAT:
        here.ended(ours)
    assert report["threads"] == 3
    assert report["device"] in {"auto", "cpu", "cuda"}
    assert 0 < report["memory"]["used"] < report["memory"]["total"]
    here.ended(MESSAGE)
    here.ended(MESSAGE)
    assert len(here.report()["jobs"]) == 1
    assert summarize_report(here.report()) != summarize_report(report)


def test_it_says_what_is_loaded_once_the_laboratory_is_there(
    settings, tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "workers.jobs.laboratory", raising=False)
    settings.LAB_MEMORY_GB, settings.STATE = 2, tmp_path
    assert told.describe_cache() == {"budget": 2 * GIGA, "places": []}
    from workers.jobs import laboratory as place

    monkeypatch.setitem(sys.modules, "workers.jobs.laboratory", place)
    place.build_laboratory.cache_clear()
    assert told.describe_cache()["places"] == []
    try:
        place.laboratory().describer("toybox")
        (found,) = told.describe_cache()["places"]
        assert found["bytes"] > 1024
        assert not found["busy"]
        assert told.describe_cache()["budget"] == 2 * GIGA
    finally:
        place.build_laboratory.cache_clear()


@pytest.mark.django_db(transaction=True)
def test_a_worker_joins_the_list_shows_its_jobs_and_leaves(monkeypatch: pytest.MonkeyPatch, settings) -> None:
    settings.WORKER_THREADS = 5
    monkeypatch.setattr(told, "LOOK_EVERY", 0.01)
    worker.start_worker()
    try:
        worker.job_began(task_id=MESSAGE, task=SimpleNamespace(name="workers.jobs.long.work"))
        wait_for(lambda: bool(seen()) and seen()[0]["jobs"])
        assert seen()[0]["threads"] == 5
        worker.job_ended(task_id=MESSAGE)
        wait_for(lambda: not seen()[0]["jobs"])
    finally:
        worker.leave()  # as Celery says it where nobody asked it to stop
        assert lease.stopping.is_set(), "rounds would go on in a process that is no more"
        lease.stopping.clear()
    assert seen() == []
    worker.job_began(task_id=MESSAGE, task=SimpleNamespace(name="workers.jobs.long.work"))


@pytest.mark.django_db(transaction=True)
def test_it_is_seen_again_after_a_look_that_failed(monkeypatch: pytest.MonkeyPatch, settings, caplog) -> None:
    """As at a start with CUDA, while another thread imports PyTorch: the module is there, and half empty."""
    monkeypatch.setattr(told, "LOOK_EVERY", 0.01)
    settings.LAB_DEVICE = "cuda"
    half = ModuleType("torch")
    half.cuda = ModuleType("torch.cuda")  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", half)
    worker.start_worker()
    try:
        wait_for(worker_status.has_worker)
        monkeypatch.setattr(half.cuda, "is_initialized", lambda: 1 / 0, raising=False)
        wait_for(lambda: "presence continues after a failure" in caplog.text)
        worker_status.remove_worker(here[0].name) if (here := worker.here) else None
        monkeypatch.delattr(half, "cuda")
        monkeypatch.setattr(here[0], "_last", float("-inf"))
        wait_for(worker_status.has_worker)
    finally:
        worker.leave()
        lease.stopping.clear()
    assert not worker_status.has_worker()
    assert caplog.text.count("presence continues after a failure") == 1


def test_every_place_says_the_same_of_the_workers(as_owner: Client) -> None:
    def says() -> tuple[bool, bool, bool]:
        rail = as_owner.get("/pulse/").content.decode()
        overview = as_owner.get("/").content.decode()
        workers = page(as_owner)
        return "No worker seen" not in rail, ">Ready</span>" in overview, ">Ready</span>" in workers

    assert says() == (False, False, False)
    worker_status.publish_status("lab:17", REPORT)
    assert says() == (True, True, True)
    notify.redis().expire("maia:worker:lab:17", worker_status.KEPT_SECONDS - worker_status.MAX_SILENT_SECONDS - 5)
    assert says() == (False, False, False)


def seen() -> list[dict[str, object]]:
    return worker_status.alive_workers() or []


def wait_for(condition) -> None:
    limit = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (None, "0 bytes"),
        (1023, "1023 bytes"),
        (2048, "2 kB"),
        (5 << 20, "5.0 MB"),
        (500 << 20, "500 MB"),
        (3 << 29, "1.50 GB"),
        (80 << 30, "80.0 GB"),
        (200 << 30, "200 GB"),
    ],
)
def test_sizes_are_short(count: int | None, words: str) -> None:
    assert size(count) == words
