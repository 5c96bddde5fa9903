"""A run on a function as people see it: samples, hypotheses, and the truth once it has ended, and not before."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.template.loader import render_to_string
from django.test import Client

from experiments.display.events import side
from experiments.display.functions.plots import plot_residuals, plot_samples
from experiments.display.functions.samples import FunctionEvidence, LoggedSample, read_function
from experiments.models import Layer, Run, VisionModelRow
from experiments.units.bands import FunctionBand, band_of_score
from tests.support.builders import make_run
from tests.support.function_runs import FUNCTION, play
from workers.functions.families import open_function
from workers.record.functions import FunctionScore, Sample, ScoredInput, TrueFunction

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis_url", "_laboratory")]
CORRUPTED = 10
"""Number of a numeric function with an interval where it does something else."""


def words_of(client: Client, address: str) -> str:
    """The words of a page."""
    page = client.get(address)
    assert page.status_code == 200
    return " ".join(unescape(re.sub("<[^>]*>", " ", page.content.decode())).split())


def test_a_numeric_run_grows_a_plot_and_ends_with_the_truth(owner: User, client: Client) -> None:
    truth = open_function(f"numeric:{CORRUPTED}").truth
    client.force_login(owner)
    run = play(make_run(owner, layer="numeric", unit=CORRUPTED, question="What is it?", **FUNCTION), until=1)
    assert (read_function(run).names, read_function(run).score) == ([], None)
    for tab in ("transcript", "samples", "raw"):
        assert truth.description not in words_of(client, f"/runs/{run.pk}/?tab={tab}")

    run = play(run, until=2)
    found = read_function(run)
    assert (found.names, found.newest, len(found.samples)) == (["Hypothesis_1"], 2, 2 * 513)
    plot = plot_samples(found)
    assert plot
    assert [kind for _, kind in plot.paths] == ["part-0"]
    assert not plot.bars  # its first guess names no interval
    assert plot_residuals(found)
    assert "differs by at most" in str(side(run))

    run = play(run)
    found = read_function(run)
    assert found.score
    assert found.score.success
    assert run.score == {"outcome": "scored", "success": True, "error": found.score.error, "right": None}
    plot = plot_samples(found)
    assert plot
    assert {kind for _, kind in plot.paths} == {"truth", "answer", "part-0"}
    assert truth.corruption
    assert found.exceptions == [pytest.approx((truth.corruption.low, truth.corruption.high), abs=0.5)]
    assert [each.kind for each in plot.bars] == ["left-out"]
    assert [line.kind for line in plot.lines] == ["upright", "upright"]
    tab = words_of(client, f"/runs/{run.pk}/?tab=samples")
    assert truth.description in tab
    for words in ("Output by input", "NMSE", "H1 said", "Page 1 of 11", "corrupted"):
        assert words in tab
    page = words_of(client, f"/runs/{run.pk}/")
    assert page.count("NMSE") >= 2  # the answer and the end
    assert "Exemplars" not in page
    told = client.get(f"/api/v1/runs/{run.pk}").json()
    assert told["score"] == run.score | {"ceiling": None}


def test_a_run_on_texts_shows_what_each_hypothesis_said(owner: User, client: Client) -> None:
    client.force_login(owner)
    run = play(make_run(owner, layer="strings", unit=5, question="What is it?", **FUNCTION))
    found = read_function(run)
    assert found.score
    assert (found.score.right, plot_samples(found)) == (10, None)
    tab = words_of(client, f"/runs/{run.pk}/?tab=samples")
    for words in ("H1 said", "10 of 10 held-out cases", "right for", open_function("strings:5").truth.description):
        assert words in tab
    assert found.samples[-1].sample.output in tab


def test_tabs_are_those_of_its_kind(owner: User, client: Client) -> None:
    client.force_login(owner)
    function, unit = make_run(owner, layer="numeric", unit=1, **FUNCTION), make_run(owner, layer="layer4", unit=1)
    tabs = {
        run: set(re.findall(r'data-tab="(\w+)"', client.get(f"/runs/{run.pk}/").content.decode()))
        for run in (function, unit)
    }
    assert tabs[function] ^ tabs[unit] == {"samples", "images", "activations", "effects"}
    assert "No sample yet" in words_of(client, f"/runs/{function.pk}/?tab=samples")
    asked = client.get(f"/runs/{unit.pk}/?tab=samples")
    assert asked.context["tab"].name == "transcript"


def test_functions_are_coloured_by_their_newest_score(owner: User, client: Client) -> None:
    model = VisionModelRow.objects.create(name="functions", revision="1")
    Layer.objects.create(model=model, position=0, name="numeric", path="numeric", kind="function", units=9)
    good, bad = ({"outcome": "scored", "success": each, "error": 1e-3 if each else 40.0} for each in (True, False))
    for number, score in ((2, bad), (2, good), (3, bad)):
        run = make_run(owner, layer="numeric", unit=number, **FUNCTION)
        Run.objects.filter(pk=run.pk).update(score=score, status="concluded", ended=run.created)
    client.force_login(owner)
    page = client.get("/units/functions/?colour=check")
    counts = {str(each["state"]): each["count"] for each in page.context["legend"]}
    assert counts == {"band-high": 1, "band-low": 1, "band-some": 0, "band-none": 7}
    assert [name for name, _ in page.context["schemes"]] == ["state", "check", "review"]


@pytest.mark.parametrize(
    ("score", "band"),
    [
        ({"success": True}, FunctionBand.RIGHT),
        ({"success": False, "error": 0.4}, FunctionBand.PARTLY),
        ({"success": False, "right": 3}, FunctionBand.PARTLY),
        ({"success": False, "error": 1.0}, FunctionBand.WRONG),
        ({"success": False, "outcome": "timed out"}, FunctionBand.WRONG),
    ],
)
def test_a_score_lies_in_a_band(score: Any, band: FunctionBand) -> None:
    assert band_of_score(score) == band


def evidence(run: Run, samples: list[Sample], score: FunctionScore | None = None) -> FunctionEvidence:
    return FunctionEvidence(run, [LoggedSample(1, 1, each) for each in samples], [(float("-inf"), 3.0)], score)


def test_what_lies_far_off_does_not_flatten_the_rest(owner: User) -> None:
    run = make_run(owner, layer="numeric", unit=1, **FUNCTION)
    samples = [Sample(str(x), "1e300" if x == 7 else str(x)) for x in range(60)] + [
        Sample("1", '"nan"'),
        Sample("x", "1"),
    ]
    plot = plot_samples(evidence(run, samples))
    assert plot
    assert plot.y.high <= 150
    assert (len(plot.dots), plot.note) == (60, "1 lies far off, and stands at the edge.")
    assert plot_samples(evidence(run, [Sample("1", '"nan"')])) is None
    many = [Sample(str(x), "1") for x in range(5000)]
    plot = plot_samples(evidence(run, many))
    assert plot
    assert (len(plot.dots), plot.note) == (1000, "One in 5 is drawn.")


def test_hostile_words_are_shown_as_words(owner: User, client: Client) -> None:
    run = make_run(owner, layer="strings", unit=1, **FUNCTION)
    name = "<script>alert(1)</script>"
    found = evidence(run, [Sample('"a"', '"<b>"', {name: '"<i>"'})])
    assert [(fit.name, fit.words) for fit in found.fits] == [(name, "right for 0 of 1 inputs")]
    truth = TrueFunction("def f(x):\n    return '<u>'", "<b>bold</b>")
    score = FunctionScore(
        "strings:1", "raised", why="<script>x</script>", inputs=(ScoredInput('"<i>"', '"<b>"'),), truth=truth
    )
    for template in ("fits", "score", "truth", "held_out"):
        drawn = render_to_string(
            f"display/functions/{template}.html", {"found": replace(found, score=score), "score": score}
        )
        assert not re.search(r"<(script|b|i|u)>", drawn.replace("<b class", "<B class"))
