"""toybox-eyes as a detector, and the synthetic neurons on them: real weights, rendered scenes whose truth is known."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from workers import registry
from workers.errors import MachineryError, UnknownName
from workers.protocols import Detector, LabSettings
from workers.toybox.detector import NEURONS, ToyboxDetector
from workers.toybox.networks import nets
from workers.toybox.world import render
from workers.toybox.world.concepts import Concept
from workers.toybox.world.scenes import NOUNS, Scene, Thing
from workers.vision_models.synthetic.model import SyntheticModel
from workers.vision_models.synthetic.neuron import build_table

pytestmark = pytest.mark.usefixtures("one_thread")

SETTINGS = LabSettings(Path("unused"))
PAIR = Scene((Thing("ball", "red", "large", -1.2, 0.0), Thing("cube", "blue", "large", 1.2, 0.0, 30.0)), "grass", "day")
TWO_BALLS = Scene((PAIR.things[0], Thing("ball", "blue", "large", 1.2, 0.0)), "sand", "day")
TOYS = build_table(**NEURONS)
BALL = [neuron.name for neuron in TOYS["mono"]].index("ball")


@pytest.fixture(scope="module")
def detector() -> Detector:
    found: Detector = registry.load(registry.DETECTORS, "toybox-eyes")(SETTINGS)
    return found


@pytest.fixture(scope="module")
def model() -> SyntheticModel:
    found: SyntheticModel = registry.load(registry.VISION_MODELS, "synthetic:toybox-eyes")(SETTINGS)
    return found


# --- the detector ---------------------------------------------------------------------------------------


def test_toys_that_are_there_are_found_and_others_are_not(detector: Detector) -> None:
    (found,) = detector.detect([render.render(PAIR, 224)], NOUNS)
    assert list(found) == list(NOUNS)
    assert [noun for noun in NOUNS if found[noun]] == ["ball", "cube"]
    assert all(0.5 <= each.confidence <= 1 for each in found["ball"] + found["cube"])


def test_each_toy_is_a_place_of_its_own_and_lies_where_it_is(detector: Detector) -> None:
    (found,) = detector.detect([render.render(TWO_BALLS, 224)], ["ball"])
    truth = render.render_masks(TWO_BALLS, 48)
    assert len(found["ball"]) == 2
    for thing in (1, 2):
        overlap = max((each.mask & (truth == thing)).sum() / (truth == thing).sum() for each in found["ball"])
        assert overlap > 0.85


def test_what_is_found_does_not_hang_on_the_other_images_or_toys(detector: Detector) -> None:
    images = [render.render(scene, 224) for scene in (PAIR, TWO_BALLS)] + [Image.new("RGB", (30, 500), "white")]
    together = detector.detect(images, ["cube", "ball"])
    for image, found in zip(images, together, strict=True):
        (alone,) = detector.detect([image], ["ball"])
        assert [each.confidence for each in alone["ball"]] == pytest.approx(
            [each.confidence for each in found["ball"]], abs=1e-4
        )
    assert detector.detect([], ["ball"]) == []


def test_a_toy_it_does_not_know_is_refused_with_those_it_knows(detector: Detector) -> None:
    with pytest.raises(UnknownName, match=r"no 'giraffe'.*ball, cube"):
        detector.detect([Image.new("RGB", (8, 8))], ["ball", "giraffe"])


def test_its_weights_are_named_when_they_are_missing(tmp_path: Path) -> None:
    assert registry.missing(registry.DETECTORS, "toybox-eyes", SETTINGS) == ""
    assert registry.missing(registry.VISION_MODELS, "synthetic:toybox-eyes", SETTINGS) == ""
    with pytest.raises(MachineryError, match=r"gone\.safetensors.*train_toybox"):
        ToyboxDetector(tmp_path / "gone.safetensors", SETTINGS)


def test_its_revision_is_that_of_its_weights(detector: Detector) -> None:
    assert detector.revision == nets.fingerprint(nets.EYES_FILE)


def test_two_threads_get_the_answers_to_their_own_images(detector: Detector) -> None:
    batches = [[render.render(PAIR, 224)], [render.render(TWO_BALLS, 224)]] * 4
    with ThreadPoolExecutor(2) as pool:
        counts = [
            len(found["ball"]) for (found,) in pool.map(lambda images: detector.detect(images, ["ball"]), batches)
        ]
    assert counts == [1, 2] * 4


# --- neurons on it --------------------------------------------------------------------------------------


def test_the_ball_neuron_tells_scenes_with_balls_from_scenes_without(model: SyntheticModel) -> None:
    rng = random.Random("forty scenes")
    ball = Concept(noun="ball")
    scenes = [ball.sample(rng) for _ in range(20)] + [ball.hard_negative(rng) for _ in range(10)]
    scenes += [ball.negative(rng) for _ in range(10)]
    truth = np.array([ball.matches(scene) for scene in scenes])
    assert truth.sum() == 20
    values = model.unit_maps([render.render(scene, 224) for scene in scenes], "mono", BALL).amax((1, 2)).numpy()
    assert ((values >= 0) & (values <= 1)).all()
    yes, no = values[truth], values[~truth]
    auc = (yes[:, None] > no).mean() + (yes[:, None] == no).mean() / 2
    assert auc > 0.9


def test_a_conditional_neuron_wants_both_and_shows_the_first(model: SyntheticModel) -> None:
    cup, table = (Thing(noun, "red", "large", x, 0.0) for noun, x in (("cup", -1.2), ("table", 1.2)))
    scenes = [Scene(things, "grass", "day") for things in ((cup, table), (cup,), (table,), ())]
    unit = [neuron.name for neuron in TOYS["conditional"]].index("cup | table")
    maps = model.unit_maps([render.render(scene, 224) for scene in scenes], "conditional", unit)
    assert (maps.amax((1, 2)) > 0).tolist() == [True, False, False, False]
    columns = torch.nonzero(maps[0].amax(0))[:, 0]
    assert columns.max() < maps.shape[2] / 2 + 3  # the cup stands on the left, and the table is not shown
