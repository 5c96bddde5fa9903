"""What people are told of: once, live, theirs alone; the end of a run, and where a run waits."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from experiments.core import notifications, transcript
from experiments.core.actors import Actor
from experiments.display import prose
from experiments.models import Notification, ReviewQueue, Run
from experiments.reviews import actions
from tests.support.builders import make_run, replied, started
from workers.record.events import Blocked, Ended, WaitingForPerson
from workers.record.replies import Conclusion

pytestmark = pytest.mark.django_db


@pytest.fixture
def run(owner: User) -> Run:
    run = make_run(owner, question="What does it\nrespond to?")
    transcript.append(run.pk, "started", started())
    return run


def words(user: User) -> list[str]:
    return list(notifications.list_notifications(user).values_list("words", flat=True))


def test_the_same_is_told_once_until_it_is_read(owner: User) -> None:
    for _ in range(3):
        notifications.notify_person(owner, "reply", "Look  here", "/runs/1/")
    assert words(owner) == ["Look here"]
    assert notifications.mark_read(notifications.list_notifications(owner), owner) == 1
    notifications.notify_person(owner, "reply", "Look here", "/runs/1/")
    assert notifications.list_unread(owner).count() == 1


def test_long_words_are_cut(owner: User) -> None:
    notifications.notify_person(owner, "reply", "x" * 1000, "/")
    assert len(words(owner)[0]) == 300
    assert words(owner)[0].endswith("…")


@pytest.mark.parametrize(
    ("kind", "payload", "told"),
    [
        ("concluded", Ended("", Conclusion("Red.", ("red",))), "has concluded"),
        ("limit_reached", Ended("25 rounds."), "has reached a limit"),
        ("failed", Ended("No key."), "has failed"),
        ("cancelled", Ended("Stopped by somebody else."), "was cancelled"),
        ("blocked", Blocked(1, "No key."), "waits for a person"),
    ],
)
def test_the_owner_is_told_how_a_run_ends_or_that_it_waits(
    run: Run, owner: User, kind: str, payload: Any, told: str
) -> None:
    transcript.append(run.pk, "reply", replied())
    transcript.append(run.pk, kind, payload)
    assert words(owner) == [f"Your run {run.pk}, “What does it respond to?” {told}."]
    assert notifications.list_notifications(owner).get().url == f"/runs/{run.pk}/?at=3#e3"


def test_nobody_is_told_of_what_they_stopped_themselves(run: Run, owner: User) -> None:
    transcript.append(run.pk, "cancelled", Ended("Stopped by owner."))
    assert words(owner) == []


def test_who_writes_the_replies_is_told_of_their_turn_once(run: Run, owner: User) -> None:
    for number in (1, 2):
        transcript.append(run.pk, "waiting_for_person", WaitingForPerson(number))
        notifications.mark_read(notifications.list_notifications(owner), owner)
        Run.objects.filter(pk=run.pk).update(status="queued")
    assert len(words(owner)) == 1


# --- pages -------------------------------------------------------------------------------------------


def test_the_bell_counts_and_says_what_is_new(as_owner: Client, owner: User) -> None:
    assert 'href="/notifications/"' in as_owner.get("/runs/").content.decode()
    assert 'class="count"></span>' in as_owner.get("/notifications/bell/").content.decode()
    notifications.notify_person(owner, "reply", "Look.", "/runs/")
    known = notifications.list_notifications(owner).get().pk
    first = as_owner.get("/notifications/bell/")
    assert f"?after={known}" in first.content.decode()
    assert "HX-Trigger" not in first, "what was there before the page is not said aloud"
    notifications.notify_person(owner, "reply", "And here.", "/runs/")
    assert "And here." in as_owner.get(f"/notifications/bell/?after={known}")["HX-Trigger"]
    assert "2<span" in as_owner.get("/notifications/bell/").content.decode()


def test_following_one_reads_it_and_leads_there(as_owner: Client, owner: User) -> None:
    notifications.notify_person(owner, "reply", "Look.", "/runs/?tag=odd")
    row = notifications.list_notifications(owner).get()
    assert as_owner.get(f"/notifications/{row.pk}/")["Location"] == "/runs/?tag=odd"
    assert not notifications.list_unread(owner).exists()


def test_nobody_follows_or_reads_what_others_were_told(as_owner: Client, owner: User, teammate: User) -> None:
    notifications.notify_person(teammate, "reply", "For them.", "/")
    row = Notification.objects.get()
    assert as_owner.get(f"/notifications/{row.pk}/").status_code == 404
    as_owner.post("/notifications/read/", {"notification": row.pk})
    as_owner.post("/notifications/read/", {"all": "yes"})
    assert notifications.list_unread(teammate).count() == 1
    assert "For them." not in as_owner.get("/notifications/").content.decode()


def test_one_or_all_are_marked_as_read(as_owner: Client, owner: User) -> None:
    for number in range(3):
        notifications.notify_person(owner, "reply", f"Look {number}.", "/")
    first = notifications.list_notifications(owner).last()
    assert first
    as_owner.post("/notifications/read/", {"notification": first.pk})
    assert "Look 0." not in as_owner.get("/notifications/?show=unread").content.decode()
    assert as_owner.post("/notifications/read/", {}).status_code == 400
    assert as_owner.post("/notifications/read/", {"all": "yes"})["Location"] == "/notifications/"
    assert "All read" in as_owner.get("/notifications/?show=unread").content.decode()


def test_an_empty_page_says_what_will_stand_there(as_owner: Client) -> None:
    assert "Nothing yet" in as_owner.get("/notifications/").content.decode()
    assert "no such page" in as_owner.get("/notifications/?page=9").content.decode()


def test_a_page_costs_the_same_queries_however_many(
    as_owner: Client, owner: User, django_assert_max_num_queries: Any
) -> None:
    for count in (1, 50):
        for number in range(count):
            notifications.notify_person(owner, "reply", f"{count} {number}", "/")
        with django_assert_max_num_queries(14):
            as_owner.get("/notifications/")


# --- what people say ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("One\n\n  \ntwo\nthree", "<p>One</p><p>two<br>three</p>"),
        ("a < b & `c < d`", "<p>a &lt; b &amp; <code>c &lt; d</code></p>"),
        ("@owner, @owner. me@owner", '<p><b class="mention">@owner</b>, <b class="mention">@owner</b>. me@owner</p>'),
        ("`@owner` @owners", "<p><code>@owner</code> @owners</p>"),
        (
            "See https://x.org/a?b=1&c=2.",
            '<p>See <a href="https://x.org/a?b=1&amp;c=2" rel="nofollow noopener noreferrer">'
            "https://x.org/a?b=1&amp;c=2</a>.</p>",
        ),
        ("javascript:alert(1) ftp://x", "<p>javascript:alert(1) ftp://x</p>"),
        ("**no** [Markdown](x)", "<p>**no** [Markdown](x)</p>"),
    ],
)
def test_what_people_say_is_paragraphs_links_code_and_names(text: str, html: str) -> None:
    assert prose.render_words(text, {"owner"}) == html


def test_who_is_asked_to_review_is_told(run: Run, owner: User, teammate: User) -> None:
    queue = actions.make_queue(Actor(owner), Run.objects.all(), ReviewQueue(name="pass one"), [teammate, owner])
    assert words(teammate) == ["owner asks you to review 1 run in “pass one”."]
    assert notifications.list_notifications(teammate).get().url == f"/review/{queue.pk}/"
    assert words(owner) == []
