"""Agreement of reviewers: measures as published, undefined where they are, shown to whom they may be."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from experiments.agreement import measures
from experiments.agreement.measures import cohen_kappa, fleiss_kappa, krippendorff_alpha
from experiments.agreement.ratings import LINES, Level, Line, Ratings
from experiments.models import Queue, Review
from experiments.review import rubric
from tests.builders import make_run
from tests.conftest import member

GAP = np.nan
OBSERVERS = [  # 4 observers, 12 units
    [1, 2, 3, 3, 2, 1, 4, 1, 2, GAP, GAP, GAP],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, GAP, 3],
    [GAP, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, GAP],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, GAP],
]
PSYCHIATRISTS = [  # 10 subjects, 14 raters, 5 categories: how many raters chose which
    [0, 0, 0, 0, 14],
    [0, 2, 6, 4, 2],
    [0, 0, 3, 5, 6],
    [0, 3, 9, 2, 0],
    [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0],
    [3, 2, 6, 3, 0],
    [2, 5, 3, 2, 2],
    [6, 5, 2, 1, 0],
    [0, 2, 2, 3, 7],
]


def rated(rows: Sequence[Sequence[float]], level: Level, values: tuple[int, ...] = (1, 2, 3, 4, 5)) -> Ratings:
    """From a row for each reviewer."""
    table = np.array(rows, dtype=float).T
    return Ratings(Line("line", "Line", level, values), table, tuple(range(table.shape[1])))


def two(counts: Sequence[Sequence[int]], level: Level = "nominal") -> Ratings:
    """Two reviewers, from the table of how often the first gave i and the second j."""
    size = range(len(counts))
    pairs = [(i, j) for i, j in product(size, size) for _ in range(counts[i][j])]
    return rated(list(zip(*pairs, strict=True)), level, tuple(size))


# --- published examples ---


@pytest.mark.parametrize(("level", "alpha"), [("nominal", 0.743), ("ordinal", 0.815)])
def test_alpha_is_that_of_krippendorffs_example(level: Level, alpha: float) -> None:
    """Computing Krippendorff's Alpha-Reliability (2011), section E: four observers, missing data."""
    found = krippendorff_alpha(rated(OBSERVERS, level))
    assert found.value == pytest.approx(alpha, abs=5e-4)
    assert found.n == 11, "the last item has one opinion alone"


def test_fleiss_kappa_is_that_of_the_known_example() -> None:
    """Fleiss 1971's form; ten subjects and fourteen raters, kappa 0.210."""
    columns = [[value for value, count in enumerate(row, 1) for _ in range(count)] for row in PSYCHIATRISTS]
    found = fleiss_kappa(rated(np.array(columns).T.tolist(), "nominal"))
    assert found.value == pytest.approx(0.210, abs=5e-4)
    assert (found.n, found.raters) == (10, 14)


@pytest.mark.parametrize(
    ("counts", "kappa"),
    [
        ([[20, 5], [10, 15]], 0.4),  # grants judged by two readers
        ([[45, 15], [25, 15]], 0.1304),  # the same agreement of 0.6, other margins
        ([[25, 35], [5, 35]], 0.2593),
        ([[88, 14, 18], [10, 40, 10], [2, 6, 12]], 0.492),  # Cohen 1960, table 1
    ],
)
def test_cohens_kappa_is_that_of_published_tables(counts: list[list[int]], kappa: float) -> None:
    assert cohen_kappa(two(counts), 0, 1).value == pytest.approx(kappa, abs=5e-4)


def test_weighted_kappa_is_what_its_definition_says() -> None:
    """Squared distances of all cells of the table, observed and expected."""
    counts = np.array([[11, 3, 1, 0], [1, 9, 0, 1], [0, 1, 10, 0], [1, 2, 0, 10]])
    weights = np.subtract.outer(np.arange(4), np.arange(4)) ** 2
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    wanted = 1 - (weights * counts).sum() / (weights * expected).sum()
    assert cohen_kappa(two(counts.tolist(), "ordinal"), 0, 1).value == pytest.approx(wanted)


# --- intervals ---


def test_the_interval_is_the_same_each_time_and_holds_the_value() -> None:
    measures.of_counts.cache_clear()
    one = krippendorff_alpha(rated(OBSERVERS, "ordinal"))
    measures.of_counts.cache_clear()
    other = krippendorff_alpha(rated(OBSERVERS, "ordinal"))
    assert one == other
    assert one.low < one.value < one.high <= 1
    assert one.few


def test_the_interval_covers_what_is_true_nearly_always() -> None:
    """Two readers who agree by chance alone: the interval of kappa holds 0 in about 95 of 100 samples."""
    rng = np.random.default_rng(7)
    found = [cohen_kappa(rated(rng.integers(1, 4, (2, 80)), "nominal"), 0, 1) for _ in range(60)]
    assert 52 <= sum(each.low <= 0 <= each.high for each in found) <= 60


def test_more_items_narrow_the_interval() -> None:
    rng = np.random.default_rng(3)
    widths = []
    for items in (20, 200):
        truth = rng.integers(1, 6, items)
        rows = [np.where(rng.random(items) < 0.7, truth, rng.integers(1, 6, items)) for _ in range(3)]
        found = krippendorff_alpha(rated(rows, "ordinal"))
        widths.append(found.high - found.low)
    assert widths[1] < widths[0] / 2


# --- what is undefined ---


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([[1, 2, 3]], measures.ONE_REVIEWER),
        ([[1, GAP], [GAP, 2]], measures.NO_ITEM),
        ([[1, 2, GAP], [1, GAP, 2]], measures.ONE_ITEM),
        ([[4, 4, 4], [4, 4, 4]], measures.ONE_VALUE),
    ],
)
def test_what_is_undefined_says_so_and_gives_no_number(rows: list[list[float]], why: str) -> None:
    for measure in (krippendorff_alpha, fleiss_kappa):
        found = measure(rated(rows, "ordinal"))
        assert (found.value, found.low, found.why) == (None, None, why)


def test_fleiss_takes_the_items_that_have_as_many_opinions_as_most() -> None:
    rows = [[1, 2, 3, 1, 2], [1, 2, 3, 1, 1], [1, 2, 3, GAP, GAP]]
    found = fleiss_kappa(rated(rows, "nominal"))
    assert (found.n, found.raters, found.value) == (3, 3, pytest.approx(1.0))
    uneven = [[1, 2], [1, 2], [1, GAP]]
    assert fleiss_kappa(rated(uneven, "nominal")).why == measures.UNEVEN


def test_too_few_items_have_a_value_and_no_interval() -> None:
    found = cohen_kappa(rated([[1, 2, 3], [1, 2, 2]], "ordinal"), 0, 1)
    assert found.value is not None
    assert (found.low, found.high) == (None, None)


def test_nearly_one_value_has_no_interval_rather_than_a_wrong_one() -> None:
    """Most resamples hold no item but those that all gave the same."""
    rows = [[5] * 30 + [4], [5] * 30 + [4]]
    found = krippendorff_alpha(rated(rows, "ordinal"))
    assert found.value == pytest.approx(1.0)
    assert found.low is None


# --- pages ---


def opinion(queue: Queue, position: int, reviewer: User, score: int, verdict: str, state: str = "submitted") -> Review:
    item = queue.items.get(position=position)
    scores = dict.fromkeys(rubric.NAMES, score)
    return Review.objects.create(
        item=item, reviewer=reviewer, state=state, verdict=verdict, submitted="2026-11-01T00:00Z", **scores
    )


@pytest.fixture
def reviewers(db: None) -> list[User]:
    return [member(name, "REVIEWER") for name in ("first", "second", "third")]


@pytest.fixture
def queue(owner: User, reviewers: list[User]) -> Queue:
    """Six runs, each reviewed by two: they differ by a lot on the fourth, a little on the second."""
    queue = Queue.objects.create(name="All <b>", owner=owner, reviewers_per_item=2)
    given = [(1, 1, "reject", "reject"), (3, 4, "revise", "accept"), (5, 5, "accept", "accept")]
    given += [(1, 5, "reject", "accept"), (2, 2, "revise", "revise"), (4, 4, "accept", "accept")]
    for position, (one, other, first, second) in enumerate(given, 1):
        run = make_run(owner, unit=position, question=f"What about {position}?")
        queue.items.create(run=run, position=position, complete=True)
        opinion(queue, position, reviewers[0], one, first)
        opinion(queue, position, reviewers[1], other, second)
    return queue


def page_of(queue: Queue, user: User, query: str = "?figures=now") -> str:
    client = Client()
    client.force_login(user)
    return client.get(f"/review/{queue.pk}/agreement/{query}").content.decode()


def test_figures_stand_by_line_and_by_reviewer_with_a_warning(queue: Queue, reviewers: list[User]) -> None:
    page = page_of(queue, reviewers[0])
    assert all(line.words in page for line in LINES)
    assert "Few items." in page
    assert page.count(", 95 % interval") == 2 * len(LINES) + 1, "of every line two measures, and of the pair one"
    assert re.search(r"first <span[^>]*>and</span> second", page)
    assert "quadratic weights" not in page
    assert "quadratic weights" in page_of(queue, reviewers[0], "?figures=now&line=samples")
    assert "There is one reviewer alone." in page, "alpha without one of two"


def test_disagreements_come_widest_first_with_both_opinions_side_by_side(queue: Queue, reviewers: list[User]) -> None:
    page = page_of(queue, reviewers[1], "")
    assert re.findall(r"What about (\d)\?", page) == ["4", "2"]
    assert page.count("2 opinions side by side") == 2
    assert "All &lt;b&gt;" in page
    assert page.index('class="verdict reject"') < page.index('class="verdict revise"')


def test_the_page_is_there_before_the_figures_are(queue: Queue, reviewers: list[User]) -> None:
    client = Client()
    client.force_login(reviewers[0])
    assert "Measuring agreement" in page_of(queue, reviewers[0], "")
    part = client.get(f"/review/{queue.pk}/agreement/", headers={"HX-Request": "true", "HX-Target": "figures"})
    assert part.content.decode().startswith('<div id="figures"')


def test_in_a_blind_queue_only_who_submitted_everything_sees_it(
    queue: Queue, reviewers: list[User], owner: User, teammate: User
) -> None:
    queue.items.create(run=make_run(owner, unit=7), position=7)
    assert "Hidden until you have reviewed" in page_of(queue, reviewers[0]), "the seventh is due"
    opinion(queue, 7, reviewers[0], 3, "revise")
    assert "By line of the rubric" in page_of(queue, reviewers[0])
    for user in (reviewers[1], reviewers[2], owner, teammate):
        assert "Hidden until you have reviewed" in page_of(queue, user)
    assert "By line of the rubric" in page_of(queue, member("admin", "ADMIN"))
    Queue.objects.update(closed="2026-11-02T00:00Z")
    assert "By line of the rubric" in page_of(queue, teammate)


def test_drafts_count_for_nothing(queue: Queue, reviewers: list[User]) -> None:
    opinion(queue, 3, reviewers[2], 1, "reject", state="draft")
    Queue.objects.update(closed="2026-11-02T00:00Z")
    page = page_of(queue, reviewers[0])
    assert re.findall(r"What about (\d)\?", page) == ["4", "2"]
    assert "third" not in page


def test_a_queue_without_opinions_has_its_own_words(owner: User) -> None:
    queue = Queue.objects.create(name="new", owner=owner, blind=False)
    page = page_of(queue, owner)
    assert "Nothing has been submitted yet" in page
    assert measures.ONE_REVIEWER in page


def test_the_page_asks_the_database_as_often_for_many_as_for_few(
    queue: Queue, reviewers: list[User], owner: User, django_assert_num_queries
) -> None:
    client = Client()
    client.force_login(reviewers[0])
    with CaptureQueriesContext(connection) as few:
        client.get(f"/review/{queue.pk}/agreement/")
    for position in range(7, 30):
        queue.items.create(run=make_run(owner, unit=position), position=position, complete=True)
        opinion(queue, position, reviewers[0], 1, "reject")
        opinion(queue, position, reviewers[1], 5, "accept")
    with django_assert_num_queries(len(few)):
        client.get(f"/review/{queue.pk}/agreement/")


def test_the_web_starts_without_the_libraries_of_agreement() -> None:
    program = (
        "import os, sys, django; os.environ['DJANGO_SETTINGS_MODULE'] = 'maia_web.settings'; django.setup();"
        "import maia_web.urls; print([name for name in ('numpy', 'scipy', 'krippendorff') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip().splitlines()[-1] == "[]"
