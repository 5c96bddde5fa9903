"""Compare: runs side by side, aligned by round; what differs; addresses that make no sense; queries."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from experiments.core import transcript
from experiments.models import Run
from experiments.runs.comparing import comparison
from experiments.runs.comparing.comparison import MINUS
from experiments.runs.comparing.pages import MAX_RUNS
from tests.support.builders import experiment, make_run, replied
from tests.support.pictures import logged, seen
from workers.record.events import Ended
from workers.record.replies import Conclusion, Hypothesis

pytestmark = pytest.mark.django_db
Queries = Any


def ran(owner: User, best: float = 4.0, rounds: int = 1, words: str = "Look.", **fields: Any) -> Run:
    """A run whose every round says this, supposes something and logs one image."""
    run = make_run(owner, **fields)
    for n in range(1, rounds + 1):
        said = replied(n, prose=words, hypotheses=(Hypothesis(1, "It likes red."),))
        transcript.append(run.pk, "reply", said)
        transcript.append(run.pk, "experiment", experiment(n))
        result = logged(seen(f"picture {n}", best, "red"), number=n, exemplar_mean=3.0)
        transcript.append(run.pk, "result", replace(result, round=n))
    run.refresh_from_db()
    return run


def page(client: Client, *runs: Run | str, **params: str) -> str:
    given = [str(run.pk) if isinstance(run, Run) else run for run in runs]
    response = client.get("/compare/", {"run": given, **params})
    assert response.status_code == 200
    return response.content.decode()


def lines(text: str) -> dict[str, list[str]]:
    """Name of a line -> the words of its cells."""
    found = re.findall(r'role="rowheader" class="name">([^<]+)</span>(.*?)</div></div>', text, flags=re.DOTALL)
    return {name: [said(cell) for cell in re.split(r'<div role="cell"[^>]*>', cells)[1:]] for name, cells in found}


def said(html: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def columns(text: str) -> list[int]:
    return [int(number) for number in re.findall(r'class="cell" aria-label="Run (\d+)"', text)]


def problems(text: str) -> str:
    found = re.search(r'<ul class="problems".*?</ul>', text, flags=re.DOTALL)
    return said(found[0]) if found else ""


def parts(text: str) -> dict[str, list[str]]:
    """Round -> what of it is shown."""
    sections = re.findall(r'id="(round-\d+)"(.*?)</section>', text, flags=re.DOTALL)
    return {name: re.findall(r'class="line as-(\w+)', body) for name, body in sections}


def test_figures_stand_against_the_first_run_or_the_one_that_is_asked_for(as_owner: Client, owner: User) -> None:
    one, two = ran(owner, 4.0), ran(owner, 2.5, rounds=2)
    told = lines(page(as_owner, one, two))
    assert told["Best activation"] == ["4.00", f"2.50 {MINUS}1.50"]
    assert told["Exemplar threshold"] == ["3.00", "3.00 same"]
    assert told["Rounds"] == ["1", "2 +1"]
    assert told["Tokens"] == ["15", "30 +15"]
    assert told["Cost"] == ["$0.25", "$0.50 +$0.25"]
    told = lines(page(as_owner, one, two, base=str(two.pk)))
    assert told["Best activation"] == ["4.00 +1.50", "2.50"]


@pytest.mark.parametrize(
    ("value", "base", "expected"),
    [
        (None, 1.0, ""),
        (1.0, None, ""),
        (float("inf"), 1.0, ""),
        (1.00001, 1.0, "same"),
        (0.0123, 0.0121, "+0.0002"),
        (0.5, 1.0, f"{MINUS}0.50"),
    ],
)
def test_a_difference_has_a_sign_or_is_none(value: float | None, base: float | None, expected: str) -> None:
    assert comparison.difference(value, base, comparison.figure) == expected


def test_conclusions_stand_side_by_side(as_owner: Client, owner: User) -> None:
    one, two = ran(owner), ran(owner)
    end = Ended("", Conclusion("Red <b>things</b>.", ("red balls",)))
    transcript.append(one.pk, "concluded", end)
    text = page(as_owner, two, one)
    assert columns(text) == [two.pk, one.pk]
    assert lines(text)["Labels"] == ["none", "red balls"]
    assert "Red &lt;b&gt;things&lt;/b&gt;." in text
    assert f"Run {two.pk}</b> has not ended" in text
    assert f"Run {one.pk}</b> has not ended" not in text


def test_rounds_are_aligned_and_one_that_a_run_has_not_is_said(as_owner: Client, owner: User) -> None:
    one, two = ran(owner, rounds=1), ran(owner, rounds=2)
    transcript.append(one.pk, "cancelled", Ended("Stopped."))
    text = page(as_owner, one, two)
    assert parts(text) == {f"round-{n}": ["words", "hypotheses", "programs", "images"] for n in (1, 2)}
    second = text[text.index('id="round-2"') :]
    assert "It ended after 1 round." in second
    assert second.count('<figure class="image-card"') == 1


def test_all_bars_share_one_scale_with_the_tick_of_each_run(as_owner: Client, owner: User) -> None:
    one, two = ran(owner, 40.0), ran(owner, 2.0)
    Run.objects.filter(pk=two.pk).update(exemplar_mean=1.5)
    text = page(as_owner, one, two)
    assert set(re.findall(r'<svg class="bar" viewBox="([^"]+)"', text)) == {"0 0 40 1"}
    assert (
        re.findall(r'data-exemplar-mean="([^"]+)"', text) == ["3.00", "1.50"] * 2
    )  # of the best images, and of the round


def test_only_differences_leaves_out_what_is_alike_and_says_how_much(as_owner: Client, owner: User) -> None:
    one, two = ran(owner, 4.0, rounds=1), ran(owner, 4.0, rounds=1, seed=5)
    text = page(as_owner, one, two, only="differences")
    assert list(lines(text)) == ["Seed"]
    assert "20 lines the same in all runs, left out" in text
    assert parts(text) == {}
    assert "said, did and saw the same in these rounds" in text
    three = ran(owner, 4.5, rounds=1)
    text = page(as_owner, one, three, only="differences")
    assert list(lines(text)) == ["Best activation"]
    assert parts(text) == {"round-1": ["images"]}
    # Every link and form of the page keeps the switch.
    assert 'name="only" value="differences"' in text
    assert f"only=differences&amp;base={three.pk}" in text


def test_a_run_is_removed_and_the_rest_of_the_address_stays(as_owner: Client, owner: User) -> None:
    runs = [ran(owner) for _ in range(3)]
    one, two, three = (run.pk for run in runs)
    text = page(as_owner, *runs, base=str(two), only="differences")
    assert (
        f'href="?run={two}&amp;run={three}&amp;base={two}&amp;only=differences" aria-label="Remove run {one}"' in text
    )
    assert f'href="?run={one}&amp;run={three}&amp;only=differences" aria-label="Remove run {two}"' in text


def test_runs_of_the_same_units_are_offered(as_owner: Client, owner: User) -> None:
    one, two, same, other = ran(owner), ran(owner, unit=9), ran(owner, unit=9), ran(owner, unit=30)
    offered = re.findall(r'<input type="checkbox" name="run" value="(\d+)">', page(as_owner, one, two))
    assert offered == [str(same.pk)]
    assert str(other.pk) not in offered


def test_without_runs_the_newest_are_offered(as_owner: Client, owner: User) -> None:
    assert "No runs to compare yet" in page(as_owner)
    run = ran(owner)
    assert f'type="checkbox" name="run" value="{run.pk}"' in page(as_owner)


def test_one_run_asks_for_another(as_owner: Client, owner: User) -> None:
    one = ran(owner)
    assert "No other run of this unit" in page(as_owner, one)
    two = ran(owner)
    text = page(as_owner, one)
    assert "One run is chosen so far" in text
    assert f'type="checkbox" name="run" value="{two.pk}"' in text


def test_of_seven_runs_six_are_shown_and_the_last_is_named(as_owner: Client, owner: User) -> None:
    runs = [make_run(owner) for _ in range(MAX_RUNS + 1)]
    text = page(as_owner, *runs)
    assert columns(text) == [run.pk for run in runs[:MAX_RUNS]]
    assert f"Left out: {runs[-1].pk}." in problems(text)
    assert "remove one to add another" in text


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("999", "There is no run 999."),
        ("abc", "“abc” is no number of a run."),
        ("-1", "“-1” is no number of a run."),
        ("1" * 40, "is no number of a run."),
        ("9" * 18, "There is no run"),
        ("<script>x</script>", "&lt;script&gt;x&lt;/script&gt;”"),
        ("1\x00", "is no number of a run."),
        ("٣", "is no number of a run."),
    ],
)
def test_a_number_that_names_no_run_is_said_and_the_others_stay(
    as_owner: Client, owner: User, given: str, expected: str
) -> None:
    one, two = ran(owner), ran(owner)
    text = page(as_owner, one, given, two, "", f"#{one.pk}")
    assert columns(text) == [one.pk, two.pk]
    assert expected in problems(text)
    assert expected in problems(page(as_owner, given))


@pytest.mark.parametrize("base", ["999", "x", "1" * 30])
def test_a_baseline_that_is_not_there_is_said(as_owner: Client, owner: User, base: str) -> None:
    one, two = ran(owner), ran(owner)
    assert f"they are measured against run {one.pk}." in problems(page(as_owner, one, two, base=base))


@pytest.mark.parametrize(("asked", "shown"), [("0", 1), ("x", 1), ("-3", 1), ("7", 2), ("9" * 18, 2)])
def test_a_page_of_rounds_that_is_not_there_is_said(as_owner: Client, owner: User, asked: str, shown: int) -> None:
    one, two = ran(owner), ran(owner, rounds=comparison.ROUNDS + 1)
    text = page(as_owner, one, two, page=asked)
    assert f"this is page {shown} of 2." in problems(text)
    assert len(parts(text)) == (comparison.ROUNDS if shown == 1 else 1)


def test_hostile_words_are_text(as_owner: Client, owner: User) -> None:
    bad = "<script>alert(1)</script>"
    runs = [ran(owner, words=bad, question=bad, model="a/b:<i>", layer="../x") for _ in range(2)]
    text = page(as_owner, *runs)
    assert bad not in text
    assert "&lt;script&gt;alert(1)" in text


def test_the_number_of_queries_does_not_depend_on_the_runs(
    as_owner: Client, owner: User, django_assert_max_num_queries: Queries
) -> None:
    runs = [ran(owner, rounds=1 + n, unit=n) for n in range(MAX_RUNS)]
    page(as_owner, *runs[:2])  # what a process reads once is read
    with django_assert_max_num_queries(17) as few:
        page(as_owner, *runs[:2])
    with django_assert_max_num_queries(len(few)):
        page(as_owner, *runs)


def test_activations_lie_on_one_axis_with_a_row_for_each_run(as_owner: Client, owner: User) -> None:
    one, other = ran(owner, best=4.0), ran(owner, best=9.0)
    text = page(as_owner, one, other)
    assert f"Run {one.pk}: mean" in text
    assert f"Run {other.pk}: mean" in text
    assert "What it responds to" in text


def test_runs_without_images_have_neither_strips_nor_pictures(as_owner: Client, owner: User) -> None:
    text = page(as_owner, make_run(owner), make_run(owner))
    assert "Activations of" not in text
    assert "What it responds to" not in text
