"""A folder of `.glb` files adds nouns to the game engine, and to nothing else."""

from __future__ import annotations

import hashlib
import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.support.glb_files import make_box, make_cone, make_picture
from workers.errors import ToolMisuse
from workers.lab.imaging import image_key
from workers.protocols import LabSettings, Picture
from workers.toybox.describer import load as load_describer
from workers.toybox.engine import ToyboxEngine, load
from workers.toybox.glb.folder import MAX_FILES, ToyFolder
from workers.toybox.images import load_editor, load_generator
from workers.toybox.judging import load_judge
from workers.toybox.world.label_grammar import find_unread
from workers.toybox.world.prompts import read_prompt
from workers.toybox.world.render import render_masks
from workers.toybox.world.scenes import Scene
from workers.toybox.world.viewing import arrange, find_eye

PLAIN = LabSettings(state=Path("unused"))
SEEDS = range(3)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "toys"
    place.mkdir()
    make_cone().write(place / "traffic cone.glb")
    make_box(make_picture()).write(place / "Crate.glb")
    make_box().write(place / "fire-hydrant.glb")
    return place


@pytest.fixture
def engine(folder: Path) -> ToyboxEngine:
    return load(LabSettings(state=Path("unused"), game_models=str(folder)))


def draw(engine: ToyboxEngine, prompt: str, seed: int = 1, **given: float) -> Picture:
    return engine.render([prompt], [seed], [given])[0]


def scene_of(folder: Path, prompt: str, seed: int = 1, **given: float) -> Scene:
    """The scene that the engine draws, with the toys of its files."""
    count = given.get("count")
    reading = read_prompt(prompt, seed, None if count is None else int(count), ToyFolder(str(folder)).read().toys)
    assert not reading.ignored
    return arrange(reading.scene, given)


def pixels_of(folder: Path, picture: Picture, prompt: str, noun: str, seed: int = 1, **given: float) -> np.ndarray:
    """The colours of a picture where a mask says that this noun is seen: (n, 3)."""
    scene = scene_of(folder, prompt, seed, **given)
    masks, seen = render_masks(scene), [k for k, thing in enumerate(scene.things) if thing.noun == noun]
    assert scene.to_json() == picture.scene
    return np.asarray(picture.image, float)[np.isin(masks, [k + 1 for k in seen])]


def share(pixels: np.ndarray, hue: str) -> float:
    """The share of pixels that are orange, red, blue or pale."""
    red, green, blue = pixels.T
    tests = {
        "orange": (red > 1.5 * green) & (green > 1.5 * blue),
        "red": (red > 2.5 * green) & (red > 2.5 * blue),
        "blue": (blue > 1.4 * red) & (blue > 1.4 * green),
        "green": (green > 1.3 * red) & (green > 1.3 * blue),
        "pale": pixels.min(axis=1) > 0.8 * pixels.max(axis=1),
    }
    return float(tests[hue].mean())


def test_an_added_noun_is_drawn_in_its_own_colours(engine: ToyboxEngine, folder: Path) -> None:
    prompt = "a large traffic cone on grass by day"
    picture = draw(engine, prompt)
    pixels = pixels_of(folder, picture, prompt, "traffic cone")
    assert not picture.refused
    assert len(pixels) > 500
    assert share(pixels, "orange") > 0.4
    assert share(pixels, "pale") > 0.1
    (thing,) = picture.scene["things"]
    assert (thing["noun"], thing["colour"]) == ("traffic cone", "own")


@pytest.mark.parametrize("noun", ["traffic cone", "crate", "fire hydrant"])
@pytest.mark.parametrize("hue", ["red", "blue"])
def test_a_colour_in_the_prompt_tints_it(engine: ToyboxEngine, folder: Path, noun: str, hue: str) -> None:
    prompt = f"a large {hue} {noun} on snow by day"
    pixels = pixels_of(folder, draw(engine, prompt), prompt, noun)
    assert share(pixels, hue) > 0.9


def test_a_texture_is_on_the_toy_upright(engine: ToyboxEngine, folder: Path) -> None:
    """On its front, which glTF has towards its z axis: red above, green below, white at the upper left."""
    prompt, given = "a large crate on snow by day", {"pose": 0.0, "distance": 9.0}
    scene, pixels = scene_of(folder, prompt, **given), np.asarray(draw(engine, prompt, **given).image, float)
    (thing,), (toy,) = scene.things, scene.added.values()
    assert scene.view is not None
    width, depth, height = np.ptp(toy.surfaces[0].points, axis=0)
    for across, down, hue in ((0.15, 0.15, "pale"), (0.85, 0.15, "red"), (0.15, 0.85, "green"), (0.85, 0.85, "green")):
        place = thing.x + (across - 0.5) * width, thing.y - depth / 2, (1 - down) * height
        u, v = find_eye(scene.view).project(*place)
        row, column = int(v * len(pixels)), int(u * len(pixels))
        assert share(pixels[row - 1 : row + 2, column - 1 : column + 2].reshape(-1, 3), hue) == 1


def test_a_texture_is_lit_as_colours_are(folder: Path, engine: ToyboxEngine) -> None:
    brightness = []
    for picture in (None, Image.new("RGB", (64, 64), (124, 186, 124))):  # the first box's colour on a screen
        make_box(picture).write(folder / "garden gnome.glb")
        prompt = "a large garden gnome on snow by day"
        brightness.append(pixels_of(folder, draw(engine, prompt), prompt, "garden gnome").mean())
    assert brightness[0] == pytest.approx(brightness[1], rel=0.03)


def test_several_stand_beside_toyboxs_own_and_on_them(engine: ToyboxEngine, folder: Path) -> None:
    for prompt, nouns in (
        ("two traffic cones beside a car", ["car", "traffic cone", "traffic cone"]),
        ("a crate on a table", ["crate", "table"]),
        ("three small fire hydrants and a red ball at night", ["ball", *["fire hydrant"] * 3]),
    ):
        picture = draw(engine, prompt)
        assert not picture.refused
        assert sorted(thing["noun"] for thing in picture.scene["things"]) == nouns
        masks = render_masks(scene_of(folder, prompt))
        assert set(np.unique(masks)) == set(range(len(nouns) + 1))


def test_all_parameters_of_the_engine_work(engine: ToyboxEngine, folder: Path) -> None:
    usual = int((render_masks(scene_of(folder, "a crate")) > 0).sum())
    assert (render_masks(scene_of(folder, "a crate", size=1.5)) > 0).sum() == pytest.approx(2.25 * usual, rel=0.15)
    assert (render_masks(scene_of(folder, "a crate", distance=28.0)) > 0).sum() == pytest.approx(usual / 4, rel=0.15)
    assert len(draw(engine, "a crate", count=5).scene["things"]) == 5
    keys = {image_key(draw(engine, "a crate", **given).image) for given in ({}, {"camera": 90.0}, {"pose": 90.0})}
    assert len(keys) == 3


def test_what_cannot_be_seen_is_refused(engine: ToyboxEngine) -> None:
    assert "crate is not wholly in the picture" in draw(engine, "two crates and a car", distance=7.0).refused
    assert "fire hydrant is hidden" in draw(engine, "a small crate on a fire hydrant", 1, elevation=90.0).refused or (
        "is hidden" in draw(engine, "a large crate on a small fire hydrant", 1, elevation=90.0).refused
    )


def test_a_toy_is_as_large_as_toyboxs_and_stands_in_the_middle_of_its_foot(folder: Path) -> None:
    for toy in ToyFolder(str(folder)).read().toys.values():
        points = np.concatenate([each.points for each in toy.surfaces])
        assert points[:, 2].min() == pytest.approx(0)
        assert points[:, 2].max() == pytest.approx(toy.shape.height, abs=1e-3)
        assert np.hypot(*points[:, :2].T).max() == pytest.approx(toy.shape.radius, abs=1e-3)
        assert (points.min(axis=0) + points.max(axis=0))[:2] == pytest.approx(0)
        assert toy.shape.radius <= 0.7
        assert toy.shape.height <= 1.3
    crate = ToyFolder(str(folder)).read().toys["crate"]
    extent = np.ptp(crate.surfaces[0].points, axis=0)
    assert extent == pytest.approx(extent[1] * np.array([2, 1, 1]))


def test_the_scene_names_the_file_and_its_digest(engine: ToyboxEngine, folder: Path) -> None:
    file = folder / "Crate.glb"
    digest = hashlib.sha256(file.read_bytes()).hexdigest()[:12]
    before = draw(engine, "a crate and a ball")
    assert before.scene["added"] == {"crate": {"file": "Crate.glb", "sha256": digest}}
    assert "added" not in draw(engine, "a ball").scene
    make_box(Image.new("RGB", (64, 64), (30, 40, 220))).write(file)
    after = draw(engine, "a crate and a ball")
    assert after.scene["added"]["crate"]["sha256"] != digest
    assert image_key(after.image) != image_key(before.image)
    file.unlink()
    assert "toybox cannot draw crate" in draw(engine, "a crate and a ball").refused


PROMPTS = ["a red car on grass", "two cubes on a table", "a small blue duck at night", "a cone and a red cone", "sand"]


@pytest.mark.parametrize("prompt", PROMPTS)
def test_prompts_without_added_nouns_give_the_same_pixels_and_scenes(engine: ToyboxEngine, prompt: str) -> None:
    plain, generator = load(PLAIN), load_generator(PLAIN)
    draw(engine, "a crate on grass")
    for seed in SEEDS:
        for given in ({}, {"camera": 30.0, "light": 0.7}):
            with_files, without = draw(engine, prompt, seed, **given), draw(plain, prompt, seed, **given)
            assert image_key(with_files.image) == image_key(without.image)
            assert (with_files.scene, with_files.refused) == (without.scene, without.refused)
        (drawn,) = generator.generate([prompt], [seed])
        assert image_key(drawn.image) == image_key(draw(engine, prompt, seed).image)


def test_nothing_but_the_game_engine_knows_an_added_noun(engine: ToyboxEngine) -> None:
    picture = draw(engine, "a red crate on grass")
    (drawn,) = load_generator(PLAIN).generate(["a red crate on grass"], [1])
    assert drawn.refused == "toybox cannot draw crate, red"
    (edited,) = load_editor(PLAIN).edit([picture], ["make it blue"], [1])
    assert "files have added to the game engine (crate)" in edited.refused
    assert load_judge(PLAIN).judge("something red", [picture]) == [None]
    assert "only ever seen pictures that toybox drew" in load_describer(PLAIN).refusal(picture.scene)
    assert find_unread("crates on grass") == ("crates",)
    with pytest.raises(ToolMisuse, match=r"added to the game engine \(crate\)"):
        Scene.from_json(picture.scene)


@pytest.mark.parametrize("added", [[], 5, {"x" * 500: None}, {1: 2}, "words"])
def test_a_scene_with_anything_added_is_refused_whatever_it_says(added: object) -> None:
    scene = draw(load(PLAIN), "a ball").scene | {"added": added}
    with pytest.raises(ToolMisuse):
        Scene.from_json(scene)


def test_the_agent_is_told_of_the_nouns(engine: ToyboxEngine, folder: Path) -> None:
    assert "also knows crate, fire hydrant and traffic cone" in engine.extras
    assert engine.vocabulary.endswith(engine.extras)
    assert load(PLAIN).extras == ""
    assert load(PLAIN).vocabulary == load_generator(PLAIN).vocabulary
    make_box().write(folder / "park bench.glb")
    assert "park bench" in engine.extras


def test_threads_that_begin_at_once_draw_the_same(folder: Path) -> None:
    settings = LabSettings(state=Path("unused"), game_models=str(folder))
    (alone,) = load(settings).render(["a crate and a traffic cone"], [1], [{"camera": 20.0}])
    fresh = load(settings)
    with ThreadPoolExecutor(8) as threads:
        found = list(
            threads.map(lambda _: draw(fresh, "a crate and a traffic cone", camera=20.0), range(16)),
        )
    assert {image_key(each.image) for each in found} == {image_key(alone.image)}


# --- names ------------------------------------------------------------------------------------------

NAMES = [
    ("ball.glb", "'ball' is a word of toybox's own, for the noun 'ball'"),
    ("Sphere.glb", "'sphere' is a word of toybox's own, for the noun 'ball'"),
    ("cars.glb", "'cars' is a word of toybox's own, for the noun 'car'"),
    ("orange.glb", "for the colour 'orange'"),
    ("wave.glb", "'waves' is a word of toybox's own, for the ground 'water'"),
    ("wooden floor.glb", "for the ground 'wood'"),
    ("red car.glb", "is made of words of toybox's own"),
    ("toy.glb", "for the thing 'thing'"),
    (".glb", "its name is no noun"),
    ("-.glb", "its name is no noun"),
    ("rührbesen.glb", "its name is no noun"),
    ("bench2.glb", "its name is no noun"),
    ("a b c d e.glb", "its name is no noun"),
    (f"{'x' * 41}.glb", "its name is no noun"),
    ("<b>bold.glb", "its name is no noun"),
]


@pytest.mark.parametrize(("name", "reason"), NAMES)
def test_a_name_that_cannot_be_a_noun_is_refused_and_the_others_work(folder: Path, name: str, reason: str) -> None:
    make_cone().write(folder / name)
    found = ToyFolder(str(folder)).read()
    assert sorted(found.toys) == ["crate", "fire hydrant", "traffic cone"]
    (problem,) = found.problems
    assert reason in problem
    assert "name" in problem
    assert problem.startswith(repr(name))


def test_two_files_of_one_noun_are_both_refused(folder: Path) -> None:
    for name in ("Fire Hydrant.glb", "crates.glb"):
        make_cone().write(folder / name)
    found = ToyFolder(str(folder)).read()
    assert sorted(found.toys) == ["crate", "traffic cone"]
    assert len([each for each in found.problems if "several files have the noun 'fire hydrant'" in each]) == 2
    assert len([each for each in found.problems if "is the plural of 'crate'" in each]) == 1


def test_plurals_are_understood(folder: Path, engine: ToyboxEngine) -> None:
    for name in ("cherry", "knife", "tomato", "bus stop"):
        make_cone().write(folder / f"{name}.glb")
    for words in ("cherries", "knives", "tomatoes", "bus stops"):
        assert len(draw(engine, f"two {words} on sand").scene["things"]) == 2


def test_a_folder_that_is_not_there_is_told_and_toybox_works(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    lost = load(LabSettings(state=Path("unused"), game_models=str(tmp_path / "lost")))
    with caplog.at_level(logging.WARNING):
        assert not draw(lost, "a ball").refused
        assert not draw(lost, "a cube").refused
    (problem,) = lost.problems
    assert "lost' cannot be read (No such file or directory): name a folder of .glb files" in problem
    assert caplog.text.count("MAIA_GAME_MODELS=") == 1


def test_more_files_than_are_kept_are_told(tmp_path: Path) -> None:
    letters = "abcdefghijklmnopqrstuvwxyz"
    for k in range(MAX_FILES + 2):
        make_cone(3).write(tmp_path / f"q{letters[k // 26]}{letters[k % 26]}.glb")
    found = ToyFolder(str(tmp_path)).read()
    assert len(found.toys) == MAX_FILES
    assert "66 files; the first 64 by name are taken" in found.problems[0]
