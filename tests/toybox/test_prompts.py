"""Prompts: words to scenes and back."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from tests.support.scene_facts import facts
from workers.toybox.world.prompts import caption, read_prompt
from workers.toybox.world.scenes import LIGHTS, MAX_THINGS, NOUNS, random_scene
from workers.toybox.world.words import SYNONYMS, plural, read_words


def kinds(prompt: str, seed: int = 0) -> Counter[tuple[str, str, str]]:
    return Counter((thing.noun, thing.colour, thing.size) for thing in read_prompt(prompt, seed).scene.things)


def nouns(prompt: str, seed: int = 0) -> list[str]:
    return sorted(thing.noun for thing in read_prompt(prompt, seed).scene.things)


def test_it_draws_what_is_said_and_nothing_else() -> None:
    reading = read_prompt("two large red balls and a small blue car on snow at night", 0)
    assert kinds("two large red balls and a small blue car on snow at night") == {
        ("ball", "red", "large"): 2,
        ("car", "blue", "small"): 1,
    }
    assert (reading.scene.ground, reading.scene.light, reading.ignored) == ("snow", "night", ())


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("a sphere and an automobile", ["ball", "car"]),
        ("A BALL, a Cube; and a cone!!", ["ball", "cone", "cube"]),
        ("2 snowmen", ["snowman", "snowman"]),
        ("three boxes", ["cube"] * 3),
        ("a snow man beside a rubber duck", ["duck", "snowman"]),
        ("a pair of cups", ["cup", "cup"]),
        ("a red and a blue ball", ["ball", "ball"]),
        ("a house without a tree", ["house"]),
        ("a steam train next to a christmas tree", ["train", "tree"]),
        ("toy car", ["car"]),
    ],
)
def test_it_understands_synonyms_plurals_and_counts(prompt: str, expected: list[str]) -> None:
    assert nouns(prompt) == expected
    assert read_prompt(prompt, 0).ignored == ()


@pytest.mark.parametrize(
    ("prompt", "ground", "light"),
    [
        ("a ball on the lawn at dusk", "grass", "sunset"),
        ("a ball on a wooden floor by daylight", "wood", "day"),
        ("a ball at the beach, midnight", "sand", "night"),
        ("night scene with a red brick floor", "brick", "night"),
        ("a ball on grass in the dark", "grass", "night"),
    ],
)
def test_it_understands_where_and_when(prompt: str, ground: str, light: str) -> None:
    scene = read_prompt(prompt, 3).scene
    assert (scene.ground, scene.light) == (ground, light)


def test_a_material_is_not_a_ground() -> None:
    reading = read_prompt("a brick house on grass", 0)
    assert (reading.scene.ground, reading.ignored) == ("grass", ("brick",))


def test_every_word_of_the_vocabulary_is_understood() -> None:
    for value, names in SYNONYMS.items():
        for name in [value, *filter(None, map(str.strip, names.split(",")))]:
            (word,) = read_words(name)
            assert word.value == value, name
    assert all(read_words(plural(noun))[0].plural for noun in NOUNS)


def test_things_stand_on_what_they_are_said_to_stand_on() -> None:
    ball, cube, table = read_prompt("a red ball on a blue cube on a green table", 1).scene.things
    assert (ball.on, cube.on, table.on) == (1, 2, None)
    assert (ball.x, ball.y) == (table.x, table.y)


def test_it_stands_for_what_was_named_before() -> None:
    table, cup = read_prompt("a table with a cup on it", 1).scene.things
    assert (table.noun, cup.noun, cup.on) == ("table", "cup", 0)
    house, tree = read_prompt("a house with a tree to the left of it", 1).scene.things
    assert tree.x < house.x
    assert read_prompt("a cup on it", 1).ignored == ("it",)


@pytest.mark.parametrize(
    ("prompt", "ignored"),
    [
        ("a red or blue ball", ("or", "blue")),
        ("a ball on grass and a car on snow", ("snow",)),
        ("day at dusk", ("dusk",)),
    ],
)
def test_what_cannot_all_be_drawn_is_reported(prompt: str, ignored: tuple[str, ...]) -> None:
    assert read_prompt(prompt, 1).ignored == ignored


def test_several_on_one_thing_stand_side_by_side() -> None:
    first, second, table = read_prompt("two balls on a table", 1).scene.things
    assert (first.on, second.on) == (2, 2)
    assert first.x < table.x < second.x


@pytest.mark.parametrize("seed", range(10))
def test_left_and_right_are_as_said(seed: int) -> None:
    duck, house = read_prompt("a duck left of a house", seed).scene.things
    assert duck.x < house.x
    robot, cup = read_prompt("a robot to the right of a cup", seed).scene.things
    assert cup.x < robot.x
    ball, cube = read_prompt("a ball on the left and a cube on the right", seed).scene.things
    assert ball.x < 0 < cube.x


def test_a_relation_ends_where_its_sentence_part_ends() -> None:
    ball, cube = read_prompt("a red ball on the moon and a blue cube", 0).scene.things
    assert (ball.on, cube.on) == (None, None)
    assert read_prompt("a red ball on the grass next to a blue cube", 0).scene.things[0].on is None


def test_what_is_not_said_is_drawn_from_the_seed() -> None:
    assert read_prompt("a ball", 4) == read_prompt("a ball", 4)
    assert len({read_prompt("a ball", seed).scene.things[0].colour for seed in range(40)}) > 5
    assert {read_prompt("a ball", seed).scene.light for seed in range(40)} == set(LIGHTS)


def test_prompts_that_differ_by_a_word_share_the_rest() -> None:
    one, other = read_prompt("a red ball", 9).scene, read_prompt("a ball", 9).scene
    assert (one.ground, one.light, one.backdrop) == (other.ground, other.light, other.backdrop)
    assert (one.things[0].x, one.things[0].turn, one.things[0].size) == (
        other.things[0].x,
        other.things[0].turn,
        other.things[0].size,
    )


def test_it_says_what_it_did_not_understand() -> None:
    assert read_prompt("a shiny dragon and a red ball", 0).ignored == ("shiny", "dragon")
    assert nouns("a shiny dragon and a red ball") == ["ball"]
    assert read_prompt("four ducks", 0).ignored == ("four",)
    assert nouns("four ducks") == ["duck"] * 3


def test_more_things_than_there_is_room_for_are_left_out_and_reported() -> None:
    reading = read_prompt("three balls, three cubes and three cars", 0)
    assert len(reading.scene.things) == MAX_THINGS
    assert reading.ignored == ("cars (over 6 things)",)


def test_a_prompt_without_a_known_word_is_not_understood() -> None:
    reading = read_prompt("quarterly earnings report", 0)
    assert not reading.understood
    assert reading.scene.things == ()
    assert reading.ignored == ("quarterly", "earnings", "report")
    assert not read_prompt("", 0).understood


def test_a_ground_alone_is_an_empty_scene() -> None:
    reading = read_prompt("snow at night", 0)
    assert reading.understood
    assert (reading.scene.things, reading.scene.ground, reading.scene.light) == ((), "snow", "night")


@pytest.mark.parametrize(
    "hostile",
    [
        "red " * 3000,
        "a ball on " * 1200,
        "left of " * 1500,
        "x" * 100_000,
        "\0\n￿'\"<script>" * 500,
        "9" * 10_000,
        "and," * 3000,
    ],
)
def test_a_long_or_hostile_prompt_is_read_quietly(hostile: str) -> None:
    reading = read_prompt(hostile, 0)
    assert len(reading.scene.things) <= MAX_THINGS
    assert len(" ".join(reading.ignored)) < 1000


def test_a_caption_reads_back_to_the_same_facts() -> None:
    rng = random.Random(6)
    for seed, scene in enumerate(random_scene(rng) for _ in range(300)):
        reading = read_prompt(caption(scene), seed)
        assert facts(reading.scene) == facts(scene)
        assert reading.ignored == ()


@pytest.mark.parametrize(
    "prompt",
    [
        "a ball on a cube on a table",
        "two balls on a table",
        "two cars on two tables",
        "three red trees and two red trees",
        "snow",
    ],
)
def test_captions_tell_stacks_and_counts(prompt: str) -> None:
    for seed in range(20):
        scene = read_prompt(prompt, seed).scene
        assert facts(read_prompt(caption(scene), seed + 1).scene) == facts(scene)
