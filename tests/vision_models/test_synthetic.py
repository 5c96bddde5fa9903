"""Synthetic neurons: their arithmetic on a detector simple enough to work out by hand, and as a system under study."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from tests.support.tiny_lab import TinyPictures
from workers import registry
from workers.agent.instructions import system_name
from workers.errors import UnknownName
from workers.lab import program_api
from workers.lab.laboratory import Laboratory
from workers.lab.system import System
from workers.protocols import Detection, LabSettings
from workers.record.systems import SystemSpec
from workers.toybox.detector import NEURONS
from workers.vision_models.synthetic import model as synthetic
from workers.vision_models.synthetic.model import GRID, REACH, SyntheticModel
from workers.vision_models.synthetic.neuron import RELEASED_NEURONS, TABLE_A4, Neuron, build_table

pytestmark = pytest.mark.usefixtures("one_thread")

CHANNELS = {"red": 0, "green": 1, "blue": 2}
CORNERS = ((0, 0), (4, 0), (0, 4), (4, 4))
COLOURS = {
    "mono": "red, green, blue",
    "either": "red or green, green or blue",
    "conditional": "red | green, green | red, blue | red",
}
TABLE = build_table(**COLOURS)
LEVELS = (0, 51, 102, 255)


class Corners:
    """A `Detector` of colours: one place for each corner of an 8 x 8 image, as confident as the colour is strong."""

    name = "corners"
    revision = "1"
    neurons = COLOURS

    def __init__(self):
        self.asked = []

    def detect(self, images, concepts):
        self.asked += [(len(images), tuple(concepts))]
        if unknown := set(concepts) - set(CHANNELS):
            raise UnknownName(f"There is no colour {unknown}.")
        return [{concept: self._places(image, CHANNELS[concept]) for concept in concepts} for image in images]

    def _places(self, image, channel):
        found = []
        for left, top in CORNERS:
            if strength := image.getpixel((left, top))[channel]:
                mask = np.zeros((8, 8), dtype=bool)
                mask[top : top + 4, left : left + 4] = True
                found.append(Detection(strength / 255, mask))
        return found


def load_corners(settings, name=""):
    return Corners()


def load_squares(settings):
    return TinyPictures("black 0", "red 0", "red 1", "green 2", "grey 3", "blue 0")


def picture(*colours: tuple[int, int, int]) -> Image.Image:
    """8 x 8, a colour in each corner; the rest is black."""
    image = Image.new("RGB", (8, 8))
    for colour, (left, top) in zip(colours, CORNERS, strict=False):
        image.paste(colour, (left, top, left + 4, top + 4))
    return image


def region(*corners: int) -> np.ndarray:
    """Those corners on the grid, dilated."""
    found, half = np.zeros((GRID, GRID), dtype=bool), GRID // 2
    for left, top in (CORNERS[corner] for corner in corners):
        rows, columns = (slice(max(0, at // 4 * half - REACH), at // 4 * half + half + REACH) for at in (top, left))
        found[rows, columns] = True
    return found


@pytest.fixture
def model() -> SyntheticModel:
    return SyntheticModel(Corners(), TABLE, batch_size=3)


# --- arithmetic -----------------------------------------------------------------------------------------


def expected(neuron: Neuron, values: dict[str, float | None], masks: dict[str, np.ndarray]) -> np.ndarray:
    """The rules of the paper, spelled out case by case."""
    first, second = neuron.concepts[0], neuron.concepts[-1]
    a, b = values[first], values[second]
    nothing = np.zeros((GRID, GRID))
    if neuron.kind == "mono":
        return nothing if a is None else a * masks[first]
    if neuron.kind == "conditional":
        return nothing if a is None or b is None else a * masks[first]
    if a is None or b is None:
        return nothing if a is b else (b * masks[second] if a is None else a * masks[first])
    return (a + b) / 2 * (masks[first] | masks[second])


def test_every_neuron_follows_its_rule_for_every_combination_of_its_concepts(model: SyntheticModel) -> None:
    """Red in one corner, green in two, blue in the fourth, each absent or of three strengths."""
    masks = {"red": region(0), "green": region(1, 2), "blue": region(3)}
    cases = list(itertools.product(LEVELS, repeat=3))
    images = [picture((red, 0, 0), (0, green, 0), (0, green, 0), (0, 0, blue)) for red, green, blue in cases]
    maps = model.maps(images, list(TABLE))
    for row, levels in enumerate(cases):
        values = {name: level / 255 if level else None for name, level in zip(CHANNELS, levels, strict=True)}
        for kind, neurons_ in TABLE.items():
            for unit, neuron in enumerate(neurons_):
                np.testing.assert_allclose(maps[kind][row, unit], expected(neuron, values, masks), atol=1e-6)


def test_the_value_is_the_mean_confidence_of_the_places(model: SyntheticModel) -> None:
    maps = model.unit_maps([picture((255, 0, 0), (51, 0, 0), (0, 0, 0), (102, 0, 0))], "mono", 0)
    assert maps.amax().item() == pytest.approx((1 + 0.2 + 0.4) / 3)
    assert np.array_equal(maps[0].numpy() > 0, region(0, 1, 3))


def test_a_mask_of_a_single_pixel_is_not_lost(model: SyntheticModel) -> None:
    mask = np.zeros((500, 300), dtype=bool)
    mask[250, 150] = True
    on_grid = synthetic._resize_to_grid([mask])
    assert on_grid.sum() == (2 * REACH + 1) ** 2
    assert on_grid[28, 28]


# --- values depend on the image alone -------------------------------------------------------------------


def random_pictures(count: int, seed: int) -> list[Image.Image]:
    rng = random.Random(seed)
    colours = [tuple(rng.choice(LEVELS) for _ in CHANNELS) for _ in range(4 * count)]
    return [picture(*colours[4 * at : 4 * at + 4]) for at in range(count)]


@pytest.mark.parametrize("seed", range(8))
def test_an_image_is_answered_alike_whatever_was_asked_before_and_beside_it(seed: int) -> None:
    """The published code carried state from one label to the next, which gave activations of up to 11."""
    rng = random.Random(seed)
    images = random_pictures(10, seed)
    truth = SyntheticModel(Corners(), TABLE, batch_size=100).maps(images, list(TABLE))
    model = SyntheticModel(Corners(), TABLE, batch_size=rng.randint(1, 12))
    for _ in range(5):
        layers = rng.sample(list(TABLE), rng.randint(1, 3))
        rows = [rng.randrange(len(images)) for _ in range(rng.randint(1, 15))]
        maps = model.maps([images[row] for row in rows], layers)
        assert list(maps) == layers
        for layer in layers:
            assert torch.equal(maps[layer], truth[layer][rows])
            assert maps[layer].min() >= 0
            assert maps[layer].max() <= 1
        layer, row = rng.choice(layers), rng.choice(rows)
        unit = rng.randrange(len(TABLE[layer]))
        assert torch.equal(model.unit_maps([images[row]], layer, unit)[0], truth[layer][row, unit])


def test_two_threads_get_the_answers_to_their_own_images(model: SyntheticModel) -> None:
    batches = [random_pictures(4, seed) for seed in range(6)]

    def ask(images: Sequence[Image.Image]) -> torch.Tensor:
        return model.maps(images, ["or"])["or"]

    alone = [ask(images) for images in batches]
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(ask, batches * 3))
    assert all(torch.equal(each, alone[at % len(batches)]) for at, each in enumerate(together))


# --- as a model -----------------------------------------------------------------------------------------


def test_layers_are_the_kinds_and_units_have_names(model: SyntheticModel) -> None:
    mono, either, conditional = model.layers()
    assert [layer.kind for layer in model.layers()] == ["concept"] * 3
    assert (mono.name, mono.units, mono.names) == ("mono", 3, ("red", "green", "blue"))
    assert (either.name, either.names) == ("or", ("red or green", "green or blue"))
    assert (conditional.name, conditional.names) == ("conditional", ("red | green", "green | red", "blue | red"))


def test_a_concept_is_looked_for_once_however_many_neurons_share_it() -> None:
    detector = Corners()
    model = SyntheticModel(detector, TABLE, batch_size=4)
    model.maps(random_pictures(6, 0), list(TABLE))
    assert detector.asked == [(4, ("red", "green", "blue")), (2, ("red", "green", "blue"))]


def test_one_neuron_pays_for_its_own_concepts() -> None:
    detector = Corners()
    SyntheticModel(detector, TABLE, batch_size=4).unit_maps(random_pictures(1, 0), "conditional", 2)
    assert detector.asked == [(1, ("blue", "red"))]


def test_no_images_give_empty_maps(model: SyntheticModel) -> None:
    assert model.maps([], ["or"])["or"].shape == (0, 2, GRID, GRID)
    assert model.unit_maps([], "or", 0).shape == (0, GRID, GRID)


def test_an_unknown_layer_is_refused_with_those_there_are(model: SyntheticModel) -> None:
    with pytest.raises(UnknownName, match=r"'and'.*mono, or, conditional"):
        model.maps(random_pictures(1, 0), ["mono", "and"])
    with pytest.raises(UnknownName, match="'and'"):
        model.unit_maps(random_pictures(1, 0), "and", 0)


def test_the_revision_follows_the_detector_and_the_table(model: SyntheticModel) -> None:
    other = SyntheticModel(Corners(), build_table(mono="red", either="red or blue", conditional="red | blue"), 3)
    newer = Corners()
    newer.revision = "2"
    assert len({model.revision, other.revision, SyntheticModel(newer, TABLE, 3).revision}) == 3
    assert SyntheticModel(Corners(), TABLE, 9).revision == model.revision


# --- tables ---------------------------------------------------------------------------------------------


def test_table_a4_is_whole() -> None:
    """The text of the paper counts 85; its table prints 45 + 24 + 19."""
    assert {kind: len(each) for kind, each in TABLE_A4.items()} == {"mono": 45, "or": 24, "conditional": 19}
    names = [neuron.name for each in TABLE_A4.values() for neuron in each]
    assert len(set(names)) == len(names) == 88
    assert {"car window", "yarn", "dog or instrument", "window or wheel", "dog | leash", "wheel | racecar"} <= set(
        names
    )
    assert all(
        len(neuron.concepts) == (1 if kind == "mono" else 2) for kind, each in TABLE_A4.items() for neuron in each
    )


def test_the_neurons_of_the_published_code_stand_under_its_numbers() -> None:
    assert {kind: len(each) for kind, each in RELEASED_NEURONS.items()} == {"mono": 47, "or": 18, "and": 20}
    names = {kind: [neuron.name for neuron in each] for kind, each in RELEASED_NEURONS.items()}
    assert (names["mono"][5], names["mono"][12], names["mono"][46]) == ("bird", "pink", "spiral")
    assert (names["or"][15], names["and"][4]) == ("train or instrument", "red | orange")
    assert all(len(set(each)) == len(each) for each in names.values())


def test_the_detectors_of_the_published_code_get_its_neurons_and_its_dilation(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "DETECTORS", {synthetic.PAPER: ("", "tests.vision_models.test_synthetic.load_corners")})
        model = registry.load(registry.VISION_MODELS, f"synthetic:{synthetic.PAPER}")(LabSettings(tmp_path))
    assert [layer.units for layer in model.layers()] == [47, 18, 20]
    assert model.revision == SyntheticModel(Corners(), RELEASED_NEURONS, 4, published=True).revision


def test_masks_of_the_published_code_are_dilated_by_eighteen_pixels_of_224() -> None:
    ellipse = [(row, column) for row in (-1, 0, 1) for column in range(-2, 3)] + [(-2, 0), (2, 0)]
    mask = np.zeros((224, 224), dtype=bool)
    mask[100, 120] = mask[3, 3] = True
    wide = np.pad(mask, 32)
    for _ in range(9):
        wide = np.logical_or.reduce([np.roll(wide, each, (0, 1)) for each in ellipse])
    wide = wide[32:-32, 32:-32]
    assert (wide[100, 102], wide[100, 101], wide[118, 120], wide[119, 120]) == (True, False, True, False)
    model = SyntheticModel(Corners(), TABLE, 4, published=True)
    assert np.array_equal(model._on_grid([mask]), wide.reshape(56, 4, 56, 4).any((1, 3)))
    assert model.revision != SyntheticModel(Corners(), TABLE, 4).revision


def test_toys_are_all_there_in_a_dozen_pairs_of_each_kind() -> None:
    from workers.toybox.world.scenes import NOUNS

    toys = build_table(**NEURONS)
    assert [neuron.name for neuron in toys["mono"]] == list(NOUNS)
    for kind in ("or", "conditional"):
        assert len({frozenset(neuron.concepts) for neuron in toys[kind]}) == 12
        assert {concept for neuron in toys[kind] for concept in neuron.concepts} <= set(NOUNS)


# --- as a system, through the registry ------------------------------------------------------------------


@pytest.fixture
def laboratory(tmp_path: Path) -> Iterator[Laboratory]:
    """Squares of colour, and neurons on the detector of corners."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            registry,
            "DETECTORS",
            {"corners": ("Colours in corners", "tests.vision_models.test_synthetic.load_corners")},
        )
        patch.setattr(registry, "DATASETS", {"squares": ("Squares", "tests.vision_models.test_synthetic.load_squares")})
        yield Laboratory(LabSettings(tmp_path, dataset="squares", batch_size=4))


def spec(layer: str, unit: int, kind: str = "synthetic") -> SystemSpec:
    return SystemSpec(kind, "synthetic:corners", layer, unit)


def test_exemplars_are_the_images_that_show_the_concept(laboratory: Laboratory) -> None:
    red = laboratory.subject(spec("mono", 0)).exemplars()
    assert [(round(each.activation, 6), each.index) for each in red] == [(1.0, 1), (1.0, 2), (0.2, 4)]
    either = laboratory.subject(spec("or", 0)).exemplars()
    assert [(round(each.activation, 6), each.index) for each in either] == [(1.0, 1), (1.0, 2), (1.0, 3), (0.2, 4)]
    assert [each.index for each in laboratory.subject(spec("conditional", 0)).exemplars()] == [4]


def test_the_masked_image_is_bright_where_the_concept_is(laboratory: Laboratory) -> None:
    subject = laboratory.subject(spec("mono", 0))
    (response,) = subject.respond([picture((255, 0, 0), (0, 0, 255), (0, 0, 255), (0, 0, 255))])
    assert response.activation == 1.0
    assert response.masked.getpixel((0, 0)) == (255, 0, 0)
    assert response.masked.getpixel((7, 7)) == (8, 8, 78)


def test_a_neuron_answers_as_exactly_as_its_detector(laboratory: Laboratory) -> None:
    (response,) = laboratory.subject(spec("mono", 0)).respond([picture((101, 0, 0))])
    assert response.activation == pytest.approx(101 / 255, abs=1e-6)


def test_a_silent_neuron_leaves_the_image_as_it_is(laboratory: Laboratory) -> None:
    (response,) = laboratory.subject(spec("conditional", 0)).respond([picture((255, 0, 0))])
    assert response.activation == 0
    assert response.masked.tobytes() == picture((255, 0, 0)).tobytes()


def test_asking_a_neuron_needs_no_index(laboratory: Laboratory) -> None:
    laboratory.subject(spec("or", 1)).respond(random_pictures(3, 0))
    assert not list(laboratory.settings.state.rglob("*.npz"))


@pytest.mark.parametrize("layer", TABLE)
def test_neither_the_agent_nor_its_programs_are_told_what_a_neuron_responds_to(
    laboratory: Laboratory, layer: str
) -> None:
    named = registry.blind_name("synthetic", "synthetic:corners", layer, 0)
    told = system_name(spec(layer, 0))
    facts = program_api.list_facts(System(laboratory.subject(spec(layer, 0)), {}))  # type: ignore[arg-type]  # remembers nothing
    assert told == f"{named}, whose network is not named"
    assert facts["system.unit"] == facts["system.neuron_num"] == int(named.removeprefix("neuron "))
    assert "corners" not in f"{told} {facts}"
    assert layer not in {*told.split(), *facts.values()}


def test_each_neuron_has_a_blind_name_of_its_own_and_other_systems_need_none() -> None:
    blind = {registry.blind_name("synthetic", "synthetic:x", kind, n) for kind in TABLE_A4 for n in range(45)}
    assert len(blind) == 3 * 45
    assert registry.blind_name("unit", "toybox", "layer4", 7) == ""


def test_a_layer_of_another_kind_is_refused(laboratory: Laboratory) -> None:
    with pytest.raises(UnknownName, match="layer4 of toybox holds no synthetic neurons"):
        laboratory.subject(SystemSpec("synthetic", "toybox", "layer4", 0))


def test_what_does_not_exist_is_refused_with_what_there_is(laboratory: Laboratory) -> None:
    with pytest.raises(UnknownName, match=r"no 'seven eyes'.*corners"):
        laboratory.model("synthetic:seven eyes")
    with pytest.raises(UnknownName, match="no unit 3"):
        laboratory.subject(spec("mono", 3))


def test_a_detector_without_a_table_gets_that_of_the_paper(laboratory: Laboratory) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(Corners, "neurons")
        model = registry.load(registry.VISION_MODELS, "synthetic:corners")(laboratory.settings)
    assert [layer.units for layer in model.layers()] == [45, 24, 19]
    with pytest.raises(UnknownName, match="There is no colour"):
        model.maps(random_pictures(1, 0), ["mono"])
    assert model.unit_maps([picture((0, 0, 255))], "mono", TABLE_A4["mono"].index(Neuron("mono", ("blue",)))).max() == 1


def test_what_is_missing_is_asked_of_the_detector(laboratory: Laboratory) -> None:
    assert registry.missing(registry.VISION_MODELS, "synthetic:corners", laboratory.settings) == ""
    with pytest.raises(UnknownName):
        registry.missing(registry.VISION_MODELS, "synthetic:seven eyes", laboratory.settings)
