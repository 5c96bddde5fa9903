"""Tests of labels by a judge that looks, over an ordinary dataset: own images, three scores, refusals that are free."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.support.exemplar_index import index_over
from tests.support.tiny_lab import SPEC, TinyJudge, TinyPictures
from workers.errors import ToolMisuse
from workers.lab.label_tests import LabelTestRules, LabelTests, list_development
from workers.lab.memory import ImagesInMemory
from workers.lab.probe import held_out_positions

SQUARES = TinyPictures(*random.Random(1).choices(["red 0", "grey 1", "black 2", "green 3"], k=1600))


def make(folder: Path, dataset: TinyPictures = SQUARES, used: int = 0) -> LabelTests:
    rules = LabelTestRules("tiny", used=used)
    return LabelTests(rules, SPEC, index_over(folder, dataset), dataset, lambda _: TinyJudge(), ImagesInMemory())


def test_images_of_an_ordinary_dataset_are_neither_exemplars_nor_held_out(tmp_path: Path) -> None:
    index = index_over(tmp_path, SQUARES)
    positions, _ = list_development(SPEC, index, SQUARES)
    held_out, exemplars = held_out_positions(SQUARES), set(index.unit(SPEC.layer, SPEC.unit).positions)
    assert len(positions) > 100
    assert held_out
    assert exemplars
    assert not {*positions.tolist()} & (held_out | exemplars)


def test_a_label_is_scored_and_what_it_misses_is_shown(tmp_path: Path) -> None:
    tests = make(tmp_path)
    red, grey = tests.score("red"), tests.score("grey")
    assert red["r"] > 0.9 > 0.3 > grey["r"]
    assert red["n"] == grey["n"] > 100
    shown = dict(zip(grey["titles"], grey["images"], strict=True))
    colours = {title: {colour for _, colour in image.getcolors()} for title, image in shown.items()}
    assert (255, 0, 0) in colours["bright, not in the label"]
    assert (51, 51, 51) in colours["dark, in the label"]


def test_three_are_scored_and_what_has_no_score_is_not_counted(tmp_path: Path) -> None:
    tests = make(tmp_path, used=1)
    assert "1 test is left" in tests.score("red")["summary"]
    with pytest.raises(ToolMisuse, match=r"is no colour. This does not count: 1 test is left"):
        tests.score("crimson")
    with pytest.raises(ToolMisuse, match=r"no image shows it. Test a label that some show. This does not count"):
        tests.score("blue")
    assert "no tests are left" in tests.score("green")["summary"]
    with pytest.raises(ToolMisuse, match="has tested 3 labels"):
        tests.score("red")


def test_a_small_dataset_is_held_out_as_a_whole_and_has_no_tests(tmp_path: Path) -> None:
    with pytest.raises(ToolMisuse, match="and 0 of the dataset are neither exemplars nor kept for the check"):
        make(tmp_path, TinyPictures(*SQUARES.names[:500])).score("red")
