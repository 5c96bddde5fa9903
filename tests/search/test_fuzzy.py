"""Names found by half a word, and with a slip of the finger."""

from __future__ import annotations

import pytest

from experiments.search.fuzzy import score_name


@pytest.mark.parametrize("typed", ["audit", "aud", "udit", "adit", "auidt", "ausit", "audti"])
def test_a_slip_of_the_finger_finds_the_page(typed: str) -> None:
    assert score_name("Audit settings history", [typed])


@pytest.mark.parametrize("typed", ["snow", "copy", "zz", "tidua"])
def test_what_has_nothing_to_do_with_it_is_not_found(typed: str) -> None:
    assert not score_name("Sweeps one question of many units, a layer, a network", [typed])


def test_whole_words_come_before_beginnings_and_those_before_middles() -> None:
    points = [score_name(name, ["run"]) for name in ("Run", "Running", "Prune")]
    assert points == sorted(points, reverse=True)
    assert len(set(points)) == 3


def test_every_word_must_fit() -> None:
    assert score_name("Agreement in Snow", ["agremnt", "snow"])
    assert not score_name("Agreement in Snow", ["agreement", "rain"])
