"""Toybox as a game engine: at the usual view what the generator draws, from elsewhere the same toys."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from workers.errors import ToolMisuse
from workers.lab.imaging import image_key
from workers.protocols import LabSettings, Picture
from workers.toybox.engine import load
from workers.toybox.images import load_editor, load_generator
from workers.toybox.world.concepts import matches_any, parse_label
from workers.toybox.world.render import render, render_masks
from workers.toybox.world.scenes import Scene, View

SETTINGS = LabSettings(state=Path("unused"))
engine, generator, editor = load(SETTINGS), load_generator(SETTINGS), load_editor(SETTINGS)
USUAL = {"camera": 0.0, "elevation": 23.0, "distance": 14.0, "light": 1.0, "size": 1.0}


def draw(prompt: str, seed: int = 1, **given: float) -> Picture:
    return engine.render([prompt], [seed], [given])[0]


def scene(prompt: str, seed: int = 1, **given: float) -> Scene:
    picture = draw(prompt, seed, **given)
    assert not picture.refused
    return Scene.from_json(picture.scene)


@pytest.mark.parametrize("given", [{}, USUAL, {"camera": 360.0}])
@pytest.mark.parametrize("prompt", ["a red car on grass", "a ball on a table and two cubes", "a duck at night", "sand"])
def test_the_usual_view_is_what_the_generator_draws(prompt: str, given: dict[str, float]) -> None:
    for seed in range(3):
        (plain,) = generator.generate([prompt], [seed])
        drawn = draw(prompt, seed, **given)
        assert image_key(drawn.image) == image_key(plain.image)
        assert replace(Scene.from_json(drawn.scene), view=None) == Scene.from_json(plain.scene)


def test_the_camera_leaves_a_toy_in_its_place_and_its_light_and_ground_as_they_were() -> None:
    usual, turned = scene("a red car"), scene("a red car", camera=90.0)
    (before,), (after,) = usual.things, turned.things
    assert (after.x, after.y) == (before.x, before.y)
    assert after.turn == pytest.approx(before.turn - 90)
    assert (turned.ground, turned.light, turned.backdrop) == (usual.ground, usual.light, usual.backdrop)


@pytest.mark.parametrize("given", [{"camera": 1.0}, {"elevation": 23.5}, {"distance": 13.9}, {"size": 1.01}])
def test_a_small_step_from_the_usual_view_is_a_small_step_of_the_picture(given: dict[str, float]) -> None:
    usual, near = (
        np.asarray(each.image, float) for each in (draw("a house on tiles"), draw("a house on tiles", **given))
    )
    far = np.asarray(draw("a house on tiles", camera=60.0, elevation=60.0).image, float)
    assert 0 < np.abs(near - usual).mean() < 0.5 * np.abs(far - usual).mean()


def test_left_and_right_are_those_of_the_picture() -> None:
    """Judges read the scene: what they are told must be what the picture shows."""
    prompt, label = "a red ball left of a blue cube", parse_label("a red ball left of a blue cube")
    assert matches_any(label, scene(prompt))
    behind = scene(prompt, camera=180.0)
    assert not matches_any(label, behind)
    masks = render_masks(behind)
    middles = [np.argwhere(masks == index + 1)[:, 1].mean() for index in range(2)]
    by_noun = dict(zip((thing.noun for thing in behind.things), middles, strict=True))
    assert by_noun["ball"] > by_noun["cube"]


def count_pixels(prompt: str, **given: float) -> int:
    return int((render_masks(scene(prompt, **given)) > 0).sum())


def test_size_and_distance_change_how_large_a_toy_is() -> None:
    usual = count_pixels("a red ball")
    assert count_pixels("a red ball", size=1.5) == pytest.approx(2.25 * usual, rel=0.1)
    assert count_pixels("a red ball", distance=28.0) == pytest.approx(usual / 4, rel=0.1)


def test_light_changes_the_brightness_of_the_whole_picture() -> None:
    usual, dark = (np.asarray(draw("a red car on sand", light=light).image, float) for light in (1.0, 0.5))
    assert np.abs(dark - usual / 2).max() <= 1


def test_count_gives_so_many_of_one_kind_that_are_all_seen() -> None:
    scenes = [scene("a red car on grass", count=count) for count in (1, 3, 6)]
    assert [len(each.things) for each in scenes] == [1, 3, 6]
    assert len({(each.noun, each.colour, each.size) for found in scenes for each in found.things}) == 1
    assert len({(each.light, each.backdrop) for each in scenes}) == 1
    assert set(np.unique(render_masks(scenes[2]))) == set(range(7))
    assert "count needs a prompt that names one kind" in draw("a car and a ball", count=2).refused


def test_pose_turns_the_toys_and_says_how_far() -> None:
    turns = [scene("a car", pose=pose).things[0].turn for pose in (0.0, 90.0)]
    assert turns[1] - turns[0] == 90


def test_a_toy_that_cannot_be_seen_is_refused() -> None:
    assert "is not wholly in the picture" in draw("a ball and a cube left of it", camera=0.0, distance=7.0).refused
    above = draw("a small red ball on a blue cone", elevation=90.0)
    hidden = [draw("a small blue ball on a small red ball", seed, elevation=90.0).refused for seed in range(4)]
    assert any("is hidden behind another toy" in why for why in [above.refused, *hidden])


def test_a_scene_with_a_view_is_read_as_it_was_written_and_drawn_the_same() -> None:
    drawn = draw("a ball on a table", camera=30.0, elevation=40.0, light=0.5, size=1.2)
    again = Scene.from_json(drawn.scene)
    assert again.to_json() == drawn.scene
    assert image_key(render(again)) == image_key(drawn.image)


@pytest.mark.parametrize(
    "wrong",
    [
        {"parameters": {"light": 99}},
        {"parameters": {"camera": "front"}},
        {"parameters": {"speed": 1}},
        {"parameters": []},
        {"about": [0]},
        {"about": [0, 1e9]},
    ],
)
def test_a_view_that_is_no_view_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ToolMisuse, match="not a scene that toybox can draw"):
        Scene.from_json(draw("a ball").scene | wrong)


def test_an_edit_keeps_the_view() -> None:
    original = draw("a red ball", camera=60.0, light=1.5, pose=20.0)
    (edited,) = editor.edit([original], ["make the ball blue"], [0])
    found = Scene.from_json(edited.scene)
    assert found.view == View(camera=60.0, light=1.5, about=found.view.about if found.view else (0, 0))
    (more,) = editor.edit([original], ["add a green cube"], [0])
    assert Scene.from_json(more.scene).view == found.view
    assert len(Scene.from_json(more.scene).things) == 2
