"""What a sweep will take, and what it has found: labels that are alike, failures by reason."""

from __future__ import annotations

import random
from collections import Counter
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from experiments.core.system_names import SystemNameMasker
from experiments.models import Job, Label, LabelCheck, Layer, Run, Sweep
from experiments.pairwise import sources
from experiments.runs.lists import runs_from
from experiments.runs.prediction_interval import PredictionInterval
from experiments.sweeps import drawing, forecast, lists
from experiments.units.label_groups import group_labels
from tests.support.builders import make_run
from tests.support.sweeps import fill_in
from tests.support.trials import unit

pytestmark = pytest.mark.django_db


def recorded(owner: User, seconds: float, cost: float, **fields: object) -> Run:
    took = {"seconds": seconds, "cost": cost, "prompt_tokens": 90, "completion_tokens": 10, "rounds": 4}
    return make_run(owner, status="concluded", **(took | fields))


def test_a_forecast_rests_on_recorded_runs_of_each_agent(owner: User, layers: list[Layer]) -> None:
    for place in range(6):
        recorded(owner, 10.0 + place % 2, 0.5, backbone="openai", backbone_model="dear")
    recorded(owner, 1000.0, 9.0, backbone="openai", backbone_model="other")
    form = fill_in(owner, agent=["openai:dear"], toolset=["toybox"])
    assert form.is_valid(), form.problems
    found = forecast.predict(form.draft())
    assert (found.units, found.runs, found.recorded, found.unknown) == (8, 8, 6, [])
    assert found.cost == PredictionInterval(4.0, 4.0)
    assert found.seconds is not None
    assert found.seconds.expected == pytest.approx(84.0)
    assert found.seconds.lower < 84 < found.seconds.upper
    assert found.tokens == PredictionInterval(800.0, 800.0)
    assert found.clock is None, "no worker is there"


def test_without_a_recorded_run_nothing_is_foretold(owner: User, layers: list[Layer]) -> None:
    recorded(owner, 10.0, 0.5)
    form = fill_in(owner, agent=["scripted", "openai:dear"], toolset=["toybox"])
    assert form.is_valid(), form.problems
    found = forecast.predict(form.draft())
    assert (found.runs, found.seconds, found.cost, found.unknown) == (16, None, None, ["openai:dear"])


def test_runs_alike_are_worth_more_than_others(owner: User, layers: list[Layer]) -> None:
    for _ in range(5):
        recorded(owner, 10.0, 0.0, model="toybox")
        recorded(owner, 500.0, 0.0, model="resnet152")
    form = fill_in(owner)
    assert form.is_valid()
    found = forecast.predict(form.draft())
    assert (found.recorded, found.seconds) == (5, PredictionInterval(80.0, 80.0))


def test_labels_with_the_same_words_are_one_group() -> None:
    pairs = [(1, "red balls"), (2, "a red ball"), (3, "red ball"), (4, "blue cones"), (5, "red ball"), (5, "red balls")]
    groups = group_labels(pairs)
    assert [(group.label, sorted(group.members)) for group in groups] == [
        ("red ball", [1, 2, 3, 5]),
        ("blue cones", [4]),
    ]
    assert groups[0].labels[0] in ("red ball", "red balls")


def test_what_shares_half_of_the_words_or_more_joins_the_nearer() -> None:
    pairs = [(1, "red ball"), (2, "red ball on grass"), (3, "grass"), (4, "grass"), (5, "grass"), (6, "…")]
    groups = {group.label: sorted(group.members) for group in group_labels(pairs)}
    assert groups == {"grass": [3, 4, 5], "red ball": [1, 2], "…": [6]}


def test_a_label_joins_the_group_that_comparing_it_with_all_would_find() -> None:
    for seed in range(40):
        rng = random.Random(seed)
        words = [f"w{number}" for number in range(10)]
        pairs = [(place, " ".join(rng.choices(words, k=rng.randint(1, 5)))) for place in range(80)]
        counts = Counter(label for _, label in pairs)
        firsts: dict[str, list[str]] = {}
        for label in sorted(counts, key=lambda label: (-counts[label], len(label), label)):
            alike = {first: jaccard(label, first) for first in firsts}
            best = max(alike, key=lambda first: alike[first], default=label)
            firsts.setdefault(best if alike.get(best, 0) >= 0.5 else label, []).append(label)
        assert {group.label: set(group.labels) for group in group_labels(pairs)} == {
            first: set(some) for first, some in firsts.items()
        }


def jaccard(one: str, other: str) -> float:
    a, b = set(one.split()), set(other.split())
    return len(a & b) / len(a | b)


def test_no_label_makes_no_group() -> None:
    assert group_labels([(1, " ")]) == []


def test_what_a_sweep_found_is_told_by_status_reason_and_label(owner: User, swept: Sweep) -> None:
    one, two, three, four, *_ = swept.runs.order_by("pk")
    Run.objects.filter(pk__in=[one.pk, two.pk]).update(status="failed", reason="Out of memory.")
    Run.objects.filter(pk=three.pk).update(status="failed", reason="No key.")
    Run.objects.filter(pk=four.pk).update(status="concluded")
    label = Label.objects.create(text="red balls", source="run", run=four)
    label.units.add(unit(four.unit, Layer.objects.get(name="layer3")))
    failures = lists.list_failures(swept)
    assert [(each.reason, each.count, each.runs) for each in failures] == [
        ("Out of memory.", 2, [two.pk, one.pk]),
        ("No key.", 1, [three.pk]),
    ]
    row = lists.sweeps_from({}).rows.get()
    assert (row.done_runs, row.failed_runs, row.active_runs, lists.count_left(row)) == (1, 3, 4, 4)
    assert lists.state_of(row).moves == ["pause", "stop", "retry-failed"]
    assert [
        (group.label, group.members) for group in lists.group_runs(lists.read_runs(swept, SystemNameMasker(owner)))
    ] == [("red balls", [four.pk])]
    (figures,) = lists.compare_agents(lists.read_runs(swept, SystemNameMasker(owner)))
    assert (figures.agent, figures.done, figures.checked, figures.median) == ("scripted, toybox", 1, 0, None)


def test_a_sweep_moves_until_the_last_round_and_the_last_check(owner: User, swept: Sweep) -> None:
    def moves() -> bool:
        return lists.state_of(lists.sweeps_from({}).rows.get()).live

    assert moves()
    Job.objects.update(status="done")
    Sweep.objects.update(status="paused")
    assert not moves()
    run = swept.runs.order_by("pk")[0]
    Run.objects.filter(pk=run.pk).update(lease_expires=timezone.now() + timedelta(minutes=1))
    assert moves()
    swept.runs.update(status="concluded", lease_expires=None)
    assert not moves()
    found = unit(run.unit, Layer.objects.get(name="layer3"))
    check = LabelCheck.objects.create(key="c" * 64, unit=found, text="red balls", dataset="toybox", options={})
    Run.objects.filter(pk=run.pk).update(label_check=check)
    assert moves()
    LabelCheck.objects.update(status="unfinished")
    assert not moves(), "people come and go"


def test_a_sweep_is_a_filter_of_runs_and_a_source_of_labels(owner: User, swept: Sweep) -> None:
    make_run(owner)
    assert runs_from({"sweep": str(swept.pk)}).runs.count() == 8
    assert "is no sweep" in runs_from({"sweep": "all"}).problems["sweep"]
    run = swept.runs.order_by("pk")[0]
    found = unit(run.unit, Layer.objects.get(name="layer3"))
    Label.objects.create(text="red balls", source="run", run=run).units.add(found)
    key = f"sweep:{swept.pk}"
    listed = {each.key: (each.words, each.labels) for each in sources.list_sources()}
    assert listed[key] == (f"Sweep {swept.pk}: {swept.name}", 1)
    said = sources.labels_of(type(found).objects.filter(pk=found.pk), [key])
    assert said[found.pk][key].text == "red balls"


def test_scores_of_labels_are_drawn_by_agent(owner: User, swept: Sweep, as_owner: Client) -> None:
    runs = list(swept.runs.order_by("pk"))
    for place, (run, r) in enumerate(zip(runs, (1.0, 0.95, 0.2), strict=False)):
        check = LabelCheck.objects.create(key=f"{place}", unit=unit(place), text="red", options={}, pearson=r)
        Run.objects.filter(pk=run.pk).update(status="concluded", label_check=check)
    plot = drawing.draw_scores(lists.read_runs(swept, SystemNameMasker(None)))
    assert plot is not None
    assert [bar.words.partition(": ")[2] for bar in plot.bars] == ["1 from 0.20 to 0.25", "2 from 0.95 to 1.00"]
    assert drawing.draw_scores(()) is None
    page = as_owner.get(f"/sweeps/{swept.pk}/").content.decode()
    assert 'id="scores-head"' in page
    assert page.count('<td class="picture">') == len(runs)
