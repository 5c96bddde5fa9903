"""Comments: what threads hang on, who may write and read, mentions, edits, and words that are gone."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from experiments.comments import anchors, lists
from experiments.core import transcript
from experiments.models import AuditEntry, Comment, Event, Notification, ReviewQueue, Run, Thread
from experiments.models.comment import QUOTE_CHARS, TEXT_CHARS
from tests.support.builders import experiment, make_run, replied, started
from tests.support.people import member
from tests.support.pictures import logged, seen

pytestmark = pytest.mark.django_db
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)> javascript:alert(1) & \"'"


@pytest.fixture
def colleague(db: None) -> User:
    return member("colleague", "REVIEWER")


@pytest.fixture
def run(owner: User) -> Run:
    """A reply, and an experiment with two images."""
    run = make_run(owner)
    reply = replied(prose="Four of **five** exemplars hold a red ball.\n\nKeep a control.")
    transcript.append(run.pk, "started", started())
    transcript.append(run.pk, "reply", reply)
    transcript.append(run.pk, "experiment", experiment())
    transcript.append(run.pk, "result", logged(seen("a red ball", 38.4, "red"), seen("a blue cone", 4.0, "blue")))
    run.refresh_from_db()
    return run


def key_of(run: Run, title: str) -> str:
    return str(run.observations.get(title=title).image_id)


def say(client: Client, run: Run, text: str = "Too few.", **about: Any) -> Comment:
    response = client.post(f"/runs/{run.pk}/comments/start/", {"text": text, **about}, headers={"HX-Request": "true"})
    assert response.status_code == 200, response.headers
    return Comment.objects.latest("pk")


def refused(client: Client, address: str, **data: Any) -> str:
    """What a person is told whose form was not taken."""
    before = Comment.objects.count()
    response = client.post(address, data, headers={"HX-Request": "true"})
    assert response.status_code == 204
    assert Comment.objects.count() == before
    return str(response["HX-Trigger"])


def tab(client: Client, run: Run, query: str = "") -> str:
    return client.get(f"/runs/{run.pk}/?tab=comments{query}").content.decode()


def text_of(html: str) -> str:
    return " ".join(re.sub("<[^>]+>", " ", html).split())


# --- what threads hang on ----------------------------------------------------------------------------


def test_a_thread_hangs_on_anything_in_a_run(as_owner: Client, run: Run) -> None:
    places: list[dict[str, Any]] = [
        {},
        {"on": "event", "seq": 2},
        {"on": "experiment", "experiment": 1},
        {"on": "image", "experiment": 1, "image": key_of(run, "a blue cone")},
        {"on": "words", "seq": 2, "quote": "five exemplars", "before": "Four of", "after": "hold"},
    ]
    for number, about in enumerate(places):
        say(as_owner, run, f"Remark {number}", **about)
    page = text_of(tab(as_owner, run))
    for words in ("The run", "Event 2", "Experiment 1", "Image “a blue cone” of experiment 1", "five exemplars"):
        assert words in page
    assert all(f"Remark {number}" in page for number in range(5))


@pytest.mark.parametrize(
    ("about", "told"),
    [
        ({"on": "event", "seq": "99"}, "has no event 99"),
        ({"on": "event", "seq": "two"}, "no number of an event"),
        ({"on": "event", "seq": "9" * 40}, "no number of an event"),
        ({"on": "experiment", "experiment": "7"}, "has no experiment 7"),
        ({"on": "image", "experiment": "1", "image": "f" * 64}, "logged no image ffff"),
        ({"on": "words", "seq": "2", "quote": "words nobody wrote"}, "do not stand in event 2"),
        ({"on": "words", "seq": "2", "quote": " "}, "No words are chosen"),
        ({"on": "words", "seq": "2", "quote": "x" * (QUOTE_CHARS + 1)}, "hangs on at most"),
        ({"on": "moon"}, "A thread cannot be attached to"),
        ({"text": "  \n "}, "Write something first"),
        ({"text": "x" * (TEXT_CHARS + 1)}, "at most 10,000 characters"),
    ],
)
def test_what_is_not_there_is_told(as_owner: Client, run: Run, about: dict[str, str], told: str) -> None:
    assert told in refused(as_owner, f"/runs/{run.pk}/comments/start/", **({"text": "Look."} | about))


def test_an_event_opens_with_its_own_threads_and_those_of_its_experiment(as_owner: Client, run: Run) -> None:
    say(as_owner, run, "on the run")
    say(as_owner, run, "on the reply", on="event", seq=2)
    say(as_owner, run, "on the image", on="image", experiment=1, image=key_of(run, "a red ball"))
    say(as_owner, run, "on its start", on="event", seq=3)
    reply, result = (as_owner.get(f"/runs/{run.pk}/comments/at/{seq}/").content.decode() for seq in (2, 4))
    assert "on the reply" in reply
    assert "on the run" not in reply + result
    assert "on the image" not in reply
    assert "on the image" in result
    assert "on its start" in result
    assert as_owner.get(f"/runs/{run.pk}/comments/at/99/").status_code == 404


def test_a_new_thread_is_offered_on_what_the_address_names(as_owner: Client, run: Run) -> None:
    page = as_owner.get(f"/runs/{run.pk}/comments/at/2/", {"on": "words", "quote": "a red ball", "place": "7"})
    assert '<blockquote class="quote">a red ball</blockquote>' in page.content.decode()
    page = as_owner.get(f"/runs/{run.pk}/comments/at/2/", {"on": "words", "quote": "a green ball"})
    assert "The words chosen do not stand in event 2." in page.content.decode()
    image = as_owner.get(
        f"/runs/{run.pk}/comments/at/4/", {"on": "image", "experiment": 1, "image": key_of(run, "a red ball")}
    )
    assert 'name="image" value="' in image.content.decode()


def test_marks_say_how_many_stand_where(as_owner: Client, run: Run) -> None:
    key = key_of(run, "a red ball")
    say(as_owner, run, on="image", experiment=1, image=key)
    say(as_owner, run, on="experiment", experiment=1)
    say(as_owner, run, on="words", seq=2, quote="red ball", place=28)
    marks = as_owner.get(f"/runs/{run.pk}/comments/marks/").content.decode()
    assert 'data-spot="experiment-1" data-comments="2" data-open="2"' in marks
    assert f'data-image="{key}" data-comments="1"' in marks
    assert 'data-spot="e2" data-comments="1"' in marks
    assert ">red ball</q>" in marks
    assert 'data-open="3"' in marks


def test_words_that_are_gone_are_told(as_owner: Client, run: Run) -> None:
    said = say(as_owner, run, on="words", seq=2, quote="of five exemplars")
    assert "any more" not in tab(as_owner, run)
    event = Event.objects.get(run=run, seq=2)
    Event.objects.filter(pk=event.pk).update(payload={**event.payload, "prose": "Other words.", "text": "Other words."})
    assert "These words are no longer in event 2." in tab(as_owner, run)
    assert anchors.find_orphans(run, [said.thread]) == {said.thread_id}


# --- saying ------------------------------------------------------------------------------------------


def test_a_thread_goes_on_is_resolved_and_opened_by_a_reply(as_owner: Client, run: Run) -> None:
    thread = say(as_owner, run).thread
    as_owner.post(f"/threads/{thread.pk}/reply/", {"text": "Twelve more are on their way."})
    as_owner.post(f"/threads/{thread.pk}/resolve/", {"resolved": "yes"})
    assert "No comment yet" in tab(as_owner, run)
    assert "Resolved by owner" in tab(as_owner, run, "&show=resolved")
    as_owner.post(f"/threads/{thread.pk}/reply/", {"text": "They show nothing."})
    page = tab(as_owner, run)
    assert page.index("Too few.") < page.index("Twelve more") < page.index("They show nothing.")
    assert list(
        AuditEntry.objects.exclude(verb__startswith="person.").order_by("pk").values_list("verb", flat=True)
    ) == [
        "comment.written",
        "comment.written",
        "thread.resolved",
        "thread.reopened",
        "comment.written",
    ]


def test_an_edit_keeps_what_was_said_before(as_owner: Client, run: Run) -> None:
    said = say(as_owner, run, "Ten are enough.")
    as_owner.post(f"/comments/{said.pk}/edit/", {"text": "Twenty are enough."})
    as_owner.post(f"/comments/{said.pk}/edit/", {"text": "Twenty are enough."})
    page = tab(as_owner, run)
    assert page.count("Ten are enough.") == 1
    assert "Twenty are enough." in page
    assert "Edited" in page
    assert said.wordings.count() == 1


def test_a_deleted_comment_leaves_a_note_and_no_words(as_owner: Client, run: Run) -> None:
    said = say(as_owner, run, "A secret.")
    as_owner.post(f"/comments/{said.pk}/edit/", {"text": "Another secret."})
    as_owner.post(f"/comments/{said.pk}/delete/")
    page = tab(as_owner, run)
    assert "Deleted by owner" in page
    assert "secret" not in page
    assert not said.wordings.exists()
    assert "cannot be changed" in refused(as_owner, f"/comments/{said.pk}/edit/", text="Back.")


def test_nobody_changes_what_somebody_else_said(as_owner: Client, run: Run, client: Client, colleague: User) -> None:
    said = say(as_owner, run)
    client.force_login(colleague)
    for what in ("edit", "delete"):
        assert client.post(f"/comments/{said.pk}/{what}/", {"text": "Mine now."}).status_code == 403
    said.refresh_from_db()
    assert said.text == "Too few."
    assert f"/comments/{said.pk}/edit/" not in tab(client, run)


def test_a_viewer_reads_and_is_offered_no_field(as_owner: Client, run: Run, teammate: User) -> None:
    say(as_owner, run, on="event", seq=2)
    viewer = Client()
    viewer.force_login(teammate)
    for page in (tab(viewer, run), viewer.get(f"/runs/{run.pk}/comments/at/2/").content.decode()):
        assert "Too few." in page
        assert "<textarea" not in page
    assert "data-may-comment" not in viewer.get(f"/runs/{run.pk}/comments/marks/").content.decode()


@pytest.mark.parametrize("text", [HOSTILE, f"`{HOSTILE}`", f"@{HOSTILE}", f'https://x.org/"{HOSTILE}'])
def test_nothing_said_becomes_markup(as_owner: Client, run: Run, text: str) -> None:
    said = say(as_owner, run, text)
    as_owner.post(f"/comments/{said.pk}/edit/", {"text": f"{text} again"})
    page = tab(as_owner, run)
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert 'href="javascript' not in page


def test_a_form_works_without_scripts(as_owner: Client, run: Run) -> None:
    response = as_owner.post(f"/runs/{run.pk}/comments/start/", {"text": "Plain. @nobody"}, follow=True)
    page = response.content.decode()
    assert response.redirect_chain == [(f"/runs/{run.pk}/?tab=comments", 302)]
    assert "Plain." in page
    assert "not on this team: @nobody" in page


def test_a_comment_has_an_address_for_good(as_owner: Client, run: Run) -> None:
    first = say(as_owner, run, "The first.")
    for number in range(31):
        Comment.objects.create(thread=Thread.objects.create(run=run, on="run"), author=run.owner, text=f"{number}")
    assert "The first." not in tab(as_owner, run)
    response = as_owner.get(f"/comments/{first.pk}/")
    assert response["Location"].endswith(f"&comment={first.pk}#comment-{first.pk}")
    assert f'id="comment-{first.pk}"' in as_owner.get(response["Location"]).content.decode()


# --- mentions ----------------------------------------------------------------------------------------


def test_a_mention_is_told_and_a_stranger_is_plain_text(
    as_owner: Client, run: Run, colleague: User, stranger: User
) -> None:
    response = as_owner.post(
        f"/runs/{run.pk}/comments/start/",
        {"text": "Look, @colleague. And @stranger, @nobody; not `@colleague` nor me@colleague"},
        headers={"HX-Request": "true"},
    )
    page = response.content.decode()
    assert page.count('<b class="mention">') == 1
    assert '<b class="mention">@colleague</b>.' in page
    assert "not on this team: @stranger, @nobody" in str(response["HX-Trigger"])
    assert [told.user for told in Notification.objects.all()] == [colleague]
    assert not stranger.notifications.exists()


def test_a_thread_tells_those_in_it_once(as_owner: Client, run: Run, owner: User, colleague: User) -> None:
    thread = say(as_owner, run).thread
    other = Client()
    other.force_login(colleague)
    other.post(f"/threads/{thread.pk}/reply/", {"text": "No, @owner: enough."})
    other.post(f"/threads/{thread.pk}/reply/", {"text": "And more."})
    assert sorted(owner.notifications.values_list("kind", flat=True)) == ["mention", "reply"]
    as_owner.post(f"/threads/{thread.pk}/reply/", {"text": "@owner says so"})
    assert list(colleague.notifications.values_list("kind", flat=True)) == ["reply"]
    assert owner.notifications.count() == 2, "nobody is told of their own words"


def test_an_edit_tells_only_who_is_new_in_it(as_owner: Client, run: Run, colleague: User, teammate: User) -> None:
    said = say(as_owner, run, "@colleague look")
    as_owner.post(f"/comments/{said.pk}/edit/", {"text": "@colleague and @teammate look"})
    assert (colleague.notifications.count(), teammate.notifications.count()) == (1, 1)


def test_whom_to_mention_are_the_members(as_owner: Client, colleague: User, stranger: User) -> None:
    colleague.first_name, colleague.last_name = "Col", "League"
    colleague.save()
    people = as_owner.get("/comments/people/").json()["people"]
    assert people == [{"name": "colleague", "words": "Col League"}, {"name": "owner", "words": "owner"}]


# --- blindness and cost ------------------------------------------------------------------------------


def test_who_still_reviews_a_run_blind_sees_no_comment_on_it(
    as_owner: Client, run: Run, owner: User, colleague: User
) -> None:
    said = say(as_owner, run, "It is a fluke. @colleague", on="event", seq=2)
    queue = ReviewQueue.objects.create(name="blind", owner=owner, blind=True)
    queue.items.create(run=run, position=1)
    reviewer = Client()
    reviewer.force_login(colleague)
    assert lists.is_hidden_from(colleague, run)
    for address in ("?tab=comments", "comments/at/2/", "comments/marks/"):
        page = reviewer.get(f"/runs/{run.pk}/{address}").content.decode()
        assert "a fluke." not in page
        assert 'data-comments="' not in page
    assert "hidden from you until you have submitted" in tab(reviewer, run)
    assert f'href="/review/{queue.pk}/items/1/"' in tab(reviewer, run).partition("Review first")[2]
    assert reviewer.post(f"/runs/{run.pk}/comments/start/", {"text": "x"}).status_code == 403
    assert reviewer.post(f"/threads/{said.thread_id}/reply/", {"text": "x"}).status_code == 403
    assert "a fluke." not in reviewer.get("/notifications/").content.decode()
    assert "a fluke." in tab(as_owner, run)


def test_the_number_of_queries_does_not_grow(
    as_owner: Client, run: Run, colleague: User, django_assert_max_num_queries: Any
) -> None:
    said = say(as_owner, run, "@colleague", on="words", seq=2, quote="five exemplars")
    as_owner.post(f"/comments/{said.pk}/edit/", {"text": "again"})
    on_image = say(as_owner, run, on="image", experiment=1, image=key_of(run, "a red ball")).thread
    for count in (0, 8):
        for like in [said.thread, on_image] * count:
            copied(like)
        for address, most in (("?tab=comments", 35), ("comments/at/4/", 23), ("comments/marks/", 9)):
            with django_assert_max_num_queries(most):
                as_owner.get(f"/runs/{run.pk}/{address}")


def copied(thread: Thread) -> None:
    """The same thread again, with a comment that was edited."""
    thread.pk = None
    thread.save(force_insert=True)
    thread.comments.create(author=thread.run.owner, text="more").wordings.create(text="less")


def test_the_pages_of_an_experiment_and_an_image_show_what_is_said_of_them(
    as_owner: Client, run: Run, teammate: User
) -> None:
    key = key_of(run, "a red ball")
    say(as_owner, run, "An odd red.", on="image", experiment=1, image=key)
    say(as_owner, run, "An odd program.", on="experiment", experiment=1)
    page = as_owner.get(f"/runs/{run.pk}/experiments/1/").content.decode()
    assert "An odd red." in page
    assert "An odd program." in page
    image = as_owner.get(f"/images/{key}/").content.decode()
    assert f"Run {run.pk}: Image “a red ball” of experiment 1" in image
    assert "An odd program." not in image
