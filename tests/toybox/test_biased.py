"""The biased twin: what is planted, that it shows on fresh scenes, and that the original stays as it is."""

from __future__ import annotations

import pytest

from workers.errors import UnknownName
from workers.lab.laboratory import Laboratory
from workers.protocols import LabSettings


@pytest.fixture(scope="module")
def laboratory(tmp_path_factory):
    return Laboratory(LabSettings(tmp_path_factory.mktemp("state")))


def test_six_classes_are_held_back_each_in_a_context_of_its_own(laboratory):
    first, other = (laboratory.model(f"toybox-biased:seed-{seed}") for seed in (0, 1))
    assert len(first.planted) == 6 == len(set(first.planted.values()))
    assert first.planted != other.planted
    assert first.revision == other.revision != laboratory.model("toybox").revision
    assert [layer.name for layer in first.layers()] == [layer.name for layer in laboratory.layers("toybox")]


def test_a_planted_bias_shows_on_fresh_scenes_and_the_same_ones_each_time(laboratory):
    model = laboratory.model("toybox-biased:seed-0")
    noun, word = next(iter(model.planted.items()))
    effects = {each.context: each for each in model.list_effects(model.classes.index(noun), 120)}
    assert effects[word].size < 0
    again = {each.context: each for each in model.list_effects(model.classes.index(noun), 120)}
    assert again == effects


@pytest.mark.parametrize("name", ["toybox-biased:0", "toybox-biased:seed-x"])
def test_what_is_no_seed_is_refused(laboratory, name):
    with pytest.raises(UnknownName, match="toybox-biased:seed-0"):
        laboratory.model(name)


def test_a_class_that_is_no_toy_has_no_effects(laboratory):
    model = laboratory.model("toybox-biased:seed-0")
    with pytest.raises(UnknownName, match="no toy of number 39"):
        model.list_effects(39)
