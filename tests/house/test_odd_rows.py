"""Whatever stands in the database, every page opens: what cannot be drawn is drawn as unreadable.

The changes that find most are tried in every run, all of them with the benches.
"""

from __future__ import annotations

import re
import traceback
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from experiments.core import transcript
from experiments.models import (
    AuditEntry,
    Comment,
    Export,
    Job,
    Notification,
    Preset,
    ReviewQueue,
    Run,
    SavedView,
    Share,
    Unit,
)
from experiments.runs.page.pages import TABS
from tests import ROOT
from tests.support import api_world
from tests.support.addresses import ADMIN_READ, READ, RESEARCH, REVIEW_READ, SHARED
from tests.support.api_operations import READING, call
from tests.support.api_world import KEY, Script, World
from tests.support.builders import make_run, replied, started
from tests.support.circuits import make_studied
from tests.support.odd_rows import JSON, METHODS, spoil_columns, spoil_json
from workers.record.events import (
    Blocked,
    Ended,
    Forked,
    HandedOver,
    LimitsChanged,
    Note,
    Paused,
    Reminder,
    Resumed,
    Retrying,
    WaitingForPerson,
)
from workers.record.limits import Limits
from workers.record.replies import Conclusion, Hypothesis

TEMPLATES = ROOT / "templates"


def test_no_template_takes_the_key_of_a_stored_mapping_for_a_method() -> None:
    """`{% for … in row.items %}` finds the key "items" first: a filter gives the pairs instead."""
    pattern = re.compile(r"{% for \w+, \w+ in ([\w.]+)\.items\b")
    for path in TEMPLATES.rglob("*.html"):
        taken = set(pattern.findall(path.read_text()))
        assert not taken, f"{path.relative_to(TEMPLATES)}: {taken}: write `|pairs`"


@pytest.fixture
def world(admin: User) -> World:
    world = api_world.fill(admin)
    other = tell_all(admin, world.run)
    world.label.scores = {"auc": 0.5, "note": "by hand"}
    world.label.save()
    Unit.objects.get().labels.create(text="blue cones", source="run", run=other, scores={"r": 0.25})
    AuditEntry.objects.create(user=admin, name="admin", verb="queue.created", details=dict.fromkeys(METHODS, 1))
    AuditEntry.objects.create(user=admin, name="admin", verb="run.asked", details=["no", "mapping"])
    return world


def tell_all(admin: User, parent: Run) -> Run:
    """A run in which everything happened."""
    run = make_run(admin, unit=1, parent=parent, fork_round=1)
    limits = Limits(10, 1000, 5.0, 60.0)
    conclusion = Conclusion("It likes red.", ("red balls",), "It is red.", "Red ones score high.")
    reply = replied(2, hypotheses=(Hypothesis(1, "It likes red.", "supported", "2 against 1"),), conclusion=conclusion)
    told = (
        ("started", started()),
        ("forked", Forked(0, "admin", parent.pk, {"items": "abc", "Seed": "1"})),
        ("note", Note(0, "admin", "Look at blue.")),
        ("limits", LimitsChanged(0, "admin", "too few", limits, limits)),
        ("retrying", Retrying(1, 1, "It broke.")),
        ("blocked", Blocked(1, "The provider is away.")),
        ("resumed", Resumed(1, "admin")),
        ("handover", HandedOver(1, "admin", "person")),
        ("waiting_for_person", WaitingForPerson(1)),
        ("reply", reply),
        ("reminder", Reminder(2, "continue", "Go on.")),
        ("paused", Paused(2, "admin")),
        ("concluded", Ended("", conclusion)),
    )
    for kind, payload in told:
        transcript.append(run.pk, kind, payload)
    run.refresh_from_db()
    return run


@pytest.fixture
def places(admin: User, world: World) -> list[str]:
    """Every address that somebody may open, and the tabs of two runs."""
    run, concluded = world.run.pk, Run.objects.exclude(pk=world.run.pk).get().pk
    job = Job.objects.create(kind="export", asked_by=admin)
    shares = [
        Share.issue(Run.objects.get(pk=pk), admin, timezone.now() + timedelta(1), names=True, comments=True)
        for pk in (run, concluded)
    ]
    told = Notification.objects.create(user=admin, kind="reply", words="Look.", url="/")
    known = {
        "run": run,
        "export": Export.objects.create(job=job, what="runs", format="csv").pk,
        "model": world.layer.model_id,
        "autoencoder": world.autoencoder.pk,
        "circuit": world.circuit.pk,
        "study": world.study.pk,
        "studied": make_studied("toybox").number,
        "circuit_search": world.circuit_search.pk,
        "delivery": world.delivery.pk,
        "webhook": world.delivery.webhook_id,
        "dataset": 1,
        "job": job.pk,
        "preset": Preset.objects.create(owner=admin, name="kept", settings={"odd": "x"}).pk,
        "view": SavedView.objects.create(owner=admin, name="kept", shared=True).pk,
        "share": shares[0][0].pk,
        "thread": world.thread.pk,
        "comment": Comment.objects.get().pk,
        "notification": told.pk,
        "queue": ReviewQueue.objects.get().pk,
        "trial": world.trial.pk,
        "evaluation": world.evaluation.pk,
        "check": world.check.pk,
        "label": world.label.pk,
        "sweep": world.sweep.pk,
    }
    named = [path.format(**known) for path in (READ | RESEARCH | REVIEW_READ | ADMIN_READ).values()]
    own = [
        path.replace("/own/fc/", "/toybox/layer4/").replace("/own/", "/toybox/").replace("0" * 64, KEY)
        for path in named
    ]
    tabs = [f"/runs/{pk}/?tab={name}" for pk in (run, concluded) for name in TABS]
    shared = [path.format(token=token) for path in SHARED.values() for _, token in shares]
    compared = [
        f"/compare/?run={run}&run={concluded}",
        f"/circuits/compare/?a={world.circuit.pk}&b={world.circuit.pk}",
    ]
    return [*own, *tabs, *shared, *compared, "/experiments/?view=programs"]


def must_open(client: Client, script: Script, places: list[str], world: World) -> None:
    """No address fails, whoever asks, browser or script."""
    client.raise_request_exception = script.client.raise_request_exception = False
    answers = [(path, client.get(path)) for path in places]
    answers += [(f"API {path}", call(script, path, operation, world)) for path, operation in READING]
    failed = [f"{path}: {reason(answer)}" for path, answer in answers if answer.status_code >= 500]
    assert not failed, "\n".join(failed)


def reason(answer: Any) -> str:
    return "".join(traceback.format_exception(*answer.exc_info)[-4:]) if answer.exc_info else str(answer.status_code)


OFTEN = {"no object", "other types", "named like methods"}


@pytest.mark.parametrize("what", [pytest.param(each, marks=[] if each in OFTEN else pytest.mark.more) for each in JSON])
def test_every_page_opens_whatever_the_json_of_its_rows_holds(
    client: Client, admin: User, world: World, places: list[str], what: str
) -> None:
    client.force_login(admin)
    script = Script(admin)
    spoil_json(JSON[what])
    must_open(client, script, places, world)


@pytest.mark.parametrize(
    "huge", [pytest.param(False, id="empty"), pytest.param(True, id="huge", marks=pytest.mark.more)]
)
def test_every_page_opens_however_little_or_much_its_rows_hold(
    client: Client, admin: User, world: World, places: list[str], huge: bool
) -> None:
    client.force_login(admin)
    script = Script(admin)
    spoil_columns(huge)
    must_open(client, script, places, world)
