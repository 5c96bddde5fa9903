"""A circuit as the thing under study: worked out by hand on the tiny network, and what makes no circuit."""

import math

import numpy as np
import pytest

from tests.support.tiny_circuits import circuit_spec
from tests.support.tiny_lab import DEAD, GREEN, RED, square, tiny_bench
from workers import registry
from workers.errors import Cancelled, UnknownName
from workers.lab.imaging import decode_image_base64
from workers.lab.laboratory import Laboratory
from workers.lab.program_api import list_calls
from workers.lab.reference import build_reference
from workers.protocols import LabSettings

RED_UNIT, GREEN_UNIT, LATENT = ("tiny", "patches", RED), ("tiny", "patches", GREEN), ("over", "patches", 0)


@pytest.fixture
def lab(tmp_path, monkeypatch):
    models = {
        "tiny": ("Tiny", "tests.support.tiny_lab.load_model"),
        "over": ("Laid over it", "tests.support.tiny_circuits.load_overlay"),
        "other": ("Another", "tests.support.tiny_lab.load_model"),
    }
    monkeypatch.setattr(registry, "VISION_MODELS", models)
    for table, name in {
        "DATASETS": "pictures",
        "IMAGE_GENERATORS": "generator",
        "IMAGE_EDITORS": "editor",
        "DESCRIBERS": "describer",
    }.items():
        monkeypatch.setattr(registry, table, {"tiny": ("Tiny", f"tests.support.tiny_lab.load_{name}")})
    monkeypatch.setattr(registry, "TOOLSETS", {"tiny": registry.Toolset("Tiny", "tiny", "tiny", "tiny")})
    return Laboratory(LabSettings(tmp_path, batch_size=4, dataset="tiny"))


def threshold_of(lab, model, layer, unit):
    known = lab.index(model, "tiny").unit(layer, unit)
    return max(known.quantile, sum(known.activations) / len(known.activations) / 10)


def test_its_activation_is_the_mean_of_its_members_by_their_thresholds(lab):
    subject = lab.subject(circuit_spec(RED_UNIT, GREEN_UNIT, LATENT))
    red, green, latent = (threshold_of(lab, *each) for each in (RED_UNIT, GREEN_UNIT, LATENT))
    assert subject.find_thresholds() == pytest.approx([red, green, latent])
    answers = subject.respond_members([square(colour) for colour in ("red", "green", "black")] * 3)
    assert [each.members for each in answers[:3]] == [(1.0, 0.0, 2.0), (0.0, 1.0, 0.0), (0.0, 0.0, 0.0)]
    wanted = [(1 / red + 2 / latent) / 3, 1 / green / 3, 0.0]
    assert [each.response.activation for each in answers] == pytest.approx(wanted * 3, rel=1e-5)


def test_the_combined_map_adds_members_on_the_finest_grid(lab):
    """The latent's single place is spread over all four; the unit's own place stands out."""
    subject = lab.subject(circuit_spec(RED_UNIT, LATENT))
    red, latent = subject.find_thresholds()
    (answer,) = subject.respond_members([square("red", 3)])
    everywhere = 2 / latent / 2
    wanted = [[everywhere, everywhere], [everywhere, everywhere + 1 / red / 2]]
    assert np.array(answer.combined) == pytest.approx(np.array(wanted), abs=1e-3)


def test_members_of_different_places_count_though_their_maps_do_not_meet(lab):
    subject = lab.subject(circuit_spec(RED_UNIT, GREEN_UNIT))
    both = square("red", 0)
    both.paste(square("green", 3).crop((4, 4, 8, 8)), (4, 4))
    alone, together = subject.respond([square("red", 0), both])
    assert together.activation == pytest.approx(2 * alone.activation, rel=0.2)
    assert together.map.high == pytest.approx(alone.map.high, rel=0.2)


def test_exemplars_and_ordinary_images_come_of_an_index_of_its_own(lab):
    said = []
    subject = lab.subject(circuit_spec(RED_UNIT, GREEN_UNIT))
    exemplars = subject.exemplars(lambda *each: said.append(each[0]))
    assert {each.index for each in exemplars[:3]} == {1, 2, 3}
    assert [each.activation for each in exemplars] == sorted((each.activation for each in exemplars), reverse=True)
    assert subject.ordinary().images == 6
    assert [what for what in dict.fromkeys(said) if "circuit" in what] == [said[-1]], "one pass for both of its layers"
    again = Laboratory(lab.settings).subject(circuit_spec(RED_UNIT, GREEN_UNIT))
    assert [each.index for each in again.exemplars()] == [each.index for each in exemplars]


def test_a_dead_member_adds_nothing(lab):
    dead = ("tiny", "patches", DEAD)
    alone, beside = (lab.subject(circuit_spec(*some)) for some in ((RED_UNIT,), (RED_UNIT, dead)))
    assert beside.find_thresholds()[1] == 1.0
    (one,), (half,) = alone.respond([square("red")]), beside.respond([square("red")])
    assert half.activation == pytest.approx(one.activation / 2)


def test_indexing_a_circuit_can_be_stopped_and_goes_on(lab):
    def stop(what, done, total):
        raise Cancelled("A person stopped the run.")

    subject = lab.subject(circuit_spec(RED_UNIT))
    with pytest.raises(Cancelled):
        subject.exemplars(stop)
    assert len(subject.exemplars()) == 3


# --- programs ---


def test_a_program_is_given_every_member_and_the_map(lab):
    context = tiny_bench(lab, circuit_spec(RED_UNIT, LATENT))
    found = context.calls("function")["system.circuit"]([square("red"), square("black")])
    assert found["members"] == ["tiny / patches / unit 0", "over / patches / unit 0"]
    assert found["activations"] == [[1.0, 2.0], [0.0, 0.0]]
    activations, masked = context.system.neuron([square("red"), square("black")])
    shares = [[a / t for a, t in zip(row, found["thresholds"], strict=True)] for row in found["activations"]]
    assert [sum(row) / 2 for row in shares] == pytest.approx(activations, rel=1e-5)
    assert [decode_image_base64(each).tobytes() for each in found["masked"]] == [
        decode_image_base64(each).tobytes() for each in masked
    ]
    assert [len(each) for each in found["maps"]] == [2, 2]
    assert context.facts["system.layer"] == "circuit"


def test_a_refused_image_has_nan_for_every_member(lab):
    context = tiny_bench(lab, circuit_spec(RED_UNIT, LATENT))
    refused, good = context.tools.text2image(["forbidden", "red"])
    found = context.system.circuit([refused, good])
    assert all(math.isnan(each) for each in found["activations"][0])
    assert found["maps"][0] == []
    assert found["activations"][1] == [1.0, 2.0]
    assert len(found["masked"]) == 2


def test_only_circuits_serve_it_and_tell_of_it(lab):
    circuit, unit = tiny_bench(lab, circuit_spec(RED_UNIT)), tiny_bench(lab)
    assert "system.circuit" in list_calls(circuit.system, circuit.tools, "function")
    assert "system.circuit" not in list_calls(unit.system, unit.tools, "function")
    assert "### system.circuit(" in build_reference(is_circuit=True)
    assert "system.circuit" not in build_reference()


# --- what makes no circuit ---

BAD = {
    "no members": (circuit_spec(), "not 0"),
    "too many": (circuit_spec(*(("tiny", "patches", each) for each in range(10_000))), "not 10,000"),
    "twice": (circuit_spec(RED_UNIT, RED_UNIT), "twice"),
    "another network": (circuit_spec(RED_UNIT, ("other", "patches", 0)), "other belongs to other"),
    "no such layer": (circuit_spec(("tiny", "layer9", 0)), "no layer 'layer9'"),
    "beyond the layer": (circuit_spec(("tiny", "patches", 4)), "from 0 to 3"),
    "no such model": (circuit_spec(("resnet", "patches", 4)), "no 'resnet' here"),
    "a number as text": (circuit_spec(("tiny", "patches", "1")), "whole number"),
    "a truth as number": (circuit_spec(("tiny", "patches", True)), "whole number"),
    "no list": (circuit_spec(options={"members": "all"}), "a list of objects"),
    "nothing": (circuit_spec(options={}), "a list of objects"),
    "a field too many": (
        circuit_spec(options={"members": [{"model": "tiny", "layer": "patches", "unit": 0, "note": ""}]}),
        "nothing else",
    ),
    "another layer": (circuit_spec(RED_UNIT, layer="patches"), "of the layer 'circuit', not 0 of 'patches'"),
}


@pytest.mark.parametrize("what", BAD)
def test_what_makes_no_circuit_is_told(lab, what):
    spec, said = BAD[what]
    with pytest.raises(UnknownName, match=said):
        lab.subject(spec)
