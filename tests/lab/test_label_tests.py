"""Tests of labels by a judge that looks, over an ordinary dataset: own images, three scores, refusals that are free."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.distinct_pictures import DistinctPictures, draw_pictures
from tests.support.exemplar_index import index_over
from tests.support.tiny_lab import SPEC, TinyJudge, TinyModel
from workers.errors import ToolMisuse
from workers.lab.label_tests import LabelTestRules, LabelTests
from workers.lab.measured_splits import MeasuredSplit
from workers.lab.memory import ImagesInMemory
from workers.protocols import LabSettings

SQUARES = draw_pictures(1_600)


def make(folder: Path, dataset: DistinctPictures = SQUARES, used: int = 0) -> LabelTests:
    settings, index = LabSettings(folder, batch_size=64), index_over(folder, dataset)
    development = MeasuredSplit(settings, TinyModel(), dataset, index, "development")
    return LabelTests(LabelTestRules("tiny", used=used), SPEC, development, lambda _: TinyJudge(), ImagesInMemory())


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


def test_a_small_dataset_has_no_tests(tmp_path: Path) -> None:
    with pytest.raises(ToolMisuse, match=r"a test takes 100 development images, and of the dataset 5[0-9] are"):
        make(tmp_path / "small", draw_pictures(280)).score("red")
    with pytest.raises(ToolMisuse, match=r"of fewer than 200 none is held back.*Draw images with tools"):
        make(tmp_path / "tiny", draw_pictures(150)).score("red")
