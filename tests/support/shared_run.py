"""A run in which everything happened that can, and links to it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from django.test import Client
from django.utils import timezone
from PIL import Image as Pillow

from experiments.core import transcript
from experiments.models import Comment, Run, Share, Thread
from tests.support.builders import experiment, make_run, replied, result, started
from tests.support.people import member
from workers.jobs.images import ImagesInDatabase
from workers.protocols import Provenance
from workers.record.events import Blocked, Forked, HandedOver, LimitsChanged, Note, Paused, Payload, Resumed, Retrying
from workers.record.limits import Limits

OPENLY = {"show_names": True, "show_comments": True}
NAMES = ("Owner", "Fullname", "owner-login")


def picture(shade: int) -> str:
    images = ImagesInDatabase()
    key = images.remember(Pillow.new("RGB", (40, 30), (shade, 80, 120)), Provenance(origin="generated"))
    images.flush()
    return key


def keep(run: Run, *steps: tuple[str, Payload]) -> None:
    for kind, payload in steps:
        transcript.append(run.pk, kind, payload)
    run.refresh_from_db()


def eventful_run() -> Run:
    """Everything that can happen in a run, done by people whose names are easily found again."""
    owner = member("owner-login", "RESEARCHER")
    owner.first_name, owner.last_name = "Owner", "Fullname"
    owner.save()
    run = make_run(owner)
    who = "Owner Fullname"
    keep(
        run,
        ("started", started()),
        ("reply", replied(author="gpt-4o", prose="I expect red.")),
        ("experiment", experiment()),
        ("result", result(images=(picture(1), picture(2)))),
        ("retrying", Retrying(1, 1, "no route to host gpu.internal")),
        ("blocked", Blocked(1, "Put a key into /etc/secret")),
        ("resumed", Resumed(1, who)),
        ("paused", Paused(1, "owner-login")),
        ("resumed", Resumed(1, "owner-login")),
        ("note", Note(1, who, "Look at <b>blue</b>.")),
        ("limits", LimitsChanged(1, who, "more time", Limits(rounds=30), Limits())),
        ("handover", HandedOver(1, who, "person", label="a person")),
        ("reply", replied(2, author=who, prose="I looked myself.", by_person=True)),
        ("forked", Forked(2, who, 999, {"seed": "7"})),
        ("handover", HandedOver(2, who, "openai", label="gpt-4o")),
        ("reply", replied(3, author="owner-login", by_person=True, prose="Sent before it was handed over.")),
    )
    return run


def discuss(run: Run) -> Run:
    """The run with comments on it and on an event."""
    for thread in (Thread.objects.create(run=run, on="run"), Thread.objects.create(run=run, on="event", seq=2)):
        Comment.objects.create(thread=thread, author=run.owner, text="Too few, @owner-login.")
        Comment.objects.create(thread=thread, author=run.owner, text="Thought better.", deleted=timezone.now())
    return run


@dataclass
class Link:
    share: Share
    token: str

    @property
    def path(self) -> str:
        return f"/shared/{self.token}/"


def link(run: Run, days: float = 7, **shows: bool) -> Link:
    names, comments = shows.get("show_names", False), shows.get("show_comments", False)
    expires = timezone.now() + timedelta(days=days)
    return Link(*Share.issue(run, run.owner, expires, names=names, comments=comments))


def opened(path: str, client: Client | None = None) -> str:
    response = (client or Client()).get(path)
    assert response.status_code == 200
    return response.content.decode()
