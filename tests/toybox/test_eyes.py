"""What toybox-describer sees and says, on its real weights and on images whose content is known."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from tests.support.scene_facts import facts
from workers import registry
from workers.lab.imaging import mask_image
from workers.protocols import LabSettings, Surroundings
from workers.toybox.describer import ToyboxDescriber, describe_scene, summarize_scenes
from workers.toybox.networks import nets
from workers.toybox.networks.detection import DetectedScene, DetectedThing, detect_scenes, find_regions, unmask
from workers.toybox.world import prompts, render, splits
from workers.toybox.world.scenes import Scene, Thing

WORDS = nets.Vocabulary(("ball", "car"), ("red", "blue"), ("small", "large"), ("snow", "sand"), ("day", "night"))
BALL = DetectedThing("ball", "red", "large", 80)
CAR = DetectedThing("car", "blue", "small", 30)
PAIR = Scene((Thing("ball", "red", "large", -1.2, 0.0), Thing("cube", "blue", "large", 1.2, 0.0, 30.0)), "grass", "day")


def spot(row: int, column: int) -> np.ndarray:
    """An activation map of 12 x 12 that is bright round one cell."""
    ys, xs = np.mgrid[:12, :12]
    bright: np.ndarray = np.exp(-((ys - row) ** 2 + (xs - column) ** 2) / 4.0)
    return bright


def spot_on(scene: Scene, thing: int) -> np.ndarray:
    ys, xs = np.nonzero(render.render_masks(scene, 48) == thing + 1)
    return spot(int(ys.mean() / 4), int(xs.mean() / 4))


@pytest.fixture(scope="module")
def eyes() -> nets.ToyboxEyes:
    return nets.load_eyes(nets.DESCRIBER_FILE)


@pytest.fixture(scope="module")
def describer() -> ToyboxDescriber:
    found: ToyboxDescriber = registry.load(registry.DESCRIBERS, "toybox")(LabSettings(Path("unused")))
    return found


def dark_all_over(image: Image.Image) -> Image.Image:
    """As masks were stored once in which nothing is bright."""
    return image.point(lambda value: value // 4)


# --- memory -------------------------------------------------------------------------------------------


def test_a_round_keeps_its_images_while_another_fills_the_memory(tmp_path: Path) -> None:
    settings = LabSettings(tmp_path)
    describer: ToyboxDescriber = registry.load(registry.DESCRIBERS, "toybox")(settings)
    known, new, *others = [Image.new("RGB", (224, 224), (grey, grey, grey)) for grey in range(66)]
    alone = describer.describe([known])
    with ThreadPoolExecutor(1) as other_round:
        with describer._eyes:  # so that the other round waits for them
            described = other_round.submit(describer.describe, [known, new])
            while not settings.model_cache._waiting and not described.done():
                time.sleep(0.001)
            describer.describe(others)  # as many as are remembered, so `known` is not any more
        assert described.result()[:1] == alone


# --- unmasking ----------------------------------------------------------------------------------------


def test_an_image_that_is_not_masked_comes_back_as_it_is() -> None:
    image = render.render(PAIR, 224)
    again, bright = unmask(image)
    assert bright.all()
    assert np.array_equal(np.asarray(again), np.asarray(image))


@pytest.mark.parametrize("light", ["day", "sunset", "night"])
@pytest.mark.parametrize("cell", [(6, 3), (10, 6), (0, 11), (8, 8)])
@pytest.mark.parametrize(("look", "least"), [("dim", 0.9999), ("dark", 0.95)])
def test_the_bright_region_is_found_and_the_rest_brightened_again(
    light: str, cell: tuple[int, int], look: Surroundings, least: float
) -> None:
    image = render.render(Scene(PAIR.things, "wood", light), 224)
    again, bright = unmask(mask_image(image, spot(*cell), 0.5, surroundings=look))
    small = Image.fromarray(spot(*cell).astype(np.float32)).resize((224, 224), Image.Resampling.BILINEAR)
    truth = np.asarray(small) > 0.5
    assert (bright & truth).sum() / (bright | truth).sum() > least
    assert np.abs(np.asarray(again).astype(int) - np.asarray(image)).mean() < 4


def test_an_image_that_is_dark_all_over_has_no_bright_region() -> None:
    image = render.render(PAIR, 224)
    again, bright = unmask(dark_all_over(image))
    assert not bright.any()
    assert np.abs(np.asarray(again).astype(int) - np.asarray(image)).mean() < 4


@pytest.mark.parametrize("light", ["day", "sunset", "night"])
def test_the_region_of_a_weighted_image_is_found_too(light: str) -> None:
    image = render.render(Scene(PAIR.things, "wood", light), 224)
    again, bright = unmask(mask_image(image, spot(6, 3), 0.5, surroundings="weighted"))
    small = Image.fromarray(spot(6, 3).astype(np.float32)).resize((224, 224), Image.Resampling.BILINEAR)
    truth = np.asarray(small) > 0.5
    assert (bright & truth).sum() / (bright | truth).sum() > 0.9
    around = ~bright
    assert np.abs(np.asarray(again).astype(int) - np.asarray(image))[around].mean() < 4


@pytest.mark.parametrize("look", ["dim", "dark", "weighted"])
def test_two_bright_regions_are_both_found(look: Surroundings) -> None:
    image = Image.new("RGB", (96, 96), (200, 180, 90))
    _, bright = unmask(mask_image(image, spot(2, 2) + spot(9, 9), 0.5, surroundings=look))
    assert [bright[18, 18], bright[76, 76], bright[18, 76]] == [True, True, False]


def test_patches_are_the_connected_regions_of_a_mask() -> None:
    mask = np.array([[1, 1, 0, 0], [0, 1, 0, 1], [1, 0, 0, 1]], dtype=bool)
    assert [patch.sum() for patch in find_regions(mask)] == [3, 2, 1]
    assert np.array_equal(sum(find_regions(mask)), mask)
    assert list(find_regions(np.zeros((2, 2), dtype=bool))) == []


def test_a_winding_region_is_one_patch() -> None:
    mask = np.zeros((9, 9), dtype=bool)
    mask[::2] = True
    mask[1::4, -1] = mask[3::4, 0] = True
    (patch,) = find_regions(mask)
    assert np.array_equal(patch, mask)


# --- words --------------------------------------------------------------------------------------------


def test_a_sentence_counts_like_things_and_says_where() -> None:
    seen = DetectedScene((BALL, CAR, CAR), "snow", "night")
    assert describe_scene(seen) == "a large red ball and two small blue cars on snow at night"


def test_a_sentence_is_a_prompt_that_draws_the_same_again() -> None:
    scene = prompts.read_prompt(describe_scene(DetectedScene((BALL, CAR), "snow", "night")), 0).scene
    assert [(thing.noun, thing.colour, thing.size) for thing in scene.things] == [
        ("ball", "red", "large"),
        ("car", "blue", "small"),
    ]
    assert (scene.ground, scene.light) == ("snow", "night")


def test_a_summary_counts_what_is_shared_commonest_first() -> None:
    scenes = [
        DetectedScene((BALL, BALL), "snow", "night"),
        DetectedScene((BALL,), "sand", "night"),
        DetectedScene((), "sand", "day"),
    ]
    expected = "2 of 3 show a ball; 2 of 3 show something red; 2 of 3 are on sand; 2 of 3 are at night"
    assert summarize_scenes(scenes, WORDS) == expected


def test_a_summary_ends_with_what_stands_outside_the_bright_regions() -> None:
    scenes = [DetectedScene((CAR,), "snow", "night", (BALL,)), DetectedScene((CAR,), "sand", "day", (BALL, CAR))]
    assert summarize_scenes(scenes, WORDS).endswith(". Outside the bright regions: 2 of 2 show a ball")
    assert summarize_scenes([DetectedScene((), "snow", "day", (BALL,))] * 2, WORDS).startswith("2 of 2 are on snow")


def test_a_summary_says_when_there_is_nothing_to_share() -> None:
    assert summarize_scenes([], WORDS) == "There are no images."
    assert summarize_scenes([DetectedScene((BALL,), "snow", "day"), DetectedScene((CAR,), "sand", "night")], WORDS) == (
        "The 2 images have nothing in common."
    )
    assert summarize_scenes([DetectedScene((), "snow", "day")], WORDS) == "1 of 1 are on snow; 1 of 1 are by day"


# --- sight --------------------------------------------------------------------------------------------


def test_eyes_with_hand_set_weights_read_toys_from_their_maps() -> None:
    eyes = nets.ToyboxEyes(WORDS).eval()
    maps = torch.full((1, 3, 48, 48), -5.0)
    maps[:, 0] = 0.0
    maps[0, 1, 4:10, 4:10] = maps[0, 2, 30:36, 30:36] = 5.0
    maps[0, 1, 20, 20] = 5.0  # a speck
    colour, size = torch.zeros(1, 2, 48, 48), torch.zeros(1, 2, 48, 48)
    colour[0, 1, 25:] = size[0, 1, 25:] = 1.0
    whole = torch.tensor([[1.0, 0.0]])
    eyes.forward = lambda x: nets.EyesOutput(maps, colour, size, whole, whole)  # type: ignore[method-assign]
    (seen,) = detect_scenes(eyes, [Image.new("RGB", (96, 96), "white")])
    assert seen.things == (DetectedThing("ball", "red", "small", 36), DetectedThing("car", "blue", "large", 36))
    assert (seen.ground, seen.light) == ("snow", "day")


def test_it_describes_a_plain_scene_in_full(describer: ToyboxDescriber) -> None:
    expected = "a large red ball and a large blue cube on grass by day"
    (found,) = describer.describe([render.render(PAIR, 224)])
    assert facts(prompts.read_prompt(found, 0).scene) == facts(prompts.read_prompt(expected, 0).scene)


@pytest.mark.parametrize(("thing", "noun", "other"), [(0, "red ball", "cube"), (1, "blue cube", "ball")])
def test_it_looks_at_the_bright_region_of_a_masked_image(
    describer: ToyboxDescriber, thing: int, noun: str, other: str
) -> None:
    image = mask_image(render.render(PAIR, 224), spot_on(PAIR, thing), 0.5)
    (found,) = describer.describe([image])
    assert noun in found
    assert other not in found
    assert found.endswith("on grass by day")


def test_a_summary_of_masked_images_names_what_is_dark_too(describer: ToyboxDescriber) -> None:
    images = [mask_image(render.render(PAIR, 224), spot_on(PAIR, 0), 0.5)] * 2
    regions, outside = describer.summarize(images).split("Outside the bright regions: ")
    assert "show a ball" in regions
    assert "cube" not in regions
    assert outside == "2 of 2 show a cube"


def test_it_describes_no_image_but_toyboxs_own(describer: ToyboxDescriber) -> None:
    assert describer.refusal(PAIR.to_json()) == ""
    for scene in (None, {"things": "a photograph"}):
        assert "only ever seen pictures that toybox drew" in describer.refusal(scene)


def test_an_image_that_is_dark_all_over_shows_only_where_it_is(describer: ToyboxDescriber) -> None:
    assert describer.describe([dark_all_over(render.render(PAIR, 224))]) == ["an empty scene on grass by day"]


def test_it_finds_what_fresh_scenes_have_in_common(describer: ToyboxDescriber) -> None:
    images = [
        render.render(prompts.read_prompt(f"a red ball and a {noun} at night", seed).scene, 224)
        for seed, noun in enumerate(["cube", "cone", "tree", "duck", "table"])
    ]
    found = describer.summarize(images)
    assert "5 of 5 are at night" in found
    assert "5 of 5 show something red" in found
    assert describer.summarize([]) == "There are no images."


def test_most_words_of_its_descriptions_of_fresh_scenes_are_right(eyes: nets.ToyboxEyes) -> None:
    scenes = [splits.scene("validation", number) for number in range(40)]
    seen = detect_scenes(eyes, [render.render(scene, 224) for scene in scenes])
    kinds = [{(t.noun, t.colour, t.size) for t in scene.things} for scene in scenes]
    found = [{(t.noun, t.colour, t.size) for t in each.things} for each in seen]
    right = sum(len(a & b) for a, b in zip(kinds, found, strict=True))
    assert right / sum(map(len, kinds)) > 0.75
    assert right / sum(map(len, found)) > 0.75


def test_it_answers_two_threads_alike(describer: ToyboxDescriber) -> None:
    images = [render.render(splits.scene("mixed", number), 224) for number in range(6)]
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(describer.describe, [images, images])
    assert first == second == describer.describe(images)
    assert describer.describe([]) == []
