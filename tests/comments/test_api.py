"""Comments and notifications through the API: the same rules as on the pages, with ETags on edits."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User

from experiments.models import Comment, Notification, ReviewQueue
from tests.support.api_world import KEY, Script, World, fill
from tests.support.people import member

pytestmark = pytest.mark.django_db


@pytest.fixture
def world(owner: User) -> World:
    return fill(owner)


@pytest.fixture
def script(owner: User) -> Script:
    return Script(owner)


def tag(script: Script, path: str) -> str:
    return str(script.get(path)["ETag"])


def problem(response: Any, kind: str) -> str:
    assert response["Content-Type"] == "application/problem+json", response.content
    assert response.json()["type"].endswith(f"#problem-{kind}"), response.content
    return str(response.json())


@pytest.mark.parametrize(
    "place",
    [
        {},
        {"on": "event", "seq": 2},
        {"on": "experiment", "experiment": 1},
        {"on": "image", "experiment": 1, "image": KEY},
        {"on": "words", "seq": 2, "quote": "Look"},
    ],
)
def test_a_comment_hangs_on_what_is_there(script: Script, world: World, place: dict[str, Any]) -> None:
    made = script.post(f"/runs/{world.run.pk}/threads", {"text": "Why `so`?", **place})
    assert made.status_code == 201, made.content
    assert made.json()["notice"] == ""
    comment = script.get(made["Location"].removeprefix("/api/v1")).json()
    assert comment == made.json()["comment"]
    thread = script.get(f"/threads/{comment['thread']}").json()
    assert {name: thread[name] for name in place} == place
    assert script.get(f"/runs/{world.run.pk}/threads").json()["items"][0] == thread


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        ({"on": "event", "seq": 99}, "invalid"),
        ({"on": "words", "seq": 2, "quote": "never said"}, "invalid"),
        ({"on": "moon"}, "invalid"),
        ({"text": " "}, "invalid"),
        ({"text": "a\x00b"}, "invalid"),
        ({"mood": "good"}, "invalid"),
    ],
)
def test_what_is_not_there_is_a_problem(script: Script, world: World, place: dict[str, Any], kind: str) -> None:
    problem(script.post(f"/runs/{world.run.pk}/threads", {"text": "Look.", **place}), kind)
    assert Comment.objects.count() == 1


def test_a_reply_that_is_sent_twice_stands_once(script: Script, world: World) -> None:
    path = f"/threads/{world.thread.pk}/comments"
    first, again = (script.post(path, {"text": "Once."}, idempotency_key="one") for _ in range(2))
    assert first.json() == again.json()
    assert world.thread.comments.count() == 2


def test_an_edit_wants_the_comment_as_it_is_now(script: Script, world: World) -> None:
    path = f"/comments/{world.thread.comments.get().pk}"
    problem(script.send("PATCH", path, {"text": "More."}), "if-match")
    seen = tag(script, path)
    edited = script.send("PATCH", path, {"text": "Far too few, @nobody"}, if_match=seen).json()
    assert edited["comment"]["earlier"][0]["text"] == "Too few."
    assert "not on this team: @nobody" in edited["notice"]
    problem(script.send("PATCH", path, {"text": "Late."}, if_match=seen), "changed")
    gone = script.send("DELETE", path, if_match=tag(script, path)).json()
    assert (gone["text"], gone["earlier"]) == ("", [])
    assert gone["deleted"]
    problem(script.send("PATCH", path, {"text": "Back."}, if_match=tag(script, path)), "conflict")


def test_nobody_edits_for_somebody_else(script: Script, world: World) -> None:
    path = f"/comments/{world.thread.comments.get().pk}"
    other = Script(member("colleague", "REVIEWER"))
    ReviewQueue.objects.all().delete()
    for method, body in (("PATCH", {"text": "Mine."}), ("DELETE", None)):
        problem(other.send(method, path, body, if_match=tag(other, path)), "forbidden")


def test_a_thread_is_resolved_as_it_is_now(script: Script, world: World) -> None:
    path = f"/threads/{world.thread.pk}"
    seen = tag(script, path)
    script.post(f"{path}/comments", {"text": "Wait."})
    problem(script.send("PATCH", path, {"resolved": True}, if_match=seen), "changed")
    done = script.send("PATCH", path, {"resolved": True}, if_match=tag(script, path)).json()
    assert done["resolved_by"] == "owner"


def test_who_reviews_blind_is_refused(world: World) -> None:
    reviewer = Script(member("colleague", "REVIEWER"))
    for path in (f"/runs/{world.run.pk}/threads", f"/threads/{world.thread.pk}", "/comments/{}"):
        response = reviewer.get(path.format(world.thread.comments.get().pk))
        assert "hidden from you" in problem(response, "forbidden")


def test_what_one_was_told_is_read_by_oneself_alone(script: Script, world: World, owner: User, teammate: User) -> None:
    for user in (owner, owner, teammate):
        Notification.objects.create(user=user, kind="reply", words="Look.", url="/")
    mine = script.get("/notifications?unread=true").json()["items"]
    assert len(mine) == 2
    theirs = teammate.notifications.get().pk
    assert script.post("/notifications/read", {"ids": [mine[0]["id"], theirs]}).json() == {"unread": 1}
    assert script.post("/notifications/read", {"all": True}).json() == {"unread": 0}
    assert len(script.get("/notifications").json()["items"]) == 2
    assert teammate.notifications.filter(read=None).count() == 1
    problem(script.post("/notifications/read", {}), "invalid")


def test_the_tags_of_an_experiment_are_set_as_they_are_now(script: Script, world: World) -> None:
    path = f"/runs/{world.run.pk}/experiments/1/tags"
    first = tag(script, path)
    assert script.send("PUT", path, {"tags": ["odd", "seen"]}, if_match=first).json() == {"tags": ["odd", "seen"]}
    problem(script.send("PUT", path, {"tags": []}, if_match=first), "changed")
    assert script.send("PUT", path, {"tags": ["odd"]}, if_match=tag(script, path)).json() == {"tags": ["odd"]}
    assert script.get(path).json() == {"tags": ["odd"]}
