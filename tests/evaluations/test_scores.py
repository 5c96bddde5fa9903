"""Scores of labels as distributions: every measured run in one bin of one group, whatever the scores are."""

from __future__ import annotations

from statistics import stdev
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from experiments.core.system_names import SystemNameMasker
from experiments.evaluations.same_units import compare_agents, draw_agents
from experiments.evaluations.scores import draw_scores, find_scores
from experiments.models import LabelCheck, ReviewQueue, Run, Unit
from tests.support.builders import make_run
from tests.support.people import member


def scored(owner: User, of: Unit, r: float | None, auprc: float | None = None, **fields: Any) -> Run:
    key = f"{LabelCheck.objects.count():064}"
    check = LabelCheck.objects.create(key=key, unit=of, text="red", options={}, pearson=r, auprc=auprc, status="done")
    return make_run(owner, status="concluded", label_check=check, **fields)


def groups(by: str = "layer", measure: str = "r", user: User | None = None) -> list[tuple[tuple[str, ...], int, float]]:
    found = find_scores(Run.objects.all(), by, measure, SystemNameMasker(user))
    return [(each.values, each.n, round(each.mean, 6)) for each in found]


def test_without_a_measured_run_there_is_nothing_to_draw(owner: User, units: list[Unit]) -> None:
    make_run(owner)
    scored(owner, units[0], None)
    assert groups() == []
    assert draw_scores([], "layer", "r", {}) is None


@pytest.mark.parametrize(
    ("r", "place"), [(1.0, 19), (0.0, 0), (0.05, 1), (0.049, 0), (-0.01, -1), (-1.0, -20), (0.3, 6)]
)
def test_a_score_lies_in_its_bin_also_at_the_bounds(owner: User, units: list[Unit], r: float, place: int) -> None:
    scored(owner, units[0], r)
    (only,) = find_scores(Run.objects.all(), "layer", "r", SystemNameMasker(None))
    assert (only.counts, only.n, only.mean, only.low, only.high) == ({place: 1}, 1, r, r, r)
    plot = draw_scores([only], "layer", "r", {})
    assert plot is not None
    assert 0 <= plot.bars[0].x <= plot.bars[0].x + plot.bars[0].width <= plot.shape.width


def test_equal_scores_are_one_bar_and_the_largest_group_is_first(owner: User, units: list[Unit]) -> None:
    for _ in range(3):
        scored(owner, units[0], 0.5)
    scored(owner, units[1], 0.9, layer="layer3")
    assert groups() == [(("toybox", "layer4"), 3, 0.5), (("toybox", "layer3"), 1, 0.9)]
    assert groups("model") == [(("toybox",), 4, 0.6)]
    assert groups("backbone") == [(("scripted", ""), 4, 0.6)]
    plot = draw_scores(find_scores(Run.objects.all(), "layer", "r", SystemNameMasker(None)), "layer", "r", {})
    assert plot is not None
    assert [bar.words for bar in plot.bars] == [
        "toybox / layer4: 3 from 0.50 to 0.55",
        "toybox / layer3: 1 from 0.90 to 0.95",
    ]


def test_auprc_is_counted_apart_from_r(owner: User, units: list[Unit]) -> None:
    scored(owner, units[0], 0.2, 0.8)
    scored(owner, units[0], 0.4, None)
    assert groups(measure="auprc") == [(("toybox", "layer4"), 1, 0.8)]


def test_a_neuron_that_somebody_is_still_to_judge_unseen_is_not_among_theirs(owner: User, units: list[Unit]) -> None:
    reviewer = member("reviewer", "REVIEWER")
    run = scored(owner, units[0], 0.7, system_kind="synthetic", model="synthetic:toybox-eyes", layer="mono", unit=3)
    queue = ReviewQueue.objects.create(name="Blind", owner=owner, blind=True)
    queue.items.create(run=run, position=1)
    assert groups(user=reviewer) == []
    queue.items.update(complete=True)
    ReviewQueue.objects.update(closed="2026-11-01T00:00Z")
    assert groups(user=reviewer) == [(("synthetic:toybox-eyes", "mono"), 1, 0.7)]


def test_the_page_follows_the_filters_of_runs_and_says_how_many(
    as_owner: Client, owner: User, units: list[Unit]
) -> None:
    scored(owner, units[0], 0.5)
    scored(owner, units[1], 0.9, layer="layer3")
    make_run(owner)
    page = as_owner.get("/evaluations/scores/?by=model&layer=layer3").content.decode()
    assert "<b>1 run</b> measured of" in page
    assert "layer: layer3" in page
    whole = as_owner.get("/evaluations/scores/").content.decode()
    assert "<b>2 runs</b> measured of" in whole
    answer = as_owner.get("/api/v1/scores?by=layer&filters=layer%3Dlayer3").json()
    assert [(each["name"], each["n"], each["bins"]) for each in answer] == [
        ("toybox / layer3", 1, [{"low": 0.9, "high": 0.95, "runs": 1}])
    ]
    assert as_owner.get("/api/v1/scores?filters=unit%3Dx").status_code == 422


def test_any_number_of_runs_takes_one_query_and_asks_who_writes(
    owner: User, units: list[Unit], django_assert_num_queries: Any
) -> None:
    for place in range(30):
        scored(owner, units[place % 6], place / 30, layer=f"layer{place % 3}")
    names = SystemNameMasker(None)
    assert names.hidden == frozenset()
    with django_assert_num_queries(2):
        assert sum(each.n for each in find_scores(Run.objects.all(), "layer", "r", names)) == 30


def test_agents_are_compared_on_the_units_that_both_labelled(
    as_owner: Client, owner: User, units: list[Unit], teammate: User
) -> None:
    for unit in range(6):
        scored(owner, units[0], 0.5 + unit / 100, unit=unit)
        scored(owner, units[0], 0.8 + unit / 100 + (unit % 2) / 50, unit=unit, backbone="openai", backbone_model="gpt")
    scored(owner, units[0], 0.4, unit=0)  # a second run of the same agent counts half
    scored(owner, units[0], 1.0, unit=9)  # the other agent did not label it
    (pair,) = compare_agents(Run.objects.all(), "r", SystemNameMasker(None))
    assert (pair.first, pair.second, pair.difference.n) == ("Scripted scientist (no language model)", "gpt", 6)
    assert (pair.first_higher, pair.second_higher) == (0, 6)
    assert pair.difference.value == pytest.approx(-0.3 - 0.01 - 0.05 / 6)
    differences = [-0.35, -0.32, -0.3, -0.32, -0.3, -0.32]
    half = 2.5706 * stdev(differences) / 6**0.5
    assert pair.difference.high == pytest.approx(pair.difference.value + half, abs=1e-4)
    page = as_owner.get("/evaluations/scores/").content.decode()
    assert "Agents on the same units" in page
    (told,) = as_owner.get("/api/v1/scores/agents", {"filters": "model=toybox"}).json()
    assert (told["units"], told["second_higher"]) == (6, 6)
    assert as_owner.get("/api/v1/scores/agents", {"filters": "model=none"}).json() == []
    assert as_owner.get("/api/v1/scores/agents", {"filters": "unit=x"}).status_code == 422


def test_few_units_in_common_have_no_interval_and_one_agent_no_pair(owner: User, units: list[Unit]) -> None:
    scored(owner, units[0], 0.5, unit=1)
    assert compare_agents(Run.objects.all(), "r", SystemNameMasker(None)) == []
    assert draw_agents([], "r") is None
    scored(owner, units[0], 0.7, unit=1, backbone="openai", backbone_model="gpt")
    (pair,) = compare_agents(Run.objects.all(), "r", SystemNameMasker(None))
    assert (pair.difference.low, pair.difference.n) == (None, 1)
    assert "too few" in pair.difference.why
