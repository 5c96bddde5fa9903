"""The tabs of a run's page: what each shows, in how many queries, and that hostile words stay words."""

from __future__ import annotations

import json
import re

import pytest
from django.contrib.auth.models import User
from django.test import AsyncClient, Client

from experiments.core import transcript
from experiments.display import bearing
from experiments.display.rounds import RoundRange, step_size, steps
from experiments.models import Hypothesis, Run
from experiments.runs.page import activations, cost, hypotheses
from experiments.runs.page.pages import TABS
from tests.support.builders import experiment, make_run, replied, started
from tests.support.long_run import long_run
from tests.support.pictures import logged, seen
from workers.record import events
from workers.record.events import Ended
from workers.record.experiments import Observation
from workers.record.limits import Usage

pytestmark = pytest.mark.django_db

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>"
OF_UNITS = [name for name, tab in TABS.items() if tab.of != "functions"]
"""Tabs of a run on a unit; those of functions are in tests/functions/test_run_pages.py."""


@pytest.fixture
def run(owner: User) -> Run:
    return long_run(owner, 6, 4)


def shown(client: Client, run: Run, query: str) -> str:
    response = client.get(f"/runs/{run.pk}/?{query}")
    assert response.status_code == 200
    return response.content.decode()


# --- the page and its tabs --------------------------------------------------------------------------


@pytest.mark.parametrize("tab", OF_UNITS)
def test_a_tab_is_a_page_of_its_own_and_a_part_for_htmx(as_owner: Client, run: Run, tab: str) -> None:
    page = shown(as_owner, run, f"tab={tab}")
    current = re.findall(r'data-tab="(\w+)"[^>]*aria-current="page"', page)
    assert current == [tab]
    assert "style=" not in page
    part = as_owner.get(f"/runs/{run.pk}/?tab={tab}", headers={"HX-Request": "true"})
    assert part.content.decode().strip().startswith(f'<div class="panel" data-tab="{tab}"')
    assert "HX-Request" in part["Vary"]
    back = as_owner.get(
        f"/runs/{run.pk}/?tab={tab}", headers={"HX-Request": "true", "HX-History-Restore-Request": "true"}
    )
    assert b"<html" in back.content


def test_a_tab_that_does_not_exist_is_the_transcript(as_owner: Client, run: Run) -> None:
    assert 'id="events"' in shown(as_owner, run, "tab=nonsense")


def test_an_empty_run_says_what_each_tab_will_show(as_owner: Client, owner: User) -> None:
    run = make_run(owner)
    for tab in set(OF_UNITS) - {"transcript", "comments"}:
        assert "You will see here:" in shown(as_owner, run, f"tab={tab}"), tab


def test_the_number_of_queries_does_not_grow_with_the_run(
    as_owner: Client, owner: User, django_assert_max_num_queries
) -> None:
    short, long = long_run(owner, 4, 2), long_run(owner, 60, 2)
    for tab in OF_UNITS:
        shown(as_owner, short, f"tab={tab}")  # what a process reads once is read
        with django_assert_max_num_queries(31 if tab == "transcript" else 18) as few:
            shown(as_owner, short, f"tab={tab}")
        with django_assert_max_num_queries(len(few)):
            shown(as_owner, long, f"tab={tab}")


def test_nothing_in_a_run_becomes_markup(as_owner: Client, owner: User) -> None:
    run = make_run(owner, question=HOSTILE)
    hypothesis = events.Hypothesis(1, HOSTILE, "supported", HOSTILE)
    bad = Observation(HOSTILE, 3.0, seen("a", 1.0, "red").image, None, "generated", HOSTILE)
    transcript.append(run.pk, "started", started())
    transcript.append(run.pk, "reply", replied(prose=HOSTILE, text=HOSTILE, hypotheses=(hypothesis,)))
    transcript.append(run.pk, "experiment", experiment())
    transcript.append(run.pk, "result", logged(bad, output=HOSTILE, error=HOSTILE))
    for tab in OF_UNITS:
        page = shown(as_owner, run, f"tab={tab}")
        assert "<script>alert" not in page
        assert "<img src=x" not in page
        assert "alert(1)" in page


# --- experiments and images -------------------------------------------------------------------------


def test_experiments_are_listed_with_their_strongest_images_and_links(as_owner: Client, run: Run) -> None:
    page = shown(as_owner, run, "tab=experiments")
    assert page.count('class="card experiment-item ok"') == 6
    assert f'href="/runs/{run.pk}/?experiment=3#experiment-3"' in page
    assert "4 images, strongest" in page


def test_images_are_chosen_by_origin_and_ordered(as_owner: Client, run: Run) -> None:
    edited = shown(as_owner, run, "tab=images&origin=edited&order=strongest")
    assert "1\N{EN DASH}6 of 6" in edited
    values = [float(value) for value in re.findall(r'class="activation">([\d.]+)<', edited)]
    assert values == sorted(values, reverse=True)
    assert "what the edit did to the activation" in edited
    everything = shown(as_owner, run, "tab=images&origin=nonsense&order=nonsense")
    assert "of 24" in everything


def test_a_page_past_the_end_is_the_last(as_owner: Client, owner: User) -> None:
    run = long_run(owner, 20, 4)
    assert "61\N{EN DASH}80 of 80" in shown(as_owner, run, "tab=images&page=99")
    assert "1\N{EN DASH}60 of 80" in shown(as_owner, run, "tab=images&page=-1")


# --- activations ------------------------------------------------------------------------------------


def test_each_image_is_a_dot_and_the_table_says_the_same(as_owner: Client, run: Run) -> None:
    page = shown(as_owner, run, "tab=activations")
    assert page.count('class="spot ') == 24
    assert {"exemplar", "generated", "edited"} == set(re.findall(r'class="spot (\w+)"', page))
    assert 'class="level"' in page
    assert 'class="trend-line" points="' in page
    assert page.count("<tr><th") == 1 + 6


def test_the_best_so_far_leaves_out_exemplars_and_never_falls(run: Run) -> None:
    rows = activations.read_activations(run, {})["rows"]
    best = [row.best for row in rows if row.best is not None]
    assert best == sorted(best)
    own = run.observations.exclude(origin="exemplar")
    assert best[-1] == max(own.values_list("activation", flat=True))


def test_too_many_images_become_marks_that_open_their_rounds(
    as_owner: Client, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = long_run(owner, 120, 2)
    monkeypatch.setattr(activations, "MAX_DOTS", 200)
    page = shown(as_owner, run, "tab=activations")
    assert "Too many for a dot each" in page
    assert 'class="spot' not in page
    link = re.findall(r'class="mark \w+" href="([^"]+)"', page)[0].replace("&amp;", "&")
    assert 'class="spot' in shown(as_owner, run, link.removeprefix("?"))
    assert "No image in rounds" in shown(as_owner, run, "tab=activations&from=9000&to=9001")


def test_rounds_go_together_in_round_numbers() -> None:
    assert [step_size(count) for count in (1, 100, 101, 3_333, 99_999)] == [1, 1, 2, 50, 1000]
    assert steps([]) == {}
    assert steps([3, 7]) == {3: RoundRange(3, 3), 7: RoundRange(7, 7)}
    many = steps(range(1, 251))
    assert many[1] == RoundRange(1, 5)
    assert many[250] == RoundRange(246, 250)


# --- hypotheses -------------------------------------------------------------------------------------


def test_a_hypothesis_is_followed_through_its_wordings_and_numbers() -> None:
    def listed(round_number: int, *told: tuple[int, str, str]) -> list[Hypothesis]:
        return [
            Hypothesis(round=round_number, number=number, text=text, status=status) for number, text, status in told
        ]

    rows = hypotheses.trace_hypotheses(
        {
            1: listed(1, (1, "red balls", "open"), (2, "round things", "open")),
            2: listed(2, (1, "Red balls on grass", "open"), (2, "round things.", "refuted")),
            3: listed(3, (1, "round things", "refuted"), (2, "night skies", "open")),
        }
    )
    assert [row.latest.text for row in rows] == ["Red balls on grass", "round things", "night skies"]
    assert [each.text for each in rows[0].wordings] == ["red balls"]
    assert [(each.round, each.status) for each in rows[1].turns] == [(2, "refuted")]


def test_what_bears_on_a_hypothesis_is_linked(as_owner: Client, run: Run) -> None:
    page = shown(as_owner, run, "tab=hypotheses")
    assert page.count('class="card" id="hypothesis-') == 2
    decided = re.search(r"supported</b> in <a[^>]*>round 4</a>: 9 of 9.*?experiment 3</a>", page, re.DOTALL)
    assert decided, "the experiment before the agent's word"
    assert "a red ball" in page


def test_each_hypothesis_has_its_distributions_and_an_effect_size_by_round(as_owner: Client, owner: User) -> None:
    run = long_run(owner, 16, 5)
    page = shown(as_owner, run, "tab=hypotheses")
    found = bearing.images(run, ["red balls"])[0]
    assert found.having
    assert found.lacking
    assert not {row.origin for row in (*found.having, *found.lacking)} & {"exemplar", "edited"}
    assert "AUC" in page
    assert "Cliff&#x27;s" in page


def test_an_effect_is_of_the_images_that_were_there_before_the_reply(owner: User) -> None:
    run = long_run(owner, 16, 5)
    found = bearing.images(run, ["red balls"])[0]
    effects = hypotheses.trace_effect(found, [1, 16])
    assert 1 not in effects, "nothing was logged before the first reply"
    assert 0.0 <= effects[16] <= 1.0


def test_words_that_say_nothing_name_no_image() -> None:
    assert bearing.words("The unit responds to red balls") == {"red", "ball"}
    assert bearing.words("boxes, glasses, 12") == {"box", "glass"}
    assert bearing.words("红色的球") == {"红色的球"}


# --- cost -------------------------------------------------------------------------------------------


def test_cost_adds_up_by_round_and_step(owner: User) -> None:
    run = make_run(owner, limits={"rounds": 5, "tokens": 2_000, "cost": None, "seconds": 30})
    transcript.append(run.pk, "started", started())
    for number in (1, 2):
        reply = replied(number, usage=Usage(100, 20, 0.5), seconds=4.0)
        transcript.append(run.pk, "reply", reply)
        transcript.append(run.pk, "experiment", experiment(number))
        transcript.append(
            run.pk,
            "result",
            logged(number=number, usage=Usage(30, 0, 0.25), seconds=1.0, tool_seconds=2.0),
        )
    run.refresh_from_db()
    told = cost.read_cost(run, {})
    tokens, dollars, time = told["shown"]
    assert (tokens.said, dollars.said, time.said) == ("300 of 2k", "$1.50", "0:14 of 0:30")
    assert run.tokens == 300
    Run.objects.filter(pk=run.pk).update(seconds=110.0)
    run.refresh_from_db()
    header = cost.read_cost(run, {})["shown"][2]
    assert header.said == "1:50 of 0:30"
    beside = [text.words for text in header.rounds.texts if text.anchor == "end"]
    assert beside == ["0", "2 s", "4 s", "6 s", "8 s"], "the axis ends in a figure"
    assert told["rows"][1][1][:4] == ["100", "20", "30", "300"]
    assert told["totals"][:3] == ["200", "40", "60"]
    assert not tokens.is_near, "far above"
    assert not tokens.together.lines
    assert time.is_near
    assert len(time.together.lines) == 1
    assert len(time.rounds.bars) == 6


def test_a_scripted_run_says_why_it_took_no_dollars(as_owner: Client, owner: User) -> None:
    run = make_run(owner)
    transcript.append(run.pk, "reply", replied(usage=Usage(), seconds=1.0))
    assert "No tokens and no dollars: the scripted scientist is a program" in shown(as_owner, run, "tab=cost")


# --- raw --------------------------------------------------------------------------------------------


def test_raw_shows_the_page_that_holds_an_event(as_owner: Client, owner: User) -> None:
    run = long_run(owner, 40, 1)
    page = shown(as_owner, run, "tab=raw&at=90")
    assert 'id="e90"' in page
    assert 'id="e80"' not in page
    assert f'href="/runs/{run.pk}/?at=90#e90"' in page


async def test_all_events_are_a_file_of_json_lines(async_client: AsyncClient, transactional_db: None) -> None:
    from asgiref.sync import sync_to_async

    from tests.support.people import member

    user = await sync_to_async(member)("reader", "VIEWER")
    run = await sync_to_async(make_run)(user)
    for payload in (("started", started()), ("cancelled", Ended("Stopped. \N{SNOWMAN}"))):
        await sync_to_async(transcript.append)(run.pk, *payload)
    await async_client.aforce_login(user)
    response = await async_client.get(f"/runs/{run.pk}/events.jsonl")
    assert response["Content-Disposition"] == f'attachment; filename="run-{run.pk}-events.jsonl"'
    assert response["X-Content-Type-Options"] == "nosniff"
    lines = [json.loads(line) async for part in response.streaming_content for line in part.splitlines()]
    assert [(line["seq"], line["kind"]) for line in lines] == [(1, "started"), (2, "cancelled")]
    assert lines[1]["payload"]["reason"] == "Stopped. \N{SNOWMAN}"
