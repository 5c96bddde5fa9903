"""Toybox behind the tools: prompts and instructions in, pictures with their scenes out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from PIL import Image

from workers.errors import Cancelled
from workers.lab.imaging import image_key
from workers.protocols import LabSettings, Picture
from workers.toybox.images import load_editor, load_generator
from workers.toybox.world.scenes import Scene

SETTINGS = LabSettings(state=Path("unused"))
generator, editor = load_generator(SETTINGS), load_editor(SETTINGS)


def test_it_draws_one_picture_for_each_prompt() -> None:
    pictures = generator.generate(["a red ball", "a blue cube at night"], [1, 2])
    assert [picture.image.size for picture in pictures] == [(224, 224)] * 2
    assert [Scene.from_json(picture.scene).things[0].noun for picture in pictures] == ["ball", "cube"]
    assert [picture.note for picture in pictures] == ["", ""]


def test_the_same_prompt_and_seed_give_the_same_pixels() -> None:
    keys = [image_key(generator.generate(["a duck"], [seed])[0].image) for seed in (1, 1, 2)]
    assert keys[0] == keys[1] != keys[2]


@pytest.mark.parametrize(
    ("prompt", "cannot"),
    [
        ("a striped chair", "striped"),
        ("a turquoise ball", "turquoise"),
        ("a wooden table", "wooden"),
        ("a grey car", "grey"),
        ("white dog on grass", "dog, white"),
        ("four red chairs", "four"),
        ("three balls, three cubes and three cars", "cars (over 6 things)"),
        ("a photo of justice", "justice"),
    ],
)
def test_a_prompt_that_it_cannot_draw_to_the_letter_is_refused_and_the_others_are_drawn(prompt, cannot) -> None:
    ball, refused = generator.generate(["a red ball", prompt], [0, 0])
    assert Scene.from_json(ball.scene).things[0].colour == "red"
    assert not ball.refused
    assert refused.refused == f"toybox cannot draw {cannot}"
    assert refused.scene is None
    assert re.search("ball, cube.*red, orange.*For example", generator.vocabulary)


def test_no_prompts_give_no_pictures() -> None:
    assert generator.generate([], []) == []
    assert editor.edit([], [], []) == []


def test_an_edit_changes_the_scene_behind_the_picture() -> None:
    originals = generator.generate(["a red ball on snow", "a car on grass"], [0, 1])
    edited = editor.edit(originals, ["make the ball blue", "make it night"], [0, 0])
    ball, car = (Scene.from_json(picture.scene) for picture in edited)
    assert ball.things[0].colour == "blue"
    assert car == Scene.from_json(originals[1].scene).under(light="night")
    assert image_key(edited[0].image) != image_key(originals[0].image)


def test_an_edit_can_be_edited_back() -> None:
    (original,) = generator.generate(["a red ball on snow by day"], [5])
    (there,) = editor.edit([original], ["change the background to grass"], [0])
    (back,) = editor.edit([there], ["change the background to snow"], [0])
    assert image_key(back.image) == image_key(original.image)


def test_an_edit_of_mere_pixels_says_so() -> None:
    (refused,) = editor.edit([Picture(Image.new("RGB", (224, 224)))], ["make it night"], [0])
    assert re.match(r"it is mere pixels.*text2image", refused.refused)


def test_an_edit_of_a_broken_scene_says_so() -> None:
    (refused,) = editor.edit([Picture(Image.new("RGB", (224, 224)), {"things": []})], ["make it night"], [0])
    assert "not a scene that toybox can draw" in refused.refused


def test_an_edit_with_a_word_that_it_does_not_understand_is_refused_and_the_others_are_made() -> None:
    original = generator.generate(["a red ball"], [0]) * 2
    refused, made = editor.edit(original, ["make the ball shiny green", "make the ball green"], [0, 0])
    assert "not: shiny" in refused.refused
    assert refused.scene is None
    assert "Toybox can replace, recolour" in editor.vocabulary
    assert (made.refused, made.scene["things"][0]["colour"]) == ("", "green")


def test_progress_is_told_and_may_stop_the_work() -> None:
    told: list[tuple[str, int, int]] = []
    generator.generate(["a ball", "a cube"], [0, 0], lambda *step: told.append(step))
    assert told == [("drawing", 0, 2), ("drawing", 1, 2), ("drawing", 2, 2)]

    def stop(what: str, done: int, total: int) -> None:
        raise Cancelled(what)

    with pytest.raises(Cancelled):
        generator.generate(["a ball"], [0], stop)


@pytest.mark.parametrize(
    "words", ["replace the ball with a cone", "change the background to sand", "change the light to night"]
)
def test_the_words_of_an_instruction_are_understood(words):
    original = generator.generate(["a red ball on grass by day"], [1])
    assert editor.edit(original, [words], [1])[0].note == ""
