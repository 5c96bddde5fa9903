"""Concepts: what a label says, scenes that show it, and scenes that just do not."""

from __future__ import annotations

import itertools
import random

import pytest

from workers.toybox.world.concepts import Concept, matches_any, parse_label, phrase_label
from workers.toybox.world.prompts import read_prompt
from workers.toybox.world.scenes import Scene, Thing

WORDS = {"noun": "boat", "colour": "white", "size": "small", "ground": "tiles", "light": "sunset"}
EVERY = [
    Concept(**{name: WORDS[name] for name in names}) for n in range(1, 6) for names in itertools.combinations(WORDS, n)
]
assert len(EVERY) == 31


def scene(*kinds: tuple[str, str, str], ground: str = "grass", light: str = "day") -> Scene:
    return Scene(tuple(Thing(*kind, 0.0, 0.0) for kind in kinds), ground, light)


def test_noun_colour_and_size_must_hold_for_one_and_the_same_thing() -> None:
    concept = Concept(noun="ball", colour="red")
    assert concept.matches(scene(("ball", "red", "small"), ("cube", "blue", "small")))
    assert not concept.matches(scene(("ball", "blue", "small"), ("cube", "red", "small")))


def test_ground_and_light_must_hold_for_the_scene() -> None:
    concept = Concept(noun="ball", ground="snow", light="night")
    assert concept.matches(scene(("ball", "red", "small"), ground="snow", light="night"))
    assert not concept.matches(scene(("ball", "red", "small"), ground="snow"))
    assert not concept.matches(scene(("cube", "red", "small"), ground="snow", light="night"))


@pytest.mark.parametrize(
    ("concept", "phrase"),
    [
        (Concept("ball", "red", None, "snow", "night"), "red balls on snow at night"),
        (Concept(colour="red"), "red things"),
        (Concept(light="night"), "night scenes"),
        (Concept(ground="snow"), "scenes on snow"),
        (Concept("snowman", size="large"), "large snowmen"),
    ],
)
def test_it_is_put_into_words(concept: Concept, phrase: str) -> None:
    assert concept.phrase() == phrase


@pytest.mark.parametrize("concept", EVERY, ids=Concept.phrase)
def test_its_words_read_back_to_it(concept: Concept) -> None:
    assert parse_label(concept.phrase()) == (concept,)


@pytest.mark.parametrize("concept", EVERY, ids=Concept.phrase)
def test_samples_match_and_misses_do_not(concept: Concept) -> None:
    rng = random.Random(0)
    for _ in range(30):
        assert concept.matches(concept.sample(rng))
        assert not concept.matches(concept.hard_negative(rng))
        assert not concept.matches(concept.negative(rng))


@pytest.mark.parametrize("concept", EVERY, ids=Concept.phrase)
def test_a_near_miss_has_all_but_one_of_the_named_properties(concept: Concept) -> None:
    rng = random.Random(1)
    for _ in range(20):
        near = concept.hard_negative(rng)
        around = (near.ground != concept.ground and bool(concept.ground)) + (
            near.light != concept.light and bool(concept.light)
        )
        wrong = [
            sum(getattr(concept, name) not in (None, getattr(thing, name)) for name in ("noun", "colour", "size"))
            for thing in near.things
        ]
        assert around + (min(wrong) if concept.about_things else 0) == 1


def test_samples_usually_have_company() -> None:
    rng = random.Random(2)
    counts = [len(Concept(noun="ball").sample(rng).things) for _ in range(100)]
    assert 50 < sum(count > 1 for count in counts) < 100


def test_a_concept_that_names_nothing_has_no_near_miss() -> None:
    with pytest.raises(ValueError, match="names nothing"):
        Concept().hard_negative(random.Random(0))


@pytest.mark.parametrize(
    ("text", "phrases"),
    [
        ("red balls OR blue cones", "red balls OR blue cones"),
        ("spheres / automobiles", "balls OR cars"),
        ("red or blue balls", "red balls OR blue balls"),
        ("red, blue, or green cones", "red cones OR blue cones OR green cones"),
        ("red things or snowmen at sunset", "red things OR snowmen at sunset"),
        ("red or blue balls on snow", "red balls on snow OR blue balls on snow"),
        ("two or three cups", "two cups OR three cups"),
        ("large objects", "large things"),
        ("balls or balls", "balls"),
        ("shiny red mugs", "red cups"),
        ("not balls", ""),
        ("the meaning of life", ""),
        ("", ""),
    ],
)
def test_it_reads_alternatives(text: str, phrases: str) -> None:
    assert phrase_label(parse_label(text)) == phrases


def test_a_scene_matches_alternatives_if_it_matches_one() -> None:
    concepts = parse_label("red balls OR night scenes")
    assert matches_any(concepts, scene(("ball", "red", "small")))
    assert matches_any(concepts, scene(light="night"))
    assert not matches_any(concepts, scene(("ball", "blue", "small")))
    assert not matches_any((), scene(("ball", "blue", "small")))


@pytest.mark.parametrize("concept", EVERY, ids=Concept.phrase)
def test_the_generator_draws_what_a_phrase_says(concept: Concept) -> None:
    reading = read_prompt(concept.phrase(), 3)
    assert concept.matches(reading.scene)
    assert reading.ignored == ()
