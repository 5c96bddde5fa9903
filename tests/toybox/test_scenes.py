"""Scenes: drawn at random, kept as plain data, placed so that nothing hides anything."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import pytest

from workers.errors import ToolMisuse
from workers.toybox.world import stage
from workers.toybox.world.scenes import (
    COLOURS,
    GROUNDS,
    LIGHTS,
    MAX_THINGS,
    NOUNS,
    SHAPES,
    SIZES,
    Scene,
    Thing,
    compose,
    random_scene,
)


def test_it_knows_as_many_words_as_promised() -> None:
    assert len(NOUNS) >= 14
    assert len(COLOURS) >= 10
    assert len(GROUNDS) >= 8
    assert (len(LIGHTS), SIZES) == (3, ("small", "large"))


def test_it_draws_from_the_whole_vocabulary() -> None:
    rng = random.Random(0)
    scenes = [random_scene(rng) for _ in range(400)]
    things = [thing for scene in scenes for thing in scene.things]
    assert {thing.noun for thing in things} == set(NOUNS)
    assert {thing.colour for thing in things} == set(COLOURS)
    assert {scene.ground for scene in scenes} == set(GROUNDS)
    assert {scene.light for scene in scenes} == set(LIGHTS)
    assert {len(scene.things) for scene in scenes} == {1, 2, 3, 4}


def test_the_same_seed_draws_the_same_scene() -> None:
    assert random_scene(random.Random(7)) == random_scene(random.Random(7))
    assert random_scene(random.Random(7)) != random_scene(random.Random(8))


def test_it_draws_as_many_things_as_asked() -> None:
    assert [len(random_scene(random.Random(1), count).things) for count in range(5)] == [0, 1, 2, 3, 4]


def test_a_scene_comes_back_from_json_as_it_was() -> None:
    rng = random.Random(2)
    for scene in [random_scene(rng) for _ in range(50)]:
        assert Scene.from_json(json.loads(json.dumps(scene.to_json()))) == scene


BALL = Thing("ball", "red", "large", 0.0, 0.0)
GOOD = Scene((BALL,), "grass", "day").to_json()


@pytest.mark.parametrize(
    "bad",
    [
        None,
        7,
        "scene",
        [],
        {},
        GOOD | {"extra": 1},
        GOOD | {"ground": "lava"},
        GOOD | {"ground": ["grass"]},
        GOOD | {"light": None},
        GOOD | {"backdrop": 99},
        GOOD | {"backdrop": "1"},
        GOOD | {"things": "ball"},
        GOOD | {"things": [1]},
        GOOD | {"things": GOOD["things"] * (MAX_THINGS + 1)},
        GOOD | {"things": [GOOD["things"][0] | {"noun": "dragon"}]},
        GOOD | {"things": [GOOD["things"][0] | {"x": float("nan")}]},
        GOOD | {"things": [GOOD["things"][0] | {"x": 1e9}]},
        GOOD | {"things": [GOOD["things"][0] | {"x": True}]},
        GOOD | {"things": [GOOD["things"][0] | {"on": 0}]},
        GOOD | {"things": [GOOD["things"][0] | {"on": 3}]},
        GOOD | {"things": [GOOD["things"][0] | {"on": 0.5}]},
    ],
)
def test_it_refuses_data_that_is_no_scene(bad: Any) -> None:
    with pytest.raises(ToolMisuse, match="not a scene that toybox can draw"):
        Scene.from_json(bad)


def test_things_that_stand_on_each_other_in_a_circle_are_refused() -> None:
    things = (replace(BALL, on=1), replace(BALL, on=0))
    with pytest.raises(ToolMisuse, match="stands on nothing"):
        Scene.from_json(Scene(things, "grass", "day").to_json())


def test_a_stack_is_as_high_as_what_is_below() -> None:
    cube, table = replace(BALL, noun="cube", on=1), replace(BALL, noun="table", size="small")
    scene = Scene((replace(BALL, on=1), replace(cube, on=2), table), "grass", "day")
    small = 0.56 * SHAPES["table"].perch
    assert scene.foot(2) == 0.0
    assert scene.foot(1) == pytest.approx(small)
    assert scene.foot(0) == pytest.approx(small + SHAPES["cube"].perch)


def test_things_stand_in_the_picture_and_apart() -> None:
    rng = random.Random(3)
    crowded = 0
    for scene in [random_scene(rng) for _ in range(300)]:
        frames = [_frame(thing) for thing in scene.things]
        assert all(f.left >= 0 and f.right <= 1 and f.bottom <= 1 for f in frames)
        crowded += any(f.overlap(g) > 0.1 for k, f in enumerate(frames) for g in frames[:k])
    assert crowded <= 15


def test_things_that_stand_to_the_left_stand_to_the_left() -> None:
    kinds = [(noun, "red", "small") for noun in ("ball", "cube", "cone")]
    for seed in range(50):
        ball, cube, cone = compose(kinds, random.Random(seed), left_of=[(0, 1), (1, 2)]).things
        assert ball.x < cube.x < cone.x


def test_wishes_that_contradict_each_other_still_give_a_scene() -> None:
    kinds = [("ball", "red", "large"), ("cube", "red", "large")]
    scene = compose(kinds, random.Random(0), left_of=[(0, 1), (1, 0)], sides={0: -1, 1: -1})
    assert len(scene.things) == 2


def test_another_noun_or_colour_leaves_the_rest_of_a_drawn_scene_alone() -> None:
    one = compose([("ball", "red", "small")], random.Random(5))
    other = compose([("ball", "blue", "small")], random.Random(5))
    assert replace(one.things[0], colour="blue") == other.things[0]
    assert (one.ground, one.light, one.backdrop) == (other.ground, other.light, other.backdrop)


def _frame(thing: Thing) -> stage.Frame:
    scale = {"small": 0.56, "large": 1.0}[thing.size]
    shape = SHAPES[thing.noun]
    return stage.frame(stage.Box(shape.radius * scale, shape.height * scale), thing.x, thing.y)
