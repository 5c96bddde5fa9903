"""Circuits that were planted are found by effect, and what is only active with them is not; by hand and by command."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.core.management import CommandError, call_command

from experiments.models import Circuit
from tests.support.quick_laboratory import QUICK_IMAGES
from tests.support.sparse_layers import save_random
from tests.support.state_folders import copied
from workers.circuits import finding
from workers.circuits.ablation import AblatedLogit, find_effects, integrate_gradients
from workers.circuits.coactivation import find_lift
from workers.circuits.finding import CircuitSide, CircuitWish, find_circuit
from workers.circuits.planted import PlantedModel, Rule, number_images, plant, search_planted
from workers.errors import Cancelled, RequestError
from workers.jobs import catalogue, registration
from workers.jobs import laboratory as place
from workers.protocols import no_progress
from workers.record.circuits import CircuitReport

IMAGES = number_images(300)
GOAL = 0.9


def find(model: PlantedModel, **wish: Any) -> CircuitReport:
    side = CircuitSide(model, "mid", model.activations(IMAGES))
    return find_circuit(side, None, IMAGES, CircuitWish(**{"target": 0, "images": 60, "seeds": 2} | wish), no_progress)


def recall(model: PlantedModel, report: CircuitReport) -> float:
    """Share of the planted members among as many that were found."""
    found = {each.unit for each in report.members[: len(model.members)]}
    return len(found & set(model.members)) / len(model.members)


@pytest.mark.parametrize("rule", ["sum", "and", "or"])
def test_planted_circuits_are_found_by_effect(rule: Rule) -> None:
    found = [search_planted(plant(seed, rule), no_progress) for seed in range(5)]
    assert np.mean([each.found / each.members for each in found]) >= GOAL
    assert sum(each.followers for each in found) <= 1, "active with the class, and read by nothing"


def test_a_planted_sum_is_explained_by_its_members_alone_and_not_by_its_followers() -> None:
    model = PlantedModel([3, 17, 40], [5, 21, 33], "sum")
    report = find(model)
    curves = {curve.method: curve for curve in report.curves}
    sizes = curves["effect"].sizes
    assert report.nodes == 48
    assert sizes == (1, 2, 5, 10, 24)
    by_size = dict(zip(sizes, curves["effect"].faithfulness, strict=True))
    left = dict(zip(sizes, curves["effect"].completeness, strict=True))
    assert by_size[5].value == pytest.approx(1)
    assert left[5].value == pytest.approx(0, abs=1e-6)
    assert 0.2 < (by_size[1].value or 0) < 0.5, "one of three"
    random = dict(zip(sizes, curves["random"].faithfulness, strict=True))
    assert (random[5].value or 0) < 0.6
    assert {each.unit for each in report.members[:3]} == {3, 17, 40}
    follower = next(each for each in report.members if each.unit in (5, 21, 33))
    assert follower.effect == pytest.approx(0, abs=1e-6)
    assert follower.lift > 2, "active with the class all the same"


def test_gradients_tell_of_a_sum_what_ablation_does() -> None:
    model = PlantedModel([3, 17, 40], [5], "sum")
    logit = AblatedLogit(model, "mid", 0, IMAGES[:50], [0.2] * 48)
    exact = find_effects(logit, range(48), "", no_progress)
    assert integrate_gradients(logit, "", no_progress) == pytest.approx(exact, abs=1e-5)


def test_of_many_nodes_gradients_alone_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finding, "EXACT", 10)
    model = plant(1, "sum")
    report = find(model)
    assert {curve.method for curve in report.curves} == {"gradients", "lift", "random"}
    assert recall(model, report) == 1


def test_the_measuring_half_decides_nothing() -> None:
    one, other = finding._halve(np.arange(60), 0)
    assert not set(one) & set(other)
    assert len(one) == len(other) == 30
    assert find(plant(2, "sum")) == find(plant(2, "sum")), "the seed decides"


def test_lift_counts_how_often_both_come_together() -> None:
    shown = np.array([True] * 5 + [False] * 95)
    with_it, against, never = shown * 1.0, (np.arange(100) >= 95) * 1.0, np.zeros(100)
    assert find_lift(np.stack([with_it, against, never], 1), shown).tolist() == pytest.approx([20, 0, 0])


def test_a_class_that_no_unit_changes_says_so_and_few_images_are_refused() -> None:
    report = find(plant(0, "sum"), target=1)
    assert report.curves == ()
    assert report.why == "Units of mid held at their means do not change the logit of nothing."
    with pytest.raises(RequestError, match="3 images are too few"):
        find(plant(0, "sum"), images=3)
    with pytest.raises(RequestError, match="no class 'ball'"):
        finding.find_target(plant(0, "sum"), "ball")
    assert finding.find_target(plant(0, "sum"), "1") == 1


def test_it_can_be_stopped() -> None:
    def stop(what: str, done: int, total: int) -> None:
        if done == 2:
            raise Cancelled("stopped")

    model = plant(0, "sum")
    with pytest.raises(Cancelled):
        find_circuit(CircuitSide(model, "mid", model.activations(IMAGES)), None, IMAGES, CircuitWish(0), stop)


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("no_redis")
def test_the_command_sets_latents_beside_neurons(quick_laboratory: Path, tmp_path: Path, settings: Any) -> None:
    settings.STATE, settings.LAB_DATASET_IMAGES = copied(quick_laboratory, tmp_path / "state"), QUICK_IMAGES
    place.build_laboratory.cache_clear()
    save_random(settings.STATE, "few", latents=24)
    catalogue.look_at_model("toybox")
    registration.model("sae:few", None)
    out = StringIO()
    asked = ("--model", "sae:few", "--images", "10", "--seeds", "1")
    call_command("circuits", "ball", *asked, "--json", stdout=out, stderr=StringIO())
    found = json.loads(out.getvalue())
    assert (found["target"], found["layer"], found["images"]) == ("ball", "layer4", 10)
    assert {curve["method"] for curve in found["curves"]} == {
        "effect",
        "gradients",
        "bare",
        "lift",
        "random",
        "neurons",
    }
    out = StringIO()
    call_command("circuits", "ball", "--layer", "layer4", "--images", "8", "--seeds", "1", stdout=out)
    for said in ("Faithfulness, the circuit alone", "Completeness, without it", "by co-activation", "(10%)"):
        assert said in out.getvalue()
    call_command("circuits", "ball", *asked, "--save", "Balls", "--members", "3", stdout=StringIO(), stderr=StringIO())
    kept = Circuit.objects.get(name="Balls")
    assert [row.layer for row in kept.members.all()] == ["layer4"] * 3
    assert kept.network == "toybox"
    for options, why in (
        (("ball", "cube", *asked, "--save", "Both"), "ask for one class"),
        (("ball",), "name one with --layer"),
        (("unicorn", *asked), "has no class 'unicorn'"),
        (("ball", "--layer", "layer9"), "layer9"),
        (("ball", "--model", "synthetic:toybox-eyes", "--layer", "mono"), "no output of its own"),
    ):
        with pytest.raises(CommandError, match=why):
            call_command("circuits", *options, stdout=StringIO(), stderr=StringIO())
    place.build_laboratory.cache_clear()
