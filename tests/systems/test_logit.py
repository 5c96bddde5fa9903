"""The probability of a class as the thing under study, on toybox-net and on a small model of transformers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.support import checkpoints
from tests.support.checkpoints import noise
from tests.support.tiny_lab import TinyModel
from workers import registry
from workers.errors import UnknownName
from workers.lab.exemplars import ExemplarIndex
from workers.lab.imaging import dim_image, mask_image
from workers.protocols import LabSettings, Picture, no_progress
from workers.record.systems import SystemSpec
from workers.toybox.networks import nets
from workers.toybox.world.render import render
from workers.toybox.world.scenes import Scene, Thing

pytestmark = pytest.mark.usefixtures("one_thread")
SETTINGS = LabSettings(Path("unused"), batch_size=4)
toybox = registry.load(registry.VISION_MODELS, "toybox")(SETTINGS)


@dataclass(frozen=True)
class Record:
    quantile: float
    positions: tuple[int, ...]


class NoiseIndex:
    """An index over a few images of noise, ranked by a logit."""

    def __init__(self, model, unit: int, images: Sequence[Image.Image]) -> None:
        self.images = images
        logits = model.maps(images, ["logits"])["logits"][:, unit].flatten()
        order = logits.argsort(descending=True)[:4].tolist()
        self.record = Record(0.0, tuple(order))

    def unit(self, layer, unit, progress=no_progress) -> Record:
        return self.record

    def picture(self, position: int) -> Picture:
        return Picture(self.images[position])


class NoiseImages:
    """A `Dataset` of these images."""

    name = revision = "noise"

    def __init__(self, images: Sequence[Image.Image]) -> None:
        self.images = images

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> Picture:
        return Picture(self.images[index])


def logit(model, unit: int, images: Sequence[Image.Image] = ()):
    load = registry.load(registry.SYSTEMS, registry.SYSTEM_OF_LAYER["logit"])
    spec = SystemSpec("logit", model.name, "logits", unit)
    return load(SETTINGS, spec, model, NoiseIndex(model, unit, images or noise(8)))


@pytest.fixture(scope="module")
def resnet(tmp_path_factory: pytest.TempPathFactory):
    return checkpoints.model(checkpoints.resnet(tmp_path_factory.mktemp("made") / "resnet"))


def test_it_is_the_probability_among_all_classes(resnet) -> None:
    images = noise(5)
    shares = [[each.activation for each in logit(resnet, unit).respond(images)] for unit in range(5)]
    np.testing.assert_allclose(np.sum(shares, axis=0), 1, atol=1e-5)
    logits = resnet.maps(images, ["logits"])["logits"].flatten(1)
    np.testing.assert_allclose(np.transpose(shares), logits.softmax(1), atol=1e-6)
    assert all(0 <= share <= 1 for each in shares for share in each)


@pytest.mark.parametrize("unit", [0, 3])
def test_it_depends_on_the_image_alone(resnet, unit) -> None:
    images = noise(6)
    system = logit(resnet, unit)
    together = system.respond(images)
    for image, expected in zip(images, together, strict=True):
        (alone,) = system.respond([image])
        assert alone.activation == pytest.approx(expected.activation, abs=2e-4)
        assert np.mean(np.asarray(alone.masked) != np.asarray(expected.masked)) < 0.01


def test_the_places_of_the_strongest_evidence_stay_bright() -> None:
    images = noise(4, size=(96, 96))
    _, maps = toybox.evidence(images, 2)
    for image, response, region in zip(images, logit(toybox, 2).respond(images), maps, strict=True):
        untouched = (np.asarray(image) == np.asarray(response.masked)).all(axis=2)
        row, column = np.unravel_index(region.argmax(), region.shape)
        assert untouched[row * 8 + 2 : row * 8 + 6, column * 8 + 2 : column * 8 + 6].all()
        assert untouched.mean() < 0.3


def test_what_the_model_does_not_see_is_dimmed(resnet) -> None:
    image = noise(1, size=(128, 64))[0]
    found = [logit(resnet, unit).respond([image])[0].masked for unit in range(5)]
    lit = [np.asarray(each) for each in found if each.tobytes() != image.tobytes()]
    assert lit
    for shown in lit:
        cut = int(128 * 0.28) - 3
        assert (shown[:, :cut] == np.asarray(dim_image(image))[:, :cut]).all()


def test_a_map_may_cover_a_part_of_the_image_or_more_than_it() -> None:
    grey, region = Image.new("RGB", (40, 20), (200, 200, 200)), np.ones((4, 4), np.float32)

    def bright(*part: float) -> tuple[int, int, int, int] | None:
        return mask_image(grey, region, 0.5, part).getchannel("G").point(lambda value: 255 * (value == 200)).getbbox()

    assert bright(0.25, 0, 0.75, 1) == (10, 0, 30, 20)
    assert bright(-1, 0.5, 0.5, 2) == (0, 10, 20, 20)
    assert bright(0.5, 0.5, 0.5, 0.5) == (20, 10, 21, 11)


def test_exemplars_are_the_highest_logits_by_their_probability(resnet) -> None:
    images = noise(9)
    system = logit(resnet, 1, images)
    found = system.exemplars()
    assert [each.activation for each in found] == sorted((each.activation for each in found), reverse=True)
    assert {each.index for each in found} == set(NoiseIndex(resnet, 1, images).record.positions)
    assert all(each.picture.image is images[each.index] for each in found)
    assert system.exemplars() is found


@pytest.mark.parametrize("scale", ["softmax", "sigmoid"])
def test_ordinary_images_are_told_by_their_probabilities(resnet, tmp_path, scale) -> None:
    model, unit = (resnet, 2) if scale == "softmax" else (toybox, 3)
    assert {layer.scale for layer in model.layers() if layer.name == "logits"} == {scale}
    settings, images = replace(SETTINGS, state=tmp_path), NoiseImages(noise(24, size=(224, 224)))
    load = registry.load(registry.SYSTEMS, "logit")
    spec = SystemSpec("logit", model.name, "logits", unit)
    system = load(settings, spec, model, ExemplarIndex(settings, model, images))
    every = [each.activation for each in system.respond(images.images)]
    found = system.ordinary()
    assert found.images == 24
    assert [found.median, found.q90, found.q99] == pytest.approx(
        np.quantile(every, (0.5, 0.9, 0.99)).tolist(), abs=2e-4
    )
    assert found.median < found.q99 < 1


def test_no_images_give_no_responses(resnet) -> None:
    assert logit(resnet, 0).respond([]) == []


def test_two_threads_agree_with_one(resnet) -> None:
    batches = [noise(2, seed) for seed in range(4)]
    systems = [logit(resnet, unit) for unit in range(4)]

    def ask(at: int) -> list[float]:
        return [each.activation for each in systems[at].respond(batches[at])]

    expected = [ask(at) for at in range(4)]
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(ask, list(range(4)) * 3))
    assert found == [pytest.approx(each, abs=2e-4) for each in expected * 3]


def test_units_and_models_without_probabilities_are_refused(resnet) -> None:
    load = registry.load(registry.SYSTEMS, "logit")
    index = NoiseIndex(resnet, 0, noise(2))
    with pytest.raises(UnknownName, match=r"layer4 .*no probabilities.*as a unit"):
        load(SETTINGS, SystemSpec("logit", resnet.name, "layer4", 0), resnet, index)
    with pytest.raises(UnknownName, match="no probabilities"):
        load(SETTINGS, SystemSpec("logit", "tiny", "logits", 0), TinyModel(), index)


def test_another_class_in_the_image_takes_nothing_from_a_class_that_is_judged_by_itself() -> None:
    """Day stays day, however many toys stand in it."""
    day = toybox.classes.index("day")
    one = Thing("car", "red", "large", 0.0, 0.0)
    crowd = [replace(one, x=x, colour=colour) for x, colour in ((-1.6, "blue"), (0.0, "red"), (1.6, "white"))]
    images = [render(Scene(tuple(things), "grass", "day")) for things in ([], crowd)]
    empty, crowded = (each.activation for each in logit(toybox, day).respond(images))
    assert min(empty, crowded) > 0.95
    night = render(Scene((one,), "grass", "night"))
    assert logit(toybox, day).respond([night])[0].activation < 0.05


@pytest.mark.parametrize(("problem", "scale"), [("multi_label_classification", "sigmoid"), (None, "softmax")])
def test_a_checkpoint_says_how_its_logits_become_probabilities(tmp_path: Path, problem, scale) -> None:
    folder = checkpoints.vit(tmp_path / "vit")
    config = json.loads((folder / "config.json").read_text()) | {"problem_type": problem}
    (folder / "config.json").write_text(json.dumps(config))
    model = checkpoints.model(folder)
    (logits,) = (layer for layer in model.layers() if layer.kind == "logit")
    assert logits.scale == scale
    values = model.maps(noise(3), ["logits"])["logits"].flatten(1)
    shares = values.sigmoid() if scale == "sigmoid" else values.softmax(1)
    np.testing.assert_allclose(model.evidence(noise(3), 2)[0], shares[:, 2], atol=1e-5)


def test_the_value_of_a_regression_is_no_class(tmp_path: Path) -> None:
    folder = checkpoints.vit(tmp_path / "vit")
    config = json.loads((folder / "config.json").read_text()) | {"problem_type": "regression"}
    (folder / "config.json").write_text(json.dumps(config))
    assert not [layer for layer in checkpoints.model(folder).layers() if layer.kind == "logit"]


def test_toybox_names_its_classes_and_sees_them() -> None:
    """Its evidence is highest where layer4 is, weighted by what each unit adds to the class."""
    layers = toybox.layers()
    assert layers[-1].names == toybox.classes
    images = noise(5)
    probabilities, maps = toybox.evidence(images, 7)
    logits = toybox.maps(images, ["logits"])["logits"].flatten(1)
    np.testing.assert_allclose(probabilities, logits.sigmoid()[:, 7], atol=1e-6)
    weights = nets.load_net().logits.weight[7].detach().numpy()
    layer4 = toybox.maps(images, ["layer4"])["layer4"].numpy()
    np.testing.assert_allclose(maps, np.tensordot(layer4, weights, axes=([1], [0])).clip(0), atol=1e-4)
    with pytest.raises(UnknownName, match="no class 41"):
        toybox.evidence(images, 41)
