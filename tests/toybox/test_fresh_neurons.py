"""Synthetic neurons drawn by a seed: the same each time, with scenes enough, responding to what their names say."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from workers import registry
from workers.errors import UnknownName
from workers.protocols import ConceptModel, LabSettings
from workers.toybox.fresh_neurons import draw_neurons
from workers.toybox.world import render, splits
from workers.toybox.world.concepts import Concept, parse_label
from workers.toybox.world.scenes import Scene, Thing
from workers.vision_models.synthetic.neuron import build_table

pytestmark = pytest.mark.usefixtures("one_thread")

SETTINGS = LabSettings(Path("unused"))


def load(seed: str) -> ConceptModel:
    model: ConceptModel = registry.load(registry.VISION_MODELS, f"synthetic:toybox-eyes:{seed}")(SETTINGS)
    return model


def test_a_seed_has_its_neurons_and_another_has_others() -> None:
    assert draw_neurons(7) == draw_neurons(7) != draw_neurons(8)
    table = build_table(**draw_neurons(7))
    assert {kind: len(set(neurons)) for kind, neurons in table.items()} == {"mono": 30, "or": 15, "conditional": 15}


@pytest.mark.parametrize("seed", [3, 100])
def test_a_conditional_neuron_has_scenes_enough_for_its_exemplars(seed: int) -> None:
    toys = [{thing.noun for thing in splits.scene("validation", number).things} for number in range(3000)]
    for neuron in build_table(**draw_neurons(seed))["conditional"]:
        assert sum(set(neuron.concepts) <= here for here in toys) > 20


def test_layers_and_names_are_the_tables_and_the_revision_is_the_seeds() -> None:
    seven, eight = load("seed-7"), load("seed-8")
    assert [(layer.name, layer.units) for layer in seven.layers()] == [("mono", 30), ("or", 15), ("conditional", 15)]
    assert seven.name == "synthetic:toybox-eyes:seed-7"
    assert seven.revision != eight.revision
    assert registry.blind_name("synthetic", seven.name, "mono", 0).startswith("neuron ")


def test_neurons_of_colours_respond_to_scenes_that_show_them() -> None:
    """Real eyes on rendered scenes; toys of every size, ground and light."""
    model, rng = load("seed-7"), random.Random(0)
    names = model.layers()[0].names
    for kind in ("something red", "red boat"):
        concept = parse_label(kind)[0]
        scenes = [concept.sample(rng) for _ in range(15)] + [concept.hard_negative(rng) for _ in range(15)]
        maps = model.unit_maps([render.render(scene) for scene in scenes], "mono", names.index(kind))
        right = [(value > 0) == concept.matches(scene) for value, scene in zip(maps.amax((1, 2)), scenes, strict=True)]
        assert sum(right) >= 26


def test_a_toy_of_a_colour_wants_both_in_one_thing() -> None:
    model = load("seed-7")
    unit = model.layers()[0].names.index("red boat")
    boat, ball = Thing("boat", "blue", "large", -1.2, 0, -20), Thing("ball", "red", "large", 1.2, 0)
    apart = Scene((boat, ball), "grass", "day")
    assert Concept("boat", "red").matches(apart) is False
    assert float(model.unit_maps([render.render(apart)], "mono", unit).max()) == 0


@pytest.mark.parametrize("name", ["seed-", "7", "seed-x", "seed--1", "seed-7-8"])
def test_a_name_that_is_no_seed_is_refused_with_one_that_is(name: str) -> None:
    with pytest.raises(UnknownName, match="such as seed-7"):
        load(name)
