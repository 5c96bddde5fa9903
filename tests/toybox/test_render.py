"""The renderer: the same scene gives the same pixels everywhere, and masks say what is where."""

from __future__ import annotations

import hashlib
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from workers.lab.imaging import image_key
from workers.toybox.world.meshes import PAINTS
from workers.toybox.world.prompts import read_prompt
from workers.toybox.world.render import IMAGE_SIZE, render, render_masks
from workers.toybox.world.scenes import COLOURS, GROUNDS, LIGHTS, NOUNS, SHAPES, Scene, Thing, random_scene
from workers.toybox.world.toys import TOYS

SIZE = 96
PROMPT = "a red ball on a blue cube and a green car on sand at sunset"

_IN_A_CHILD = f"""
from workers.lab.imaging import image_key
from workers.toybox.world.prompts import read_prompt
from workers.toybox.world.render import render
print(image_key(render(read_prompt({PROMPT!r}, 3).scene, {SIZE})))
"""


def alone(noun: str, colour: str = "red", size: str = "large", light: str = "day", ground: str = "sand") -> Scene:
    return Scene((Thing(noun, colour, size, 0.0, 0.0, SHAPES[noun].facing),), ground, light)


def pixels(scene: Scene) -> np.ndarray:
    return np.asarray(render(scene, SIZE)).astype(int)


def test_a_picture_is_rgb_and_of_the_size_asked() -> None:
    scene = read_prompt(PROMPT, 0).scene
    assert (render(scene).mode, render(scene).size) == ("RGB", (IMAGE_SIZE, IMAGE_SIZE))
    assert render(scene, 50).size == (50, 50)
    assert render_masks(scene, 50).shape == (50, 50)


@pytest.mark.parametrize("size", [0, -1, 15, 513])
def test_a_size_out_of_range_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match="16 to 512 pixels"):
        render(alone("ball"), size)


def test_the_same_scene_gives_the_same_pixels_whatever_was_drawn_before() -> None:
    scene = read_prompt(PROMPT, 1).scene
    first = image_key(render(scene, SIZE))
    for other in [random_scene(random.Random(seed)) for seed in range(5)]:
        render(other, SIZE)
        render_masks(other, SIZE)
        render(other, SIZE // 2)
    assert image_key(render(scene, SIZE)) == first


def test_two_threads_draw_what_one_draws() -> None:
    rng = random.Random(4)
    scenes = [random_scene(rng) for _ in range(24)]

    def key(scene: Scene) -> str:
        return image_key(render(scene, SIZE)) + hashlib.sha256(render_masks(scene, SIZE).tobytes()).hexdigest()

    expected = [key(scene) for scene in scenes]
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(key, scenes * 3)) == expected * 3


def test_another_process_draws_the_same_pixels() -> None:
    here = image_key(render(read_prompt(PROMPT, 3).scene, SIZE))
    child = subprocess.run([sys.executable, "-c", _IN_A_CHILD], capture_output=True, text=True, check=True, timeout=120)
    assert child.stdout.split() == [here]


@pytest.mark.parametrize("noun", NOUNS)
def test_a_toy_fits_into_its_measures(noun: str) -> None:
    shape = SHAPES[noun]
    for turn in np.linspace(shape.facing - shape.wobble, shape.facing + shape.wobble, 9):
        points = np.concatenate([part.solid.turned("z", float(turn)).points for part in TOYS[noun]()])
        assert np.abs(points[:, 0]).max() <= shape.radius + 0.015
        assert points[:, 2].max() == pytest.approx(shape.height, abs=0.02)
        assert -0.05 <= points[:, 2].min() <= 0.03
    assert shape.perch <= shape.height


@pytest.mark.parametrize("noun", NOUNS)
def test_every_solid_of_a_toy_shows_its_outside(noun: str) -> None:
    for part in TOYS[noun]():
        corners = part.solid.points[part.solid.faces]  # (faces, corner, xyz)
        facing = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        normals = part.solid.normals[part.solid.faces].mean(axis=1)
        area = np.linalg.norm(facing, axis=1)
        agree = np.einsum("ij,ij->i", facing, normals)[area > 1e-9]
        assert (agree > 0).mean() > 0.98
        assert np.linalg.norm(part.solid.normals, axis=1) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("noun", NOUNS)
def test_masks_show_each_thing_where_it_stands(noun: str) -> None:
    scene = Scene((Thing(noun, "red", "small", -1.2, 0.0), Thing(noun, "blue", "large", 1.2, 0.0)), "sand", "day")
    masks = render_masks(scene, SIZE)
    assert set(np.unique(masks)) == {0, 1, 2}
    assert np.nonzero(masks == 1)[1].max() < SIZE / 2 <= np.nonzero(masks == 2)[1].min()
    assert 2.2 < (masks == 2).sum() / (masks == 1).sum() < 4.5


def test_a_mask_covers_the_pixels_that_a_thing_changes() -> None:
    scene = alone("ball")
    changed = np.abs(pixels(scene) - pixels(replace(scene, things=()))).sum(axis=2) > 60
    mask = render_masks(scene, SIZE) == 1
    assert (changed & mask).sum() > 0.95 * mask.sum()
    redder = changed & (pixels(scene)[..., 0] > 2 * pixels(scene)[..., 1])
    assert (redder & mask).sum() > 0.95 * redder.sum()


def test_a_nearer_thing_hides_a_farther_one() -> None:
    scene = Scene((Thing("cube", "red", "large", 0.0, 1.0), Thing("cube", "blue", "large", 0.0, -0.4)), "sand", "day")
    masks = render_masks(scene, SIZE)
    assert (masks == 2).sum() > 2 * (masks == 1).sum() > 0


def test_nothing_but_the_changed_thing_changes() -> None:
    scene = read_prompt("a large red ball left of a small blue car on grass by day", 1).scene
    ball = render_masks(scene, SIZE) == 1
    changed = np.abs(
        pixels(scene) - pixels(replace(scene, things=(replace(scene.things[0], colour="green"), scene.things[1])))
    )
    rows, columns = np.nonzero(changed.sum(axis=2))
    around = np.zeros_like(ball)
    around[1:-1, 1:-1] = (
        sum(ball[1 + i : SIZE - 1 + i, 1 + j : SIZE - 1 + j] for i in (-1, 0, 1) for j in (-1, 0, 1)) > 0
    )
    assert len(rows) > 100
    assert around[rows, columns].all()


def test_things_throw_shadows() -> None:
    scene = alone("cylinder", ground="snow")
    empty, full = pixels(replace(scene, things=())).sum(axis=2), pixels(scene).sum(axis=2)
    shadow = (render_masks(scene, SIZE) == 0) & (full < 0.85 * empty)
    assert shadow.sum() > 100


@pytest.mark.parametrize("light", LIGHTS)
def test_colours_stay_apart_in_every_light(light: str) -> None:
    means = {}
    for colour in COLOURS:
        scene = alone("ball", colour, light=light)
        means[colour] = pixels(scene)[render_masks(scene, SIZE) == 1].mean(axis=0)
    gaps = [np.abs(means[a] - means[b]).sum() for k, a in enumerate(COLOURS) for b in COLOURS[:k]]
    assert min(gaps) > 40


@pytest.mark.parametrize("light", LIGHTS)
def test_every_ground_and_light_looks_its_own_way(light: str) -> None:
    empty = [render(Scene((), ground, light), SIZE) for ground in GROUNDS]
    assert len({image_key(image) for image in empty}) == len(GROUNDS)
    sky = np.asarray(empty[0])[: SIZE // 4].mean()
    assert {"day": sky > 150, "sunset": 110 < sky < 180, "night": sky < 60}[light]


def test_backdrops_differ_from_view_to_view() -> None:
    views = {image_key(render(replace(alone("ball"), backdrop=view), SIZE)) for view in range(16)}
    assert len(views) == 16


def test_every_toy_and_colour_of_the_vocabulary_can_be_drawn() -> None:
    assert set(TOYS) == set(NOUNS)
    assert set(PAINTS) == set(COLOURS)
