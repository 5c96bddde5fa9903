"""Edits: one change, and everything else as it was."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from workers.errors import ToolMisuse
from workers.toybox.world.edits import apply_edit
from workers.toybox.world.prompts import read_prompt
from workers.toybox.world.scenes import SHAPES, Scene

SCENE = read_prompt("a large red ball and a small blue car on snow by day", 1).scene
BALL, CAR = SCENE.things
STACK = read_prompt("a red ball on a blue cube and a green tree on sand at sunset", 1).scene


def with_ball(**changes: Any) -> Scene:
    return replace(SCENE, things=(replace(BALL, **changes), CAR))


def with_car(**changes: Any) -> Scene:
    return replace(SCENE, things=(BALL, replace(CAR, **changes)))


@pytest.mark.parametrize(
    "instruction",
    [
        "make the car green",
        "Change the colour of the car to green.",
        "change the car's color to green",
        "paint the blue car green",
        "turn the automobile green",
        "replace the blue car with a green car",
    ],
)
def test_it_changes_a_colour_and_nothing_else(instruction: str) -> None:
    assert apply_edit(SCENE, instruction, 0) == with_car(colour="green")


@pytest.mark.parametrize(
    ("instruction", "expected"),
    [
        ("make the ball small", with_ball(size="small")),
        ("make the ball smaller", with_ball(size="small")),
        ("make the red thing yellow", with_ball(colour="yellow")),
        ("change the background to sand", replace(SCENE, ground="sand")),
        ("replace the snow with grass", replace(SCENE, ground="grass")),
        ("make the ground water", replace(SCENE, ground="water")),
        ("make it night", replace(SCENE, light="night")),
        ("change the light to sunset", replace(SCENE, light="sunset")),
        ("set the time to night", replace(SCENE, light="night")),
        ("remove the car", replace(SCENE, things=(BALL,))),
        ("delete the ball and the car", replace(SCENE, things=())),
    ],
)
def test_it_does_what_it_is_told_and_nothing_else(instruction: str, expected: Scene) -> None:
    assert apply_edit(SCENE, instruction, 0) == expected


@pytest.mark.parametrize(
    "instruction", ["replace the ball with a cone", "turn the ball into a cone", "make the ball a cone"]
)
def test_a_replaced_toy_keeps_place_colour_and_size(instruction: str) -> None:
    cone, car = apply_edit(SCENE, instruction, 0).things
    assert (cone.noun, cone.colour, cone.size, cone.x, cone.y) == ("cone", "red", "large", BALL.x, BALL.y)
    assert car == CAR


def test_a_replaced_toy_shows_its_best_side() -> None:
    for noun, shape in SHAPES.items():
        thing = apply_edit(SCENE, f"replace the car with a {noun}", 0).things[1]
        assert abs(thing.turn - shape.facing) <= shape.wobble + 0.1


def test_everything_means_all_of_them() -> None:
    assert {thing.colour for thing in apply_edit(SCENE, "make everything green", 0).things} == {"green"}


def test_added_things_leave_the_others_where_they_are() -> None:
    scene = apply_edit(SCENE, "add two green trees", 0)
    assert scene.things[:2] == SCENE.things
    assert [(thing.noun, thing.colour) for thing in scene.things[2:]] == [("tree", "green")] * 2
    assert scene == apply_edit(SCENE, "add two green trees", 0)


def test_a_thing_can_be_added_on_another() -> None:
    duck = apply_edit(SCENE, "add a duck on the car", 0).things[2]
    assert (duck.noun, duck.on, duck.x, duck.y) == ("duck", 1, CAR.x, CAR.y)


def test_what_stood_on_a_removed_thing_comes_down() -> None:
    ball, tree = apply_edit(STACK, "remove the cube", 0).things
    assert (ball.noun, ball.on, tree.noun) == ("ball", None, "tree")


def test_an_edit_at_the_bottom_keeps_the_stack() -> None:
    assert [thing.on for thing in apply_edit(STACK, "replace the cube with a table", 0).things] == [1, None, None]


@pytest.mark.parametrize(
    ("instruction", "missing"),
    [
        ("make the tree green", "no tree"),
        ("make the green car red", "no green car"),
        ("replace the sand with grass", "no sand"),
    ],
)
def test_it_says_what_is_not_in_the_image_and_what_is(instruction: str, missing: str) -> None:
    with pytest.raises(ToolMisuse, match=f"{missing} in this image, which shows a large red ball"):
        apply_edit(SCENE, instruction, 0)


@pytest.mark.parametrize(
    "instruction",
    [
        "",
        "sparkle",
        "make the ball shiny",
        "replace the ball with a dragon",
        "replace the zebra with a cone",
        "make it small",
        "make the ball red and the car green and it night",
        "replace the car with a cone and make it night",
        "make the car bright green",
        "make the ball red and add a tree",
        "replace the ball with two cones",
        "put a chair on the beach",
        "add a duck on grass",
        "add a striped cup",
        "add a dragon",
        "remove the background",
        "x" * 20_000,
    ],
)
def test_what_it_does_not_understand_it_refuses_with_an_example_that_works(instruction: str) -> None:
    with pytest.raises(ToolMisuse, match="Toybox does not understand") as refusal:
        apply_edit(SCENE, instruction, 0)
    assert len(str(refusal.value)) < 600
    example = str(refusal.value).split('"')[-2]
    assert apply_edit(SCENE, example, 0) != SCENE


def test_putting_what_is_there_somewhere_else_changes_the_ground_and_adds_nothing() -> None:
    assert apply_edit(SCENE, "put the car on the beach", 0) == replace(SCENE, ground="sand")
    assert apply_edit(SCENE, "place the ball and the car on grass", 0) == replace(SCENE, ground="grass")
    with pytest.raises(ToolMisuse, match="no chair"):
        apply_edit(SCENE, "put the chair on the beach", 0)


@pytest.mark.parametrize("seed", range(8))
def test_one_thing_is_added_to_the_side_that_is_said(seed: int) -> None:
    scene = read_prompt("a large chair on snow by day", seed).scene
    for side, sign in (("left", -1), ("right", 1)):
        try:
            after = apply_edit(scene, f"add a small red ball to the {side} of the chair", seed)
        except ToolMisuse as refusal:
            assert "no room" in str(refusal)  # noqa: PT017 - the chair stands at the edge
            continue
        assert after.things[:1] == scene.things
        (ball,) = after.things[1:]
        assert (ball.noun, ball.colour, ball.on) == ("ball", "red", None)
        assert sign * (ball.x - scene.things[0].x) > 0


@pytest.mark.parametrize(
    "instruction", ["move the ball to the left", "put the ball on the car", "put the car on the left"]
)
def test_a_toy_cannot_be_moved_and_the_refusal_says_what_can_be_done(instruction: str) -> None:
    with pytest.raises(ToolMisuse, match=r"cannot move a toy\. Remove it and add it"):
        apply_edit(SCENE, instruction, 0)


def test_where_there_are_several_it_asks_which() -> None:
    several = read_prompt("two red balls and a car on grass by day", 1).scene
    for instruction in ("make the ball green", "remove a ball", "replace one ball with a cone"):
        with pytest.raises(ToolMisuse, match=r"There are 2 of ball.*the balls"):
            apply_edit(several, instruction, 0)
    assert [thing.colour for thing in apply_edit(several, "make the two balls green", 0).things[:2]] == ["green"] * 2


def test_a_full_scene_takes_no_more() -> None:
    with pytest.raises(ToolMisuse, match="at most 6 things"):
        apply_edit(SCENE, "add three trees and three ducks", 0)
