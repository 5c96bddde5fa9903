"""Labels are read whole or refused with the reason; what is drawn from one is what it says, or just not."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from workers.errors import RequestError
from workers.record.label_checks import LabelReading
from workers.toybox.label_reading import describe_reading, read_label
from workers.toybox.world.concepts import Concept, parse_label, phrase_label
from workers.toybox.world.label_grammar import find_unread
from workers.toybox.world.prompts import read_prompt
from workers.toybox.world.scenes import COLOURS, GROUNDS, LIGHTS, NOUNS, SIZES, Scene, Thing


def random_concept(rng: random.Random) -> Concept:
    """One that says something, of every form that the grammar knows."""

    def thing() -> Concept:
        words = {"noun": NOUNS, "colour": COLOURS, "size": SIZES}
        said = {name: rng.choice(of) for name, of in words.items() if rng.random() < 0.5}
        return Concept(count=rng.choice((1, 1, 1, 2, 3))).having(said or {"noun": rng.choice(NOUNS)})

    around = {name: rng.choice(of) for name, of in {"ground": GROUNDS, "light": LIGHTS}.items() if rng.random() < 0.3}
    first = thing().having(around)
    if rng.random() < 0.5:
        return first
    relation = rng.choice(("with", "with", "on", "under", "left", "right"))
    return replace(first, partner=thing(), relation=relation)


CONCEPTS = [random_concept(random.Random(f"label {number}")) for number in range(150)]


@pytest.mark.parametrize("concept", CONCEPTS, ids=Concept.phrase)
def test_a_concept_in_words_reads_back_to_it(concept: Concept) -> None:
    assert parse_label(concept.phrase()) == (concept,)
    assert find_unread(concept.phrase()) == ()


def test_alternatives_in_words_read_back_to_them() -> None:
    rng = random.Random(0)
    for _ in range(100):
        label = tuple(dict.fromkeys(rng.sample(CONCEPTS, 2)))
        assert parse_label(phrase_label(label)) == label


def draws_whole(concept: Concept) -> bool:
    """Toybox places one thing beside one, and several on one."""
    if concept.partner is None or concept.relation == "with":
        return True
    return concept.partner.count == 1 and (concept.count == 1 or concept.relation == "on")


@pytest.mark.parametrize("concept", [each for each in CONCEPTS[:80] if draws_whole(each)], ids=Concept.phrase)
def test_what_is_drawn_from_a_label_shows_it_or_does_not(concept: Concept) -> None:
    read = read_label(concept.phrase())
    drawn = [read_prompt(prompt, 7) for prompt in read.positive_prompts(6, seed=2)]
    assert all(reading.ignored == () and read.is_present(reading.scene) for reading in drawn)
    others = [read_prompt(prompt, 7) for prompt in read.neutral_prompts(6, seed=2)]
    assert not any(reading.ignored or read.is_present(reading.scene) for reading in others)
    assert not any(read.is_present(scene) for scene in read.near_scenes(6, seed=2))


def kinds(scene: Scene) -> set[str]:
    return {thing.noun for thing in scene.things}


def test_a_near_miss_of_a_condition_lacks_one_side_of_it() -> None:
    lacks = [kinds(scene) & {"ball", "boat"} for scene in read_label("balls with a boat").near_scenes(60, seed=0)]
    assert {"ball"} in lacks
    assert {"boat"} in lacks
    assert {"ball", "boat"} not in lacks


def test_a_near_miss_of_a_relation_turns_it_round() -> None:
    near = [
        scene for scene in read_label("balls on a cube").near_scenes(60, seed=0) if kinds(scene) >= {"ball", "cube"}
    ]
    assert near
    assert all(
        scene.things[thing.on].noun == "ball" for scene in near for thing in scene.things if thing.noun == "cube"
    )


def test_a_near_miss_of_a_count_has_one_too_few() -> None:
    concept = parse_label("three balls")[0]
    rng = random.Random(0)
    counts = {sum(thing.noun == "ball" for thing in concept.hard_negative(rng).things) for _ in range(60)}
    assert counts == {0, 2}


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("cubes beside a table", "cubes with a table"),
        ("cars where there is a house", "cars with a house"),
        ("a car, when a house is also in the image", "cars with a house"),
        ("if a house is present, cars", "cars with a house"),
        ("cars in the presence of a house", "cars with a house"),
        ("boats (only when trees are nearby)", "boats with a tree"),
        ("balls | boats", "balls with a boat"),
        ("red balls and blue cars", "red balls with a blue car"),
        ("red and blue balls", "red balls OR blue balls"),
        ("cars, trains and boats", "cars OR trains OR boats"),
        ("a table supporting a cup", "tables under a cup"),
        ("balls to the left of cones", "balls left of a cone"),
        ("more than one ball", "two balls"),
        ("three or more cars", "three cars"),
        ("several red cubes", "three red cubes"),
        ("scenes where a ball is on snow", "balls on snow"),
        ("things with a table at night", "things with a table at night"),
    ],
)
def test_the_usual_ways_to_say_it_are_read(text: str, phrase: str) -> None:
    assert phrase_label(read_label(text).concepts) == phrase


@pytest.mark.parametrize(
    ("label", "reason"),
    [
        ("", "names nothing that can be tested"),
        ("various things", "names nothing that can be tested"),
        ("the meaning of life", "Not understood: “meaning life”"),
        ("balls, not red ones", "“not”"),
        ("Anything but balls", "Not understood: “anything but”"),
        ("balls behind a cube", "“behind”"),
        ("balls with wheels", "“wheels”"),
        ("balls with cubes and cars", "“cars”"),
        ("seven cars", "a count over 6"),
        ("two balls left of a cone", "one thing beside one"),
        ("four cars with three boats", "No scene shows"),
        ("day scenes OR sunset scenes OR night scenes", "nearly everything"),
    ],
)
def test_a_label_that_cannot_be_tested_is_refused_with_the_reason(label: str, reason: str) -> None:
    with pytest.raises(RequestError, match=reason):
        read_label(label)


def test_it_says_how_a_label_was_read() -> None:
    assert describe_reading("crimson orbs with a mug") == LabelReading("red balls with a cup")
    half = describe_reading("shiny balls OR purple unicorns")
    assert half == LabelReading("balls", ("shiny", "purple unicorns"))
    assert half.words == "Read as “balls”. Not understood: “shiny”, “purple unicorns”."


def test_a_long_label_is_read_in_linear_time() -> None:
    assert len(find_unread("mushrooms with white spots and unicorns " * 2_000)) > 0


def test_a_condition_wants_another_thing() -> None:
    red_ball, cube = Thing("ball", "red", "small", -1, 0), Thing("cube", "red", "small", 1, 0)
    read = read_label("balls with something red")
    assert not read.is_present(Scene((red_ball,), "grass", "day"))
    assert read.is_present(Scene((red_ball, cube), "grass", "day"))
    assert read_label("balls left of a cube").is_present(Scene((red_ball, cube), "grass", "day"))
    assert not read_label("balls right of a cube").is_present(Scene((red_ball, cube), "grass", "day"))


def test_the_same_label_and_seed_draw_the_same() -> None:
    read = read_label("red balls")
    assert read.positive_prompts(5, 1) == read.positive_prompts(5, 1) != read.positive_prompts(5, 2)
    assert len(set(read.positive_prompts(30, 0))) > 25
