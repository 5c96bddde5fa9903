"""A label names exactly the concepts of a truth, or what is missing and what is too much."""

from __future__ import annotations

import pytest

from workers.toybox.concept_match import match
from workers.vision_models.synthetic.neuron import TABLE_A4


@pytest.mark.parametrize(
    ("label", "truth"),
    [
        ("spheres OR traffic cones", "ball or cone"),
        ("cones or balls", "ball or cone"),
        ("something red", "red things"),
        ("Crimson orbs", "red ball"),
        ("balls OR red balls", "ball"),
        ("dogs, when leashes are visible", "dog | leash"),
        ("cars in windows", "car window"),
        ("boats with white sails", "boat"),
        ("five-pointed stars of any colour OR ducks with an orange beak", "star or duck"),
    ],
)
def test_synonyms_plurals_and_order_make_no_difference(label: str, truth: str) -> None:
    assert match(label, truth).right


@pytest.mark.parametrize(
    ("label", "truth", "missing", "extra"),
    [
        ("red balls", "ball", (), ("red",)),
        ("balls", "ball or cone", ("cone",), ()),
        ("two balls", "ball", (), ("at least 2",)),
        ("balls on a boat", "ball | boat", (), ("on",)),
        ("balls OR boats", "ball | boat", (), ()),
        ("balls, not red ones", "ball", (), ("not not",)),
        ("cups", "cup | handle", ("handle",), ()),
        ("anything but balls", "ball", ("ball",), ("not not",)),
        ("cones", "ball", ("ball",), ("cone",)),
        ("", "ball", ("ball",), ()),
    ],
)
def test_what_is_wrong_with_a_label_is_told(label: str, truth: str, missing: object, extra: object) -> None:
    found = match(label, truth)
    assert (found.right, found.missing, found.extra) == (False, missing, extra)


def test_which_of_two_gives_the_value_is_told_apart() -> None:
    assert match("balls with a boat", "ball | boat").direction == "same"
    assert match("boats beside a ball", "ball | boat").direction == "turned"
    assert match("boats beside a ball", "ball | boat").right
    assert match("balls", "ball").direction == ""


@pytest.mark.parametrize("name", [neuron.name for neurons in TABLE_A4.values() for neuron in neurons])
def test_every_truth_of_the_paper_is_matched_by_itself_and_by_no_other(name: str) -> None:
    names = [neuron.name for neurons in TABLE_A4.values() for neuron in neurons]
    assert [other for other in names if match(other, name).right] == [name]
