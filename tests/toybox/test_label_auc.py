"""Labels are judged by scenes that neither the agent nor anybody else chose; the numbers are exact."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support.label_auc import label_auc, make_label_test, shuffle_labels
from workers.errors import RequestError
from workers.toybox.world.concepts import Concept, matches_any, parse_label

RED_BALLS = Concept(noun="ball", colour="red")


def detector(label):
    """A unit that is exactly what a label says."""
    return lambda scenes: [float(matches_any(parse_label(label), scene)) for scene in scenes]


def test_an_exam_has_as_many_scenes_of_either_kind():
    exam = make_label_test("red balls", seed=4)
    assert (len(exam.described), len(exam.others)) == (20, 20)
    assert all(RED_BALLS.matches(scene) for scene in exam.described)
    assert not any(RED_BALLS.matches(scene) for scene in exam.others)


def test_half_of_the_others_lack_one_property_alone():
    exam = make_label_test("red balls on snow", seed=4)
    loose = parse_label("red balls, balls on snow, red things on snow")
    assert sum(matches_any(loose, scene) for scene in exam.others[:10]) == 10
    assert sum(matches_any(loose, scene) for scene in exam.others[10:]) < 5


def test_an_exam_is_spread_over_the_alternatives():
    exam = make_label_test("red balls OR scenes on snow OR cars", seed=0)
    shown = Counter(
        concept for scene in exam.described for concept in parse_label("red balls, cars") if concept.matches(scene)
    )
    assert min(shown.values()) >= 6
    assert sum(scene.ground == "snow" for scene in exam.described) >= 6
    assert not matches_any(parse_label("red balls OR scenes on snow OR cars"), exam.others[3])


def test_the_same_label_and_seed_set_the_same_exam():
    assert make_label_test("red balls", 1) == make_label_test("red balls", 1)
    assert make_label_test("red balls", 1) != make_label_test("red balls", 2)


@pytest.mark.parametrize("label", ["red balls", "night scenes", "small things OR cars on sand"])
def test_the_right_label_of_a_perfect_unit_has_an_auc_of_one(label):
    assert label_auc(label, detector(label), seed=0) == 1


def test_a_unit_that_always_answers_the_same_has_an_auc_of_a_half():
    assert label_auc("red balls", lambda scenes: [7.0] * len(scenes), seed=0) == 0.5


def test_a_label_that_is_too_narrow_or_wrong_has_a_lower_auc():
    assert label_auc("small red balls", detector("red balls"), seed=0) < 0.9
    assert label_auc("blue cars", detector("red balls"), seed=0) < 0.6


@pytest.mark.parametrize("label", ["", "the meaning of life", "none"])
def test_a_label_that_toybox_does_not_understand_is_refused(label):
    with pytest.raises(RequestError, match="does not understand"):
        make_label_test(label, 0)


@pytest.mark.parametrize(
    ("label", "beyond"),
    [
        ("a car, when a house is also in the image", "when"),
        ("balls with cones", "with"),
        ("cups on a table", "on"),
        ("red balls and blue cars", "and"),
        ("balls, not red ones", "not"),
        ("a ball left of a house", "left of"),
    ],
)
def test_a_label_that_says_more_than_alternatives_is_refused_with_the_word(label, beyond):
    with pytest.raises(RequestError, match=f'"{beyond}" is not read'):
        make_label_test(label, 0)


def test_it_says_which_share_of_a_label_it_read():
    assert make_label_test("red balls on snow at night OR small cones", 0).read == 1
    assert make_label_test("shiny red balls", 0).read == pytest.approx(2 / 3)
    with pytest.raises(RequestError, match="does not understand"):
        make_label_test("rounded lower ends of dark cylinders", 0)


def test_a_label_that_describes_everything_is_refused():
    with pytest.raises(RequestError, match="nearly everything"):
        make_label_test("day scenes OR sunset scenes OR night scenes", 0)


def test_shuffled_labels_never_come_back_to_their_unit():
    for count in range(2, 9):
        dealt = shuffle_labels(count, seed=count)
        assert sorted(dealt) == list(range(count))
        assert all(unit != label for unit, label in enumerate(dealt))
    assert shuffle_labels(1, 0) == [0]
