"""Which property an edit changed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from experiments.display.scene_changes import guess_change, list_contexts, name_change
from workers.toybox.world.scenes import Scene, Thing

BALL = Thing("ball", "red", "small", 0.0, 0.0)
SCENE = Scene((BALL,), "grass", "day")


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (replace(SCENE, ground="sand"), "ground"),
        (replace(SCENE, light="night"), "light"),
        (replace(SCENE, things=(BALL, replace(BALL, x=1.0))), "count"),
        (replace(SCENE, things=(replace(BALL, colour="blue"),)), "colour"),
        (replace(SCENE, things=(replace(BALL, noun="cone"),)), "noun"),
        (replace(SCENE, things=(replace(BALL, size="large", x=0.3),)), "size"),
        (replace(SCENE, things=(replace(BALL, x=0.3),)), "place"),
        (replace(SCENE, things=(replace(BALL, noun="cone", colour="blue"),)), "several"),
        (SCENE, "other"),
    ],
)
def test_scenes_tell_what_an_edit_changed(after: Scene, expected: str) -> None:
    assert name_change(SCENE, after) == expected


@pytest.mark.parametrize(
    ("instruction", "expected"),
    [
        ("make the dog blue", "colour"),
        ("Replace the cat with a dog", "noun"),
        ("change the background to a beach", "ground"),
        ("make it night", "light"),
        ("add a second tree", "count"),
        ("make the ball larger, bigger", "size"),
        ("a watercolour", "other"),
        ("", "other"),
    ],
)
def test_where_there_is_no_scene_the_words_of_an_edit_do(instruction: str, expected: str) -> None:
    assert guess_change(instruction) == expected


def test_a_scene_shows_each_word_once() -> None:
    both = replace(SCENE, things=(BALL, replace(BALL, noun="cone", x=1.0)))
    found = list(list_contexts(both))
    assert ("count", "2 things") in found
    assert found.count(("colour", "red")) == 1
    assert {("noun", "ball"), ("noun", "cone"), ("ground", "grass"), ("light", "day")} <= set(found)
