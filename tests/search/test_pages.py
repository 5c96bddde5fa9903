"""The search page, the results that follow, and what Ctrl+K offers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import get_resolver

from experiments.core import transcript
from experiments.models import Image, Layer, PairwiseTrial, Run, SearchText, VisionModelRow
from experiments.search import finding
from tests.support.builders import experiment, make_run, replied, result, started
from tests.support.passages import say
from tests.support.people import member
from tests.support.reviewing import queue_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def run(owner: User) -> Run:
    return make_run(owner, question="What excites it in snow?")


def page(client: Client, path: str = "/search/", status: int = 200, headers: Any = None, **query: str) -> str:
    response = client.get(path, query, headers=headers)
    assert response.status_code == status
    return response.content.decode()


def jump(client: Client, typed: str) -> str:
    return page(client, "/jump/", q=typed)


def test_a_hit_is_marked_and_leads_to_its_event(as_owner: Client, run: Run) -> None:
    transcript.append(run.pk, "reply", replied(prose="It likes Pélicans."))
    text = page(as_owner, q="pelicans")
    assert "It likes <mark>Pélicans</mark>." in text
    assert f"/runs/{run.pk}/?at=1#e1" in text
    assert "What excites it in snow?" in text
    assert "1 result" in text
    assert "round 1" in text


def test_a_hit_in_a_title_shows_its_image(as_owner: Client, run: Run) -> None:
    key = Image.objects.create(key="c" * 64, width=8, height=8, origin="generated").key
    for kind, payload in (("started", started()), ("experiment", experiment()), ("result", result(images=(key,)))):
        transcript.append(run.pk, kind, payload)
    text = page(as_owner, q="image 1")
    assert f'<img src="/images/{key}' in text
    assert "#e3" in text


def test_what_was_written_and_what_is_typed_is_text_and_nothing_else(as_owner: Client, run: Run) -> None:
    say(run, "<script>alert(1)</script> & <b>red</b>", kind="output")
    for typed in ("<script>", "alert", "<b>red", "&"):
        for text in (page(as_owner, q=typed), jump(as_owner, typed)):
            assert "<script>alert" not in text
            assert "<b>red" not in text
    assert "&lt;b&gt;<mark>red</mark>&lt;/b&gt;" in page(as_owner, q="red")


def test_nothing_typed_nothing_found_and_nothing_there_each_have_their_words(as_owner: Client, owner: User) -> None:
    assert "Nothing to search yet" in page(as_owner)
    make_run(owner, question="What is it?")
    assert "holds all your words" in page(as_owner)
    assert "Nothing found" in page(as_owner, q="unicorn")
    text = page(as_owner, q="what", kind="label")
    assert "Nothing found here" in text
    assert 'href="?q=what"' in text


@pytest.mark.parametrize("typed", ["*", "%%%", "  _ ", '"'])
def test_wildcards_alone_find_nothing_with_a_hint(as_owner: Client, run: Run, typed: str) -> None:
    text = page(as_owner, q=typed)
    assert "wildcards are ordinary characters here" in text
    assert 'class="group' not in text


def test_a_query_of_10_kb_is_refused_and_kept(as_owner: Client, run: Run) -> None:
    text = page(as_owner, status=400, q="snow " * 2_000)
    assert "The query has 10,000 characters, at most 200 are possible" in text
    assert "snow snow snow" in text


def test_a_filter_that_makes_no_sense_is_named_and_left_out(as_owner: Client, run: Run) -> None:
    text = page(as_owner, q="snow", kind="poem", unit="seven", run="-1")
    assert "There is no kind “poem”" in text
    assert "“seven” is not the number of a unit" in text
    assert "“-1” is not the number of a run" in text
    assert "<mark>snow</mark>" in text


def test_a_cursor_that_was_changed_leads_back_to_the_first_results(as_owner: Client, run: Run) -> None:
    text = page(as_owner, status=400, q="snow", after="x.y")
    assert "These results cannot be shown" in text
    assert 'href="?q=snow"' in text


def test_more_results_come_by_cursor_alone_for_htmx(
    as_owner: Client, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finding.find, "__defaults__", ("", 2))
    say(run, *[f"red {number} of many" for number in range(5)])
    first = as_owner.get("/search/", {"q": "red"})
    cursor = first.context["page"].cursor
    more = page(as_owner, q="red", after=cursor, headers={"HX-Request": "true", "HX-Target": "found-next"})
    assert more.lstrip().startswith("<section")
    assert more.count('class="hit"') == 2
    assert "continued" in page(as_owner, q="red", after=cursor)


def test_hits_of_one_run_stand_together_and_are_bounded(as_owner: Client, owner: User, run: Run) -> None:
    other = make_run(owner)
    say(run, *[f"a red ball {number}" for number in range(9)])
    say(other, "the red ball")
    text = page(as_owner, q="red ball")
    assert text.count('class="group card"') == 2
    assert "3 more in this run" in text
    assert page(as_owner, q="red ball", run=str(run.pk)).count('class="group card"') == 1


@pytest.mark.parametrize("path", ["/search/", "/jump/"])
def test_the_number_of_queries_does_not_grow(
    as_owner: Client, owner: User, django_assert_max_num_queries: Any, path: str
) -> None:
    for size in (1, 25):
        for number in range(size):
            say(make_run(owner, question=f"Why red {number}?"), *["red"] * size)
        with django_assert_max_num_queries(18):
            page(as_owner, path, q="red")


def test_the_palette_leads_to_pages_runs_units_models_and_passages(as_owner: Client, run: Run) -> None:
    model = VisionModelRow.objects.create(name="hf:microsoft/resnet-152", label="ResNet-152")
    Layer.objects.create(model=model, position=0, name="layer4", path="layer4", units=2048)
    say(run, "a quokka on snow")
    for typed, expected in {
        "sett": ("Pages", "<mark>Sett</mark>ings", "/settings/"),
        "snow": ("Runs", "What excites it in <mark>snow</mark>?", f"/runs/{run.pk}/"),
        f"run {run.pk}": ("Runs", "<mark>Run</mark>", f'href="/runs/{run.pk}/"'),
        f"#{run.pk}": ("Runs", "What excites it in snow?", f'href="/runs/{run.pk}/"'),
        "layer4 122": ("Units", "layer4 unit 122", "/units/"),
        "unit 122": ("Units", "layer4 unit 122", "/units/"),
        "resnet": ("Models", "<mark>resnet</mark>-152", "/runs/?model=hf%3Amicrosoft%2Fresnet-152"),
        "quok": ("In transcripts", "a <mark>quok</mark>ka on snow", f"/runs/{run.pk}/?at=1#e1"),
        "unicorn": ("In transcripts", "Search everything for “unicorn”", "/search/?q=unicorn"),
    }.items():
        text = jump(as_owner, typed)
        assert [words for words in expected if words not in text] == [], typed
        assert 'role="option"' in text


def test_the_palette_answers_anything_that_is_typed(as_owner: Client, run: Run) -> None:
    for typed in ("", "%", "x" * 5_000, "0" * 30, "#", "unit", "layer4 99999999", "#²", "\x00"):
        text = jump(as_owner, typed)
        assert "<html" not in text
    assert "at most 200" in jump(as_owner, "x" * 5_000)


def test_a_new_question_is_found_at_once_and_once(as_owner: Client, owner: User) -> None:
    run = make_run(owner, question="Does it see umbrellas?")
    transcript.append(run.pk, "started", started())
    assert SearchText.objects.filter(run=run).count() == 1
    assert "<mark>umbrellas</mark>" in page(as_owner, q="umbrellas")


# --- the palette reaches every page ---


def routes(patterns: Iterable[Any], before: str = "") -> Iterator[str]:
    """Addresses of all pages without a parameter."""
    for pattern in patterns:
        route = before + str(pattern.pattern)
        if hasattr(pattern, "url_patterns"):
            yield from routes(pattern.url_patterns, route)
        elif not re.search(r"[<(]", route):
            yield "/" + re.sub(r"[\^$\\]", "", route)


def opens(client: Client, address: str) -> str:
    """The title of the page there; "" if it is no page, or not for this person."""
    answer = client.get(address)
    text = "" if answer.streaming or answer.status_code != 200 else answer.content.decode()
    title = re.search(r"<title>(.*?)</title>", text, re.S)
    return title[1].split(" · ")[0].strip() if title else ""


@pytest.mark.parametrize("role", ["VIEWER", "RESEARCHER", "ADMIN"])
def test_every_page_that_somebody_may_open_is_offered_under_its_own_words(client: Client, role: str) -> None:
    client.force_login(member("somebody", role))
    addresses = [each for each in routes(get_resolver().url_patterns) if not each.startswith(MACHINES)]
    titles = {address: title for address in [*addresses, DOCS] if (title := opens(client, address))}
    assert len(titles) > 12
    for address, title in titles.items():
        assert f'href="{address}"' in jump(client, title), (address, title)
    offered = set(re.findall(r'href="([^"]+)"', " ".join(jump(client, each) for each in ("settings", "new", "a", "e"))))
    for address in {each for each in offered if not each.startswith("/search/")}:
        assert client.get(address, follow=True).status_code == 200, f"{role} is offered {address}"


MACHINES, DOCS = ("/api/", "/admin/", "/sign-out/", "/studies/add/"), "/api/v1/docs"
"""What is not for reading, or says something of what was chosen elsewhere alone; of the API, what is for reading."""


def test_queues_trials_and_agreement_are_offered_by_name(owner: User) -> None:
    queue = queue_of(owner, runs=1, reviewers_per_item=2, name="Snow and ice")
    trial = PairwiseTrial.objects.create(name="Snow against MILAN", owner=owner, sources=[])
    client, reviewer = Client(), Client()
    client.force_login(member("boss", "ADMIN"))
    reviewer.force_login(member("other", "VIEWER"))
    text = jump(client, "snow")
    assert f'href="/review/{queue.pk}/"' in text
    assert f'href="/pairwise/{trial.pk}/"' in text
    assert f'href="/review/{queue.pk}/agreement/"' in jump(client, "agreement snow")
    assert "/agreement/" not in jump(reviewer, "agreement snow"), "hidden from them until the queue is closed"


def test_the_page_of_a_run_offers_what_can_be_done_with_it(as_owner: Client, run: Run) -> None:
    text = as_owner.get(run.get_absolute_url()).content.decode()
    for words in ("Pause this run", "Stop this run", "Share this run", "Fork this run", "Sign out"):
        assert f'data-offer="{words}"' in text
