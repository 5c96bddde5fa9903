"""What people made of a run travels with it: as names, within bounds, and never before the eyes that may not see it."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from experiments.core import tagging
from experiments.core.actors import Actor
from experiments.exchange.import_bundle import Taken
from experiments.exchange.opinions import opinions_json
from experiments.exchange.safe_zip import ExchangeError
from experiments.models import (
    Adjudication,
    Comment,
    Experiment,
    ImportedOpinions,
    Observation,
    Review,
    ReviewItem,
    ReviewQueue,
    Run,
    Tag,
    Thread,
    Wording,
)
from tests.support.bundles import brought, bundled, forgotten, full_run, packed, put
from tests.support.people import member
from workers.jobs import exchange

pytestmark = pytest.mark.usefixtures("redis_url")

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def reviewer(db: None) -> User:
    return member("reviewer", "REVIEWER")


@pytest.fixture
def run(owner: User, teammate: User, reviewer: User) -> Run:
    """A run of which much was made: threads, tags, and a review in an open blind queue."""
    run = full_run(owner)
    experiment, image = run.experiments.get(), Observation.objects.get(run=run, position=1)
    places: list[dict[str, Any]] = [
        {"on": "run"},
        {"on": "event", "seq": 2},
        {"on": "words", "seq": 2, "quote": "a red", "before": "", "after": " ball", "place": 4},
        {"on": "experiment", "experiment": experiment},
        {"on": "image", "experiment": experiment, "observation": image},
    ]
    for place in places:
        thread = Thread.objects.create(run=run, **place)
        said = Comment.objects.create(thread=thread, author=teammate, text=f"@owner {HOSTILE}", edited=timezone.now())
        said.mentions.add(owner)
        Wording.objects.create(comment=said, text="before")
        Comment.objects.create(thread=thread, author=owner, text="", deleted=timezone.now())
    Thread.objects.filter(on="run").update(resolved=timezone.now(), resolved_by=owner)
    tagging.tag(Actor(None), experiment, "look again")
    tagging.tag(Actor(None), image, "odd one")
    queue = ReviewQueue.objects.create(name="First look", owner=owner, blind=True, reviewers_per_item=2)
    item = ReviewItem.objects.create(queue=queue, run=run, position=1)
    scores = dict.fromkeys(("supported", "specific", "complete", "confounds", "samples"), 4)
    known = {"verdict": "revise", "corrected_label": "blue balls", "note": "Too few.", "submitted": timezone.now()}
    Review.objects.create(item=item, reviewer=reviewer, slot=1, state="submitted", **scores, **known)
    Adjudication.objects.create(item=item, adjudicator=owner, verdict="reject", reason="Two opinions differ.")
    return run


def people(path: Path) -> dict[str, Any]:
    with zipfile.ZipFile(path) as packed:
        found: dict[str, Any] = json.loads(packed.read("people.json"))
    return found


def closed(run: Run) -> None:
    ReviewQueue.objects.update(closed=timezone.now())


def gone(run: Run) -> None:
    """As on another installation: nothing of the run, of its people or of their tags is here."""
    ReviewItem.objects.filter(run=run).delete()
    forgotten(run)
    Tag.objects.all().delete()


def moved(run: Run, by: User, tmp_path: Path) -> Taken:
    """The run as it comes in elsewhere, after its review."""
    closed(run)
    path = bundled(run, path=tmp_path / "run.zip")
    gone(run)
    (taken,) = brought(path, by)
    return taken


def test_a_round_trip_keeps_what_people_made_of_a_run(run: Run, teammate: User, tmp_path: Path) -> None:
    closed(run)
    first = bundled(run, path=tmp_path / "first.zip")
    told = people(first)
    assert [len(told[name]) for name in ("threads", "reviews", "finals", "tags")] == [5, 1, 1, 2]
    assert told["threads"][0]["comments"][0]["mentions"] == ["owner"]
    assert (told["reviews"][0]["verdict"], told["reviews"][0]["reviewer"]) == ("revise", "reviewer")
    gone(run)
    accounts = User.objects.count()
    (taken,) = brought(first, teammate)
    assert (Comment.objects.count(), Review.objects.count(), User.objects.count()) == (0, 0, accounts), (
        "names, not rows"
    )
    assert list(Experiment.objects.get().tags.values_list("name", flat=True)) == ["look again"]
    assert list(Observation.objects.get(position=1).tags.values_list("name", flat=True)) == ["odd one"]
    second = bundled(taken.run, path=tmp_path / "second.zip")
    assert people(second) == told
    Thread.objects.create(run=taken.run, on="run")
    assert len(people(bundled(taken.run, path=tmp_path / "third.zip"))["threads"]) == 6, "and what was said since"


def test_what_came_with_a_run_is_shown_and_read_as_words(
    run: Run, teammate: User, as_owner: Client, tmp_path: Path
) -> None:
    taken = moved(run, teammate, tmp_path)
    page = as_owner.get(f"/runs/{taken.run.pk}/?tab=comments").content.decode()
    assert "Comments from the original installation" in page
    assert re.search(r'Review in “First look”</span>\s*<span class="verdict revise">Revise', page)
    assert re.search(r'Final verdict in “First look”</span>\s*<span class="verdict reject">Reject', page)
    assert "&lt;script&gt;alert(1)" in page
    assert HOSTILE not in page
    told = as_owner.get(f"/api/v1/runs/{taken.run.pk}/imported-reviews").json()
    assert [len(told[name]) for name in ("threads", "reviews")] == [5, 1]


def test_what_was_said_of_a_place_leads_to_it(
    run: Run, teammate: User, as_owner: Client, tmp_path: Path, django_assert_max_num_queries: Any
) -> None:
    taken = moved(run, teammate, tmp_path)
    address = f"/runs/{taken.run.pk}/"
    at = Experiment.objects.get().seq
    card = f'<a class="location" href="{address}?at={at}#experiment-1">'
    image = Observation.objects.get(position=1)
    page = as_owner.get(f"{address}?tab=comments").content.decode()
    assert page.count(f'<a class="location" href="{address}?at=2#e2">Event 2</a>') == 2
    assert f"{card}Experiment 1</a>" in page
    assert f"{card}Image “{image.title}” of experiment 1</a>" in page
    assert page.count(f'<p class="comment-image"><a href="/images/{image.image_id}/">') == 1
    assert '<span class="location">The run</span>' in page
    assert 'id="experiment-1"' in as_owner.get(f"{address}?at={at}").content.decode()
    wrong: list[Any] = [
        {"experiment": 9, "position": 1},
        {"experiment": 1, "position": 99},
        {"seq": 999},
        {"seq": {"items": 1}, "experiment": "x", "position": True},
        "no thread",
    ]
    ImportedOpinions.objects.update(threads=wrong * 40)
    with django_assert_max_num_queries(40):
        page = as_owner.get(f"{address}?tab=comments").content.decode()
    assert page.count('<span class="location">Image 1 of experiment 9</span>') == 40
    assert page.count(f"{card}Image 99 of experiment 1</a>") == 40, "the experiment is here at least"
    assert page.count('<span class="location">Event 999</span>') == 40
    assert page.count('<span class="location">The run</span>') == 40


def test_a_bundle_shows_no_more_than_the_pages(run: Run, owner: User, teammate: User, reviewer: User) -> None:
    """The queue is blind and open: the second reviewer sees neither comments nor the first one's review."""
    second = member("second", "REVIEWER")

    def counted(viewer: User | None) -> tuple[int, int, int]:
        told = opinions_json(run, viewer)
        return len(told["threads"]), len(told["reviews"]), len(told["finals"])

    assert counted(second) == (0, 0, 0)
    assert counted(None) == (0, 0, 0)
    assert counted(reviewer) == (5, 1, 0), "who may still take their own back reads no final verdict"
    assert counted(teammate)[1] == 0
    closed(run)
    assert counted(second) == counted(None) == counted(owner) == (5, 1, 1)


def test_what_came_with_a_run_waits_for_a_blind_review_too(
    run: Run, teammate: User, owner: User, client: Client, tmp_path: Path
) -> None:
    taken = moved(run, teammate, tmp_path)
    queue = ReviewQueue.objects.create(name="Again", owner=owner, blind=True)
    ReviewItem.objects.create(queue=queue, run=taken.run, position=1)
    second = member("second", "REVIEWER")
    client.force_login(second)
    assert (
        "Comments from the original installation"
        not in client.get(f"/runs/{taken.run.pk}/?tab=comments").content.decode()
    )
    assert client.get(f"/api/v1/runs/{taken.run.pk}/imported-reviews").status_code == 403
    assert opinions_json(taken.run, second)["reviews"] == []


def fill_threads(told: Any) -> Any:
    """More comments than are taken, though no thread has too many."""
    thread = told["threads"][0]
    return told | {"threads": [thread | {"comments": thread["comments"][:1] * 334}] * 30}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (put("threads", value={}), "threads is {}"),
        (put("threads", value=[{}] * 2_001), "threads is a list of 2,001: Expected `array` of length <= 2000"),
        (put("threads", 0, "on", value=["x"]), "threads[0].on is ['x']: Expected `str`"),
        (put("threads", 0, "on", value="air"), "on is 'air': choose from run, event"),
        (put("threads", 0, "created", value="now"), "created is 'now': write it as 2026-01-31"),
        (put("threads", 0, "seq", value=-1), "seq is -1"),
        (put("threads", 0, "comments", value=[{}] * 501), "threads[0].comments is a list of 501"),
        (put("threads", 0, "comments", 0, "author", value={"items": 1}), "author is {'items': 1}"),
        (put("threads", 0, "comments", 0, "text", value="x" * 10_001), "text is 'xxx"),
        (
            put("threads", 0, "comments", 0, "mentions", value=["x"] * 21),
            "threads[0].comments[0].mentions is a list of 21",
        ),
        (fill_threads, "10,020 comments, at most 10,000"),
        (put("reviews", 0, "verdict", value="fine"), "verdict is 'fine': choose from"),
        (put("reviews", 0, "scores", "samples", value=9), "samples is 9"),
        (put("reviews", 0, "blind", value="yes"), "reviews[0].blind is 'yes'"),
        (put("reviews", 0, "scores", value=[]), "reviews[0].scores is []"),
        (put("finals", 0, "verdict", value=["x"]), "finals[0].verdict is ['x']"),
        (put("tags", 0, "tags", value=[5]), "tags[0].tags[0] is 5"),
        (put("tags", 0, "experiment", value=None), "tags[0].experiment is None"),
        (
            put("tags", value=[{"experiment": 1, "position": None, "tags": [f"t{n}" for n in range(50)]}] * 201),
            "puts 10,050 tags to",
        ),
    ],
)
def test_opinions_that_make_no_sense_are_refused(
    run: Run, owner: User, tmp_path: Path, change: Callable[[Any], Any], says: str
) -> None:
    closed(run)
    path = bundled(run, path=tmp_path / "run.zip")
    with zipfile.ZipFile(path) as source:
        files = {name: source.read(name) for name in source.namelist() if name != "manifest.json"}
    gone(run)
    files["people.json"] = json.dumps(change(json.loads(files["people.json"]))).encode()
    with pytest.raises(ExchangeError) as caught:
        brought(packed(files, tmp_path / "x.zip"), owner)
    assert says in str(caught.value)
    assert "people.json" in str(caught.value)
    assert not Run.objects.exists()
    assert not ImportedOpinions.objects.exists()


def test_a_bundle_of_earlier_versions_is_taken(run: Run, owner: User, tmp_path: Path) -> None:
    path = bundled(run, path=tmp_path / "run.zip")
    with zipfile.ZipFile(path) as source:
        files = {name: source.read(name) for name in source.namelist() if name not in {"manifest.json", "people.json"}}
    gone(run)
    (taken,) = brought(packed(files, tmp_path / "x.zip"), owner)
    assert exchange.describe_result([taken]) == f"Imported as run {taken.run.pk}."
