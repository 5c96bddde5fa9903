"""What people say of a run is found: by who may see it at that moment, where it stands, as it is now."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from experiments.core import tagging, transcript
from experiments.core.actors import Actor
from experiments.core.search_index import words
from experiments.models import (
    Comment,
    ImportedOpinions,
    Observation,
    Review,
    ReviewQueue,
    ReviewState,
    Run,
    SearchText,
    Tag,
    TextKind,
)
from experiments.reviews import actions
from experiments.search import finding
from tests.support.builders import make_run
from tests.support.bundles import full_run
from tests.support.people import member
from tests.support.reviewing import queue_of, submit, taken
from workers.record.events import Note

pytestmark = pytest.mark.django_db
NEW = ("note", "comment", "review", "final", "tag")


@pytest.fixture(params=["compared one by one", "from the index"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "from the index":
        monkeypatch.setattr(finding, "WALKED", 1)


def found(viewer: User | None, typed: str) -> list[tuple[str, str]]:
    page = finding.find(words.parse_words(typed).terms, finding.SearchScope(), viewer=viewer)
    rows = SearchText.objects.in_bulk(page.keys)
    return [(rows[key].kind, rows[key].text) for key in page.keys]


def give(queue: ReviewQueue, user: User, note: str, label: str = "") -> Review:
    """A review submitted so long ago that it stands."""
    review = taken(queue, user)
    submit(review, user, note=note, corrected_label=label)
    Review.objects.filter(pk=review.pk).update(submitted=timezone.now() - timedelta(hours=1))
    return review


def settle(queue: ReviewQueue, user: User, label: str, reason: str) -> None:
    actions.settle_item(Actor(user), queue.items.get().pk, "accept", label, reason)


def comment(run: Run, client: Client, text: str) -> Comment:
    client.post(f"/runs/{run.pk}/comments/start/", {"on": "run", "text": text}, headers={"HX-Request": "true"})
    return Comment.objects.latest("pk")


def places(client: Client, typed: str) -> list[tuple[str, str]]:
    """Kind and address of what the API finds."""
    return [(hit["kind"], hit["url"]) for hit in client.get("/api/v1/search", {"q": typed}).json()["items"]]


# --- what is found, and where it leads ---


def test_notes_comments_and_tags_are_found_where_they_stand(way: None, owner: User, as_owner: Client) -> None:
    run = full_run(owner)
    alive = make_run(owner)
    transcript.append(alive.pk, "note", Note(1, "owner", "Look at the снег, please."))
    note = comment(run, as_owner, "This is circular.")
    experiment, image = run.experiments.get(), Observation.objects.filter(run=run).earliest("pk")
    for row in (run, experiment, image):
        tagging.tag(Actor(None), row, "odd one")
    assert places(as_owner, "снег") == [("note", f"/runs/{alive.pk}/?at=1#e1")]
    assert places(as_owner, "circular") == [("comment", f"/comments/{note.pk}/")]
    there = f"/runs/{run.pk}/?at={experiment.seq}#e{experiment.seq}"
    assert sorted(places(as_owner, "odd on")) == sorted([("tag", f"/runs/{run.pk}/"), ("tag", there), ("tag", there)])
    page = as_owner.get("/search/", {"q": "odd one"}).content.decode()
    assert all(words in page for words in ("of an image", "of an experiment", "of the run", "<img"))
    assert "This is <mark>circular</mark>." in as_owner.get("/jump/", {"q": "circular"}).content.decode()


def test_a_tag_is_found_as_long_as_it_is_there(owner: User) -> None:
    run = full_run(owner)
    rows = [run, run.experiments.get(), Observation.objects.filter(run=run).earliest("pk")]
    for row in rows:
        tagging.tag(Actor(None), row, "quokka")
        tagging.tag(Actor(None), row, "wombat")
    for left, row in zip((2, 1, 0), rows, strict=True):
        tagging.untag(Actor(None), row, "quokka")
        assert len(found(owner, "quokka")) == left
    assert len(found(owner, "wombat")) == 3
    Tag.objects.get(name="wombat").delete()
    assert found(owner, "wombat") == []


def test_of_a_comment_the_newest_wording_is_found_and_nothing_once_deleted(owner: User, as_owner: Client) -> None:
    said = comment(make_run(owner), as_owner, "a pangolin")
    as_owner.post(f"/comments/{said.pk}/edit/", {"text": "an aardvark"}, headers={"HX-Request": "true"})
    assert (found(owner, "pangolin"), found(owner, "aardvark")) == ([], [("comment", "an aardvark")])
    as_owner.post(f"/comments/{said.pk}/delete/", headers={"HX-Request": "true"})
    assert found(owner, "aardvark") == []
    assert not SearchText.objects.filter(kind=TextKind.COMMENT).exists(), "its words are kept nowhere"


def test_reviews_and_final_verdicts_lead_to_their_item(way: None, owner: User, first: User, as_owner: Client) -> None:
    queue = queue_of(owner, runs=1)
    give(queue, first, "No control for ibexes.", "narwhal tusks")
    settle(queue, member("admin", "ADMIN"), "walrus tusks", "The gecko settles it.")
    item = queue.items.get().get_absolute_url()
    assert item == f"/review/{queue.pk}/items/1/"
    assert places(as_owner, "ibexes") == places(as_owner, "narwhal") == [("review", item)]
    assert places(as_owner, "walrus") == places(as_owner, "gecko") == [("final", item)]


def test_what_came_with_an_import_is_found_among_its_comments(owner: User, as_owner: Client) -> None:
    run = make_run(owner)
    thread = {"comments": [{"text": "a pangolin"}, {"text": ""}]}
    opinion = {"corrected_label": "narwhals", "note": "No ibex."}
    final = {"corrected_label": "", "reason": "As the lemur says."}
    ImportedOpinions.objects.create(run=run, threads=[thread], reviews=[opinion], finals=[final])
    kinds = {"pangolin": "comment", "narwhals": "review", "ibex": "review", "lemur": "final"}
    for typed, kind in kinds.items():
        assert places(as_owner, typed) == [(kind, f"/runs/{run.pk}/?tab=comments")]


# --- by whom ---


def test_who_is_to_review_a_run_unseen_finds_nothing_said_of_it(
    way: None, owner: User, first: User, second: User, as_owner: Client
) -> None:
    queue = queue_of(owner, runs=1, reviewers_per_item=2)
    run = Run.objects.get()
    comment(run, as_owner, "surely pangolins")
    ImportedOpinions.objects.create(run=run, reviews=[{"corrected_label": "old pangolins", "note": ""}])
    give(queue, first, "I say pangolins.")
    everything = [("comment", "surely pangolins"), ("review", "I say pangolins."), ("review", "old pangolins")]
    assert sorted(found(first, "pangolins")) == everything
    assert found(second, "pangolins") == [], "is to review it"
    assert ("review", "I say pangolins.") not in found(owner, "pangolins"), "the item is not complete"
    assert found(None, "pangolins") == []
    text = Client()
    text.force_login(second)
    page = text.get("/search/", {"q": "pangolins"}).content.decode()
    assert "Nothing found" in page, "nor is it counted"
    assert "surely" not in text.get("/jump/", {"q": "pangolins"}).content.decode()
    give(queue, second, "Agreed.")
    assert sorted(found(second, "pangolins")) == sorted(found(owner, "pangolins")) == everything


def test_a_draft_and_why_an_item_was_declined_are_found_by_nobody(owner: User, first: User) -> None:
    review = taken(queue_of(owner, runs=1, blind=False), first)
    review.note = "my secret pangolin"
    review.save()
    assert found(first, "pangolin") == found(owner, "pangolin") == []
    review.state, review.reason = ReviewState.DECLINED, "I asked for pangolins"
    review.save()
    assert found(owner, "pangolin") == []


def test_who_may_still_take_a_review_back_finds_no_opinion_of_others(owner: User, first: User, second: User) -> None:
    queue = queue_of(owner, runs=1, reviewers_per_item=2)
    give(queue, first, "I say pangolins.")
    review = taken(queue, second)
    submit(review, second, note="My pangolins.")
    settle(queue, member("admin", "ADMIN"), "", "Settled: pangolins.")
    assert found(second, "pangolins") == [("review", "My pangolins.")]
    assert len(found(owner, "pangolins")) == 3
    Review.objects.filter(pk=review.pk).update(submitted=timezone.now() - timedelta(hours=1))
    assert len(found(second, "pangolins")) == 3
    review.refresh_from_db()
    assert review.opinions_shown, "from now on it stands"
