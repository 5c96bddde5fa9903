"""What a link to a run shows and hides, and how it is sent."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from experiments.exchange.validate_bundle import list_image_keys
from experiments.models import Image, ReviewItem, ReviewQueue, Run
from experiments.sharing import shared_run
from tests.support.builders import experiment, make_run, replied, result, started
from tests.support.people import member
from tests.support.shared_run import NAMES, OPENLY, discuss, eventful_run, keep, link, opened, picture
from workers.record.events import Ended
from workers.record.experiments import Observation
from workers.record.replies import Conclusion


@pytest.fixture
def run(db: None) -> Run:
    return eventful_run()


@pytest.fixture
def discussed(run: Run) -> Run:
    return discuss(run)


# --- what it shows ---


def test_anybody_with_the_link_reads_the_transcript_with_its_images(run: Run) -> None:
    keep(run, ("concluded", Ended(conclusion=Conclusion("It responds to red balls.", ("red balls",)))))
    page = opened(link(run).path)
    for words in (
        "I expect red.",
        "I looked myself.",
        "Experiment 1",
        "image 1",
        "It responds to red balls.",
    ):
        assert words in page
    assert page.count("<img ") == 4, "what was logged, and the strongest of it beside the conclusion"


def test_no_name_is_shown_unless_it_was_asked_for(discussed: Run) -> None:
    page = opened(link(discussed).path)
    assert not [name for name in NAMES if name in page]
    assert "Paused</span> by a person" in page
    assert '<h2>Round 2</h2><span class="byline">a person' in page
    assert "gpt-4o" in page, "the agent's name is no person's"
    assert "Too few" not in page


def test_a_name_stays_hidden_where_comments_are_shown(discussed: Run) -> None:
    page = opened(link(discussed, show_comments=True).path)
    assert page.count("Too few, @…") == 2
    assert "Person 1" in page
    assert not [name for name in NAMES if name in page]


def test_names_and_comments_are_shown_where_they_were_asked_for(discussed: Run) -> None:
    page = opened(link(discussed, **OPENLY).path)
    assert "Owner Fullname" in page
    assert "Too few, @owner-login." in page
    assert "Thought better." not in page


def test_comments_wait_until_a_blind_review_is_over(discussed: Run) -> None:
    queue = ReviewQueue.objects.create(name="first", owner=discussed.owner)
    ReviewItem.objects.create(queue=queue, run=discussed, position=1)
    path = link(discussed, **OPENLY).path
    assert "Too few" not in opened(path)
    ReviewQueue.objects.update(closed=timezone.now())
    assert "Too few" in opened(path)


@pytest.mark.parametrize("shows", [{}, OPENLY])
def test_a_person_who_stopped_the_run_is_named_only_if_asked(run: Run, shows: dict[str, bool]) -> None:
    keep(run, ("cancelled", Ended("Stopped by owner-login.")))
    assert ("Stopped by owner-login." in opened(link(run, **shows).path)) == bool(shows)


@pytest.mark.parametrize("shows", [{}, OPENLY])
def test_what_broke_on_our_side_is_never_shown(run: Run, shows: dict[str, bool]) -> None:
    keep(run, ("failed", Ended("Out of disk: /srv/private")))
    page = opened(link(run, **shows).path)
    assert not [words for words in ("gpu.internal", "/etc/secret", "/srv/private") if words in page]


class Addresses(HTMLParser):
    """Every address in a page, and whether there is a script or a form."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.found += [value or "" for name, value in attrs if name in {"href", "src", "action", "srcset", "hx-get"}]


@pytest.mark.parametrize("shows", [{}, OPENLY])
def test_no_address_leads_into_the_application(discussed: Run, shows: dict[str, bool]) -> None:
    at = link(discussed, **shows)
    parser = Addresses()
    parser.feed(opened(at.path))
    inside = [each for each in parser.found if not each.startswith(("/static/", "/bundles/", at.path, "#", "?"))]
    assert inside == []
    assert not parser.tags & {"script", "form", "iframe"}


def test_words_of_others_are_escaped(run: Run) -> None:
    page = opened(link(run).path)
    assert "Look at &lt;b&gt;blue&lt;/b&gt;." in page


def test_a_run_under_way_is_shown_as_of_now(run: Run) -> None:
    at = link(run)
    page = opened(at.path)
    assert "This run is under way." in page
    assert f'<a class="button" href="{at.path}">Reload</a>' in page
    keep(run, ("reply", replied(4, prose="Something new.")))
    assert "Something new." in opened(at.path)


def test_a_run_that_has_not_begun_says_so(db: None) -> None:
    assert "Nothing has happened yet" in opened(link(make_run(member("owner", "RESEARCHER"))).path)


def test_a_long_run_comes_in_pages_and_takes_as_many_queries_each(
    discussed: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = link(discussed, **OPENLY)
    with CaptureQueriesContext(connection) as whole:
        opened(at.path)
    monkeypatch.setattr(shared_run, "PER_PAGE", 5)
    with CaptureQueriesContext(connection) as first:
        page = opened(at.path)
    assert "I expect red." in page
    assert "I looked myself." not in page
    assert 'href="?page=2"' in page
    assert len(first) <= len(whole)
    assert "I looked myself." in opened(f"{at.path}?page=3")
    for senseless in ("x", "-1", "99", "9" * 40):
        opened(f"{at.path}?page={senseless}")


# --- how it is sent ---


def test_it_is_neither_stored_nor_listed_nor_told_to_others(run: Run) -> None:
    at = link(run)
    key = Image.objects.values_list("key", flat=True)[0]
    for path in (at.path, f"{at.path}images/{key}.png", "/shared/nothing/"):
        response = Client().get(path)
        assert response["Cache-Control"] == "private, no-store"
        assert response["Referrer-Policy"] == "no-referrer"
        assert response["X-Robots-Tag"].startswith("noindex")
        assert "script-src" not in response["Content-Security-Policy"]
        assert not response.cookies
    assert '<meta name="robots" content="noindex' in opened(at.path)


@pytest.mark.parametrize("tail", ["{key}.png", "{key}/thumb-160.webp", "{key}/thumb-320.webp"])
def test_images_of_the_run_are_sent_and_no_others(run: Run, tail: str) -> None:
    at = link(run)
    own, other = Image.objects.values_list("key", flat=True)[0], picture(77)
    response = Client().get(f"{at.path}images/{tail.format(key=own)}")
    assert response.status_code == 200
    assert response["Content-Type"].startswith("image/")
    for key in (other, "0" * 64):
        assert Client().get(f"{at.path}images/{tail.format(key=key)}").status_code == 404
    assert Client().get(f"/shared/{'x' * 43}/images/{tail.format(key=own)}").status_code == 404
    assert Client().get(f"{at.path}images/{own}/thumb-999.webp").status_code == 404


@pytest.mark.django_db
def test_ordinary_images_that_came_with_the_first_result_are_shown_and_sent() -> None:
    key, masked = picture(80), picture(81)
    ordinary = Observation("ordinary image near the 0.5 quantile", 1.0, key, masked, measured=True)
    shared = make_run(member("sharer", "RESEARCHER"))
    keep(shared, ("started", started()), ("experiment", experiment()), ("result", result(ordinary_images=(ordinary,))))
    at = link(shared)
    page = opened(at.path)
    assert "Random ordinary images of the dataset" in page
    assert "ordinary image near the 0.5 quantile" in page
    for each in (key, masked):
        assert Client().get(f"{at.path}images/{each}.png").status_code == 200
    assert Client().get(f"{at.path}images/{picture(82)}.png").status_code == 404
    assert set(list_image_keys(shared.events.get(kind="result").content)) == {key, masked}, "files of the run hold them"


def test_activation_maps_of_the_run_are_sent_and_no_others(run: Run) -> None:
    at, mine, other = link(run), picture(78), picture(79)
    run.observations.update(map_id=mine, map_low=0.0, map_high=1.0, map_threshold=0.5)
    assert Client().get(f"{at.path}images/{mine}.png").status_code == 200
    assert Client().get(f"{at.path}images/{other}.png").status_code == 404


def test_it_is_read_and_nothing_else(run: Run) -> None:
    assert Client().post(link(run).path).status_code == 405
