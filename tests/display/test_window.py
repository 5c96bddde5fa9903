"""Which events of a long run its page draws, and how the gaps between them fill."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client

from experiments.display import rounds, window
from experiments.display.window import Gap, Span
from experiments.models import Run
from tests.support.builders import make_run
from tests.support.long_run import long_run

pytestmark = pytest.mark.django_db

ROUNDS = 70
EVENTS = 3 * ROUNDS + 2
"""One at the start, three to a round, one at the end."""


@pytest.fixture
def run(owner: User) -> Run:
    return long_run(owner, ROUNDS, 2)


def shape(pieces: list[window.Piece]) -> list[tuple[int, int] | Gap]:
    """(first, last) of each piece that is drawn, and the gaps."""
    return [piece if isinstance(piece, Gap) else (piece[0].seq, piece[-1].seq) for piece in pieces]


def drawn(text: str) -> set[int]:
    """The events that a page has an anchor for."""
    return {int(seq) for seq in re.findall(r'id="e(\d+)"', text)}


def test_an_ordinary_run_is_drawn_whole(owner: User) -> None:
    run = long_run(owner, 10, 2)
    assert shape(window.list_first_pieces(run)) == [(1, 32)]
    assert window.link(run, 7) == "#e7"


def test_a_run_without_events_has_no_pieces(owner: User) -> None:
    assert window.list_first_pieces(make_run(owner)) == []


def test_a_long_run_opens_with_its_beginning_and_its_end_in_whole_rounds(run: Run) -> None:
    first, gap, last = shape(window.list_first_pieces(run))
    assert (first, last) == ((1, 16), (164, EVENTS))
    assert gap == Gap(16, 164)
    assert gap.count == 147


def test_the_event_that_is_asked_for_stands_amid_others(run: Run) -> None:
    _, before, (first, last), after, _ = shape(window.list_first_pieces(run, 90))
    assert first < 80
    assert last > 100
    assert before == Gap(16, first)
    assert after == Gap(last, 164)
    assert (first - 2) % 3 == 0, "it begins with a reply"
    assert (last - 1) % 3 == 0, "it ends with a result"


@pytest.mark.parametrize("at", [1, 20, 150, EVENTS])
def test_a_window_at_the_edge_joins_its_neighbour(run: Run, at: int) -> None:
    pieces = window.list_first_pieces(run, at)
    assert len(pieces) == 3
    assert any(event.seq == at for piece in pieces if not isinstance(piece, Gap) for event in piece)


def test_a_gap_fills_from_above_and_from_below_until_nothing_is_left(run: Run) -> None:
    gap, seen, turn = Gap(16, 164), set[int](), 0
    while gap:
        rest = None
        for piece in window.fill_gap(run, gap, from_below=turn % 2 == 1):
            if isinstance(piece, Gap):
                rest = piece
            else:
                assert not seen & {event.seq for event in piece}
                seen |= {event.seq for event in piece}
        assert rest is None or rest.count < gap.count
        gap, turn = rest, turn + 1
    assert seen == set(range(17, 164))


def test_a_round_without_end_is_cut_where_the_window_ends() -> None:
    assert window.extend_to_rounds(Span(50, 90), Span(38, 102), [], Span(1, 500)) == Span(50, 90)


def test_links_into_a_long_run_name_the_window(run: Run) -> None:
    assert window.link(run, 90) == "?at=90#e90"
    assert window.link(run, 90, "round-30") == "?at=90#round-30"


@pytest.mark.parametrize(
    ("query", "seq"), [("at=91", 91), ("round=30", 89), ("experiment=30", 91), ("experiment=30&round=&at=", 91)]
)
def test_the_page_draws_what_the_address_names(as_owner: Client, run: Run, query: str, seq: int) -> None:
    text = as_owner.get(f"/runs/{run.pk}/?{query}").content.decode()
    anchors = drawn(text)
    assert {1, seq, EVENTS} <= anchors
    assert len(anchors) < 160
    assert f'href="?at={seq}#e{seq}"' in text
    assert "This run has no" not in text


def test_the_start_of_an_experiment_has_an_anchor_too(as_owner: Client, run: Run) -> None:
    text = as_owner.get(f"/runs/{run.pk}/?at=90").content.decode()
    assert "Experiment 30" in text
    assert {90, 91} <= drawn(text)


def test_what_the_run_does_not_have_is_named(as_owner: Client, run: Run) -> None:
    for query in ("at=99999", "at=0", "round=5000", "experiment=5000"):
        text = as_owner.get(f"/runs/{run.pk}/?{query}").content.decode()
        name, _, number = query.partition("=")
        assert f"This run has no {'event' if name == 'at' else name} {number}." in text


@pytest.mark.parametrize("query", ["at=x", "at=-3", "at=9999999999999", "at=%F0%9D%9F%97", "round=", "at=%00"])
def test_a_number_that_is_none_is_left_out(as_owner: Client, owner: User, query: str) -> None:
    response = as_owner.get(f"/runs/{make_run(owner).pk}/?{query}")
    assert response.status_code == 200
    assert "This run has no" not in response.content.decode()


def test_a_gap_is_filled_by_the_server(as_owner: Client, run: Run) -> None:
    text = as_owner.get(f"/runs/{run.pk}/events/?after=16&before=164&from=below").content.decode()
    assert 163 in drawn(text)
    assert 17 not in drawn(text)
    assert text.strip().startswith('<div class="gap" data-after="16"')
    assert "<html" not in text


def test_a_gap_that_is_none_is_not_found(as_owner: Client, run: Run) -> None:
    nonsense = ("after=16", "after=16&before=17", "after=20&before=10", "after=0&before=99999", "after=x&before=9")
    for query in ("", *nonsense):
        assert as_owner.get(f"/runs/{run.pk}/events/?{query}").status_code == 404


def test_the_outline_of_a_long_run_is_short_and_unfolds_where_the_reader_is(
    as_owner: Client, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds, "SINGLE", 50)
    monkeypatch.setattr(rounds, "GROUPS", 10)
    opened = as_owner.get(f"/runs/{run.pk}/").content.decode()
    assert "Rounds 1\N{EN DASH}5" in opened
    assert 'data-first="9" data-last="9"' not in opened
    assert 'data-first="70" data-last="70"' in opened
    there = as_owner.get(f"/runs/{run.pk}/?round=9").content.decode()
    assert 'data-first="9" data-last="9"' in there
