"""The queue on the Workers page: who waits for what, since when; and workers that take up nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from experiments.core import code_version, queue, worker_status
from experiments.core.system_names import SystemNameMasker
from experiments.installation.queue_status import MAX_LINES, SYNTHETIC, Waiting, WaitingLine, read_waiting
from experiments.models import CodeVersion, Evaluation, ReviewQueue, Run, RunQueue, Sweep, SweepStatus
from tests.support.builders import make_run
from tests.support.people import member
from workers.jobs import lease
from workers.jobs.heartbeat import Heartbeat, summarize_report

pytestmark = pytest.mark.django_db
PAGE, FOR_SCRIPTS = "/settings/workers/", "/api/v1/workers/queue"


@pytest.fixture(autouse=True)
def with_redis(redis_url: str) -> Iterator[None]:
    """Every test here has an empty Redis, and has read nothing of versions."""
    code_version.forget()
    yield
    code_version.forget()


def enqueue(owner: User, ago: float = 0, **fields: Any) -> Run:
    """A run in its queue, asked so many seconds ago."""
    run = make_run(owner, **fields)
    queue.enqueue(run.pk)
    Run.objects.filter(pk=run.pk).update(due=timezone.now() - timedelta(seconds=ago))
    return run


def sweep_of(owner: User, priority: int = 2, **fields: Any) -> Sweep:
    known = {"name": "All of layer4", "question": "What?", "task": "describe", "selection": {}, "priority": priority}
    sweep = Sweep.objects.create(owner=owner, **(known | fields))
    is_open = sweep.status == SweepStatus.RUNNING
    RunQueue.objects.create(owner=owner, sweep=sweep, weight=priority, enabled=is_open)
    return sweep


def read(viewer: User | None = None) -> Waiting:
    return read_waiting(SystemNameMasker(viewer))


def line_of(title: str, viewer: User | None = None) -> WaitingLine:
    return next(each for each in read(viewer).lines if each.title == title)


def page(client: Client) -> str:
    return client.get(PAGE).content.decode()


def test_nothing_waits(as_owner: Client, owner: User) -> None:
    enqueue(owner, status="concluded")
    assert read().lines == []
    text = page(as_owner)
    assert "The queue is empty, and nothing is under way." in text
    assert "queue-table" not in text


def test_a_line_counts_what_waits_what_is_under_way_and_what_is_at_work(owner: User) -> None:
    soon = timezone.now() + timedelta(seconds=20)
    enqueue(owner, 300)
    enqueue(owner, 60, model="resnet152")
    enqueue(owner, -60)
    enqueue(owner, 200, status="running")
    enqueue(owner, 900, status="running", lease_expires=soon)
    enqueue(owner, 900, status="paused")
    line = line_of("owner")
    assert (line.queued, line.under_way, line.held) == (3, 2, 1)
    assert line.models == {"toybox": 4, "resnet152": 1}
    assert line.waited is not None
    assert 300 <= line.waited < 900, "what is played at this moment does not wait"


def test_what_is_asked_for_later_has_not_waited(owner: User) -> None:
    enqueue(owner, -60)
    assert line_of("owner").since is None


def test_people_stand_before_sweeps_and_what_is_closed_last(owner: User) -> None:
    other = member("other", "RESEARCHER")
    paused, sweep = sweep_of(owner, name="paused", status="paused"), sweep_of(owner, 4)
    for run_of in (paused, sweep):
        enqueue(owner, sweep=run_of)
    enqueue(owner)
    enqueue(other)
    RunQueue.objects.filter(owner=owner, sweep=None).update(last_served=timezone.now())
    assert [each.title for each in read().lines] == ["other", "owner", "All of layer4", "paused"]


def test_work_is_shared_among_those_of_a_kind_by_weight(owner: User) -> None:
    for name, priority in (("high", 4), ("low", 1)):
        enqueue(owner, sweep=sweep_of(owner, priority, name=name))
    enqueue(owner, sweep=sweep_of(owner, 4, name="paused", status="paused"))
    enqueue(owner)
    shares = {each.title: each.share for each in read().lines}
    assert shares == {"owner": 1.0, "high": 0.8, "low": 0.2, "paused": None}


def test_a_closed_one_says_why_and_counts_for_no_wait(as_owner: Client, owner: User) -> None:
    sweep = sweep_of(owner, status="out_of_budget", reason="The budget of $1.00 is <used> up.")
    enqueue(owner, 500, sweep=sweep)
    assert line_of("All of layer4").closed == "Out of budget"
    assert read().waited is None
    text = page(as_owner)
    assert "The budget of $1.00 is &lt;used&gt; up." in text
    assert f"/runs/?sweep={sweep.pk}&amp;status=active" in text


def test_the_page_links_to_whose_runs_they_are(as_owner: Client, owner: User) -> None:
    enqueue(member("a&b@lab", "RESEARCHER"), 125)
    text = page(as_owner)
    assert "/runs/?owner=a%26b%40lab&amp;status=active" in text
    assert re.search(r"<b>1</b> run waits, the longest for 2 min \d+ s", text)


def test_runs_played_in_a_terminal_wait_for_nobody(as_owner: Client, owner: User) -> None:
    make_run(owner, status="running")
    assert (read().lines, read().in_terminals) == ([], 1)
    assert "1 other run is played in a terminal" in page(as_owner)


def test_a_sweep_whose_evaluation_plays_in_a_terminal_waits_for_no_worker(as_owner: Client, owner: User) -> None:
    evaluation = Evaluation.objects.create(owner=owner, name="Eight", kind="units")
    sweep = sweep_of(owner, evaluation=evaluation)
    enqueue(owner, sweep=sweep)
    RunQueue.objects.filter(sweep=sweep).update(enabled=False)
    assert [line.closed for line in read().lines] == ["In a terminal"]
    assert "In a terminal" in page(as_owner)


def test_synthetic_neurons_are_told_by_no_model(as_owner: Client, owner: User) -> None:
    hidden: dict[str, Any] = {"system_kind": "synthetic", "model": "synthetic:hayloft-eyes", "layer": "mono"}
    sweep = sweep_of(owner, name="hayloft-eyes, mono")
    run = enqueue(owner, sweep=sweep, **hidden)
    assert line_of("hayloft-eyes, mono").models == {SYNTHETIC: 1}
    ReviewQueue.objects.create(name="blind", owner=owner).items.create(run=run, position=1)
    reviewer = member("reviewer", "REVIEWER")
    assert line_of(f"Sweep {sweep.pk}", reviewer).queued == 1
    as_owner.force_login(reviewer)
    for path in (PAGE, FOR_SCRIPTS):
        assert "hayloft" not in as_owner.get(path).content.decode()


def test_scripts_read_the_same(as_owner: Client, owner: User) -> None:
    sweep = sweep_of(owner, 4, status="paused", reason="Paused by owner.")
    enqueue(owner, 60, sweep=sweep)
    make_run(owner, status="running")
    told = as_owner.get(FOR_SCRIPTS).json()
    (item,) = told["items"]
    since = item.pop("since")
    assert since.startswith("20")
    assert told["in_terminals"] == 1
    assert item == {
        "owner": "owner",
        "sweep": sweep.pk,
        "title": "All of layer4",
        "queued": 1,
        "under_way": 0,
        "held": 0,
        "models": {"toybox": 1},
        "weight": 4.0,
        "share": None,
        "open": False,
        "reason": "Paused by owner.",
    }


def test_any_number_of_runs_takes_three_queries_and_as_much_html(
    as_owner: Client, owner: User, django_assert_num_queries: Any
) -> None:
    sweep = sweep_of(owner)
    enqueue(owner)
    enqueue(owner, sweep=sweep)
    short = len(page(as_owner))
    run_queue = RunQueue.objects.get(sweep=sweep)
    row = {
        "owner": owner,
        "sweep": sweep,
        "run_queue": run_queue,
        "task": "describe",
        "layer": "layer4",
        "backbone": "scripted",
    }
    models = ("toybox", "alexnet", "dino", "clip", "resnet")
    Run.objects.bulk_create(Run(**row, model=models[number % 5], unit=number) for number in range(2_000))
    with django_assert_num_queries(3):
        found = read()
    assert found.queued == 2_002
    assert len(page(as_owner)) < short + 1_500
    assert "and 2 other models" in page(as_owner)


def test_a_long_queue_is_cut_and_says_so(as_owner: Client, owner: User) -> None:
    for number in range(MAX_LINES + 2):
        enqueue(owner, sweep=sweep_of(owner, name=f"sweep {number}"))
    text = page(as_owner)
    assert text.count('class="muted">sweep of') == MAX_LINES
    assert "and 2 others." in text


# --- workers that take up nothing -----------------------------------------------------------------------


def migrate_by_another() -> None:
    CodeVersion.objects.update_or_create(pk=1, defaults={"version": "0123456789ab", "schema": "0099_later"})
    code_version.forget()


def test_a_worker_of_another_version_says_so_on_the_page(as_owner: Client, owner: User) -> None:
    worker = Heartbeat(2)
    ready = worker.report()
    assert ready["refuses"] == ""
    worker_status.publish_status("lab:17", ready)
    assert "takes up runs" not in page(as_owner)
    migrate_by_another()
    code_version.explain_difference()  # as its threads do before they claim
    refusing = worker.report()
    assert summarize_report(refusing) != summarize_report(ready), "it is told at once"
    worker_status.publish_status("lab:17", refusing)
    text = page(as_owner)
    assert "Takes up no runs" in text
    assert "0123456789ab" in text
    assert "None of the workers takes up runs at this moment" in text
    assert "Takes up no runs" in as_owner.get("/").content.decode()
    told = as_owner.get("/api/v1/workers").json()["items"][0]
    assert told["state"] == "refuses"
    assert "0123456789ab" in told["refuses"]


def test_one_worker_that_refuses_is_no_trouble_for_the_queue(as_owner: Client) -> None:
    report = Heartbeat(2).report()
    worker_status.publish_status("lab:17", report)
    worker_status.publish_status("lab:18", report | {"name": "lab:18", "refuses": "Another version."})
    text = page(as_owner)
    assert "Another version." in text
    assert "None of the workers" not in text


def test_a_run_between_two_rounds_waits_since_it_was_given_back(owner: User) -> None:
    run = enqueue(owner, ago=900)
    claimed = lease.claim(run.pk)
    assert claimed
    with lease.hold_lease(claimed):
        assert line_of("owner").since is None
    line = line_of("owner")
    assert (line.under_way, line.held) == (1, 0)
    assert line.waited is not None
    assert line.waited < 300, "its round has not waited since it was asked"


def test_what_holds_runs_up_is_said_once(as_owner: Client, owner: User) -> None:
    for unit in range(3):
        enqueue(owner, unit=unit, waiting_reason="The disk is <b>full</b>.")
    enqueue(owner, unit=4, status="concluded", waiting_reason="Long ago.")
    assert read().outages == [("The disk is <b>full</b>.", 3)]
    said = page(as_owner)
    assert "3 runs are held up. The disk is &lt;b&gt;full&lt;/b&gt;." in said
    assert "Long ago" not in said
