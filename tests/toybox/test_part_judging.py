"""Toybox's judge of parts: a thing is in a part that it fills or lies in; ground and light are in none."""

from __future__ import annotations

import numpy as np
import pytest

from workers.errors import RequestError
from workers.lab.imaging import placeholder
from workers.protocols import Picture
from workers.toybox.judging import ToyboxJudge
from workers.toybox.world.render import IMAGE_SIZE, render_masks
from workers.toybox.world.scenes import Scene, Thing

SCENE = Scene((Thing("ball", "red", "large", -1.5, 0.0), Thing("car", "blue", "large", 1.5, 0.0)), "snow", "day")
PICTURE = Picture(placeholder(), SCENE.to_json())


def judge(label: str, part: np.ndarray) -> float | None:
    return ToyboxJudge().judge_parts(label, [PICTURE], [part])[0]


@pytest.fixture(scope="module")
def masks() -> np.ndarray:
    return render_masks(SCENE)


@pytest.mark.parametrize(
    ("label", "ball", "car"),
    [
        ("balls", 1, 0),
        ("cars", 0, 1),
        ("red things OR cars", 1, 1),
        ("balls left of a car", 1, 0),
        ("balls on snow", 1, 0),
        ("balls on grass", 0, 0),
        ("chairs", 0, 0),
    ],
)
def test_a_part_shows_the_thing_in_it(masks: np.ndarray, label: str, ball: int, car: int) -> None:
    assert (judge(label, masks == 1), judge(label, masks == 2)) == (ball, car)


def test_a_part_need_not_hold_all_of_a_thing_nor_be_filled_by_it(masks: np.ndarray) -> None:
    half = masks == 1
    half[: int(np.nonzero(half)[0].mean())] = False
    assert judge("balls", half) == 1
    assert judge("balls", masks != 2) == 1
    assert judge("balls", masks == 0) == 0
    sliver = (masks == 2).copy()
    rows, columns = np.nonzero(masks == 1)
    sliver[rows[:20], columns[:20]] = True
    assert judge("balls", sliver) == 0


def test_mere_pixels_are_not_judged_and_ground_and_light_not_in_parts(masks: np.ndarray) -> None:
    assert ToyboxJudge().judge_parts("balls", [Picture(placeholder())], [masks == 1]) == [None]
    for label in ("scenes on snow", "balls OR night scenes"):
        with pytest.raises(RequestError, match="ground or light alone"):
            judge(label, np.ones((IMAGE_SIZE, IMAGE_SIZE), bool))
