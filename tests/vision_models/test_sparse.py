"""A sparse auto-encoder as a model: its latents are units, with maps, exemplars and masked images of their own."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from experiments.core import compatibility
from experiments.models import Layer, VisionModelRow
from tests.support.sparse_layers import save_random
from workers import registry
from workers.errors import MachineryError, MissingPart, RequestError, UnknownName
from workers.jobs import registration
from workers.jobs.laboratory import laboratory as built_laboratory
from workers.lab.imaging import OUTLINES
from workers.lab.laboratory import Laboratory
from workers.protocols import LabSettings, LayerInfo, visible_part
from workers.record.systems import SystemSpec
from workers.sparse.storage import find_path
from workers.vision_models.sparse.model import SparseModel, load, missing

pytestmark = pytest.mark.usefixtures("one_thread")
LATENTS, K = 64, 4


@pytest.fixture
def lab(tmp_path: Path) -> Laboratory:
    save_random(tmp_path, latents=LATENTS, k=K)
    return Laboratory(LabSettings(tmp_path, batch_size=4, dataset_images=24))


def pictures(lab: Laboratory, count: int) -> list[Image.Image]:
    return [lab.dataset("toybox")[at].image for at in range(count)]


def spec(unit: int, **options: object) -> SystemSpec:
    return SystemSpec("latent", "sae:random", "layer4", unit, {"dataset": "toybox", **options})


# --- maps ---------------------------------------------------------------------------------------------------


def test_its_maps_are_the_latents_of_the_layer_below_at_each_place(lab: Laboratory) -> None:
    network, _ = save_random(lab.settings.state, "same", latents=LATENTS, k=K)
    images = pictures(lab, 6)
    below = lab.model("toybox").maps(images, ["layer4"])["layer4"]
    maps = lab.model("sae:random").maps(images, ["layer4"])["layer4"]
    assert maps.shape == (6, LATENTS, *below.shape[2:])
    with torch.no_grad():
        at_one_place = network.encode(below[5, :, 1, 2][None])[0]
    assert torch.allclose(maps[5, :, 1, 2], at_one_place, atol=1e-5)
    assert maps.min() == 0
    assert ((maps > 0).sum(1) <= K).all()
    assert (maps > 0).any()


def test_the_maps_of_one_latent_are_those_among_all(lab: Laboratory) -> None:
    model, images = lab.model("sae:random"), pictures(lab, 5)
    assert isinstance(model, SparseModel)
    all_maps = model.maps(images, ["layer4"])["layer4"]
    best = int(all_maps.amax((0, 2, 3)).argmax())
    assert torch.allclose(model.unit_maps(images, "layer4", best), all_maps[:, best], atol=1e-5)
    assert model.maps([], ["layer4"])["layer4"].shape[:2] == (0, LATENTS)
    assert model.maps(images, []) == {}


def test_it_has_one_layer_and_says_what_it_was_trained_on(lab: Laboratory) -> None:
    model = lab.model("sae:random")
    assert isinstance(model, SparseModel)
    assert model.layers() == [LayerInfo("layer4", "layer4", "latent", LATENTS)]
    assert model.base == "toybox"
    assert "64 latents (topk, k 4) of layer4 of toybox" in model.about()
    assert "25.0% of variance unexplained" in model.about()
    with pytest.raises(UnknownName, match="layer4"):
        model.maps(pictures(lab, 1), ["layer3"])


def test_it_sees_what_the_model_below_sees(lab: Laboratory) -> None:
    class Cropping:
        name, revision = "toybox", "1"

        def layers(self) -> list[LayerInfo]:
            return [LayerInfo("layer4", "layer4", "conv", 96)]

        def find_visible(self, size: tuple[int, int]) -> tuple[float, float, float, float]:
            return (0.25, 0.0, 0.75, 1.0)

    _, card = save_random(lab.settings.state, "cropped")
    model = SparseModel(lab.settings, card, Cropping())  # type: ignore[arg-type]
    assert visible_part(model, (20, 10)) == (0.25, 0.0, 0.75, 1.0)
    assert visible_part(lab.model("sae:random"), (20, 10)) == (0.0, 0.0, 1.0, 1.0)


# --- what cannot be loaded -----------------------------------------------------------------------------------


def test_what_is_not_there_says_so_with_the_command(tmp_path: Path) -> None:
    settings = LabSettings(tmp_path)
    assert "manage.py sae train" in missing(settings, "random")
    assert "cannot name an auto-encoder" in missing(settings, "../secret")
    with pytest.raises(RequestError):
        load(settings, "../secret")
    save_random(tmp_path)
    assert missing(settings, "random") == ""
    assert "only: random" in missing(settings, "other")
    find_path(tmp_path, "random").write_bytes(b"nothing of the kind")
    assert "no whole sparse auto-encoder" in missing(settings, "random")


def test_one_that_was_trained_on_other_weights_is_refused(tmp_path: Path) -> None:
    save_random(tmp_path, "older", revision="of last year")
    with pytest.raises(MissingPart, match=r"other weights of toybox \(revision of last year, now \w+\)"):
        load(LabSettings(tmp_path), "older")


def test_one_whose_model_is_missing_tells_how_to_get_that(tmp_path: Path) -> None:
    _, card = save_random(tmp_path, "first")
    save_random(tmp_path, "second", base="sae:first")
    find_path(tmp_path, card.name).unlink()
    assert "'first'" in missing(LabSettings(tmp_path), "second")


def test_a_file_that_was_replaced_under_a_worker_gives_no_figures_of_another_one(lab: Laboratory) -> None:
    model, images = lab.model("sae:random"), pictures(lab, 1)
    model.maps(images, ["layer4"])
    save_random(lab.settings.state, latents=LATENTS, k=K)
    os.utime(find_path(lab.settings.state, "random"), ns=(1, 1))
    with pytest.raises(MachineryError, match="made anew, or removed"):
        model.maps(images, ["layer4"])


# --- a latent as the thing under study ------------------------------------------------------------------------


def test_a_latent_is_studied_like_a_unit(lab: Laboratory) -> None:
    busiest = int(lab.index("sae:random", "toybox").layer("layer4").active.argmax())
    subject = lab.subject(spec(busiest))
    exemplars = subject.exemplars()
    activations = [each.activation for each in exemplars]
    assert len(activations) == 15
    assert activations == sorted(activations, reverse=True)
    first = exemplars[0]
    maps = lab.model("sae:random").maps([first.picture.image], ["layer4"])["layer4"]
    assert first.activation == pytest.approx(float(maps[0, busiest].max()), abs=1e-5)
    outline = (np.asarray(first.masked) == OUTLINES["weighted"]).all(axis=2)
    assert outline.any()
    assert (
        not (np.asarray(lab.subject(spec(busiest, surroundings="dark")).exemplars()[0].masked) == (255, 64, 0))
        .all(axis=2)
        .any()
    )


@pytest.mark.parametrize(("asked", "count"), [(5, 5), (0, 15), (15, 15), ("5", 15), (-1, 15)])
def test_a_run_may_work_with_fewer_exemplars(lab: Laboratory, asked: object, count: int) -> None:
    busiest = int(lab.index("sae:random", "toybox").layer("layer4").active.argmax())
    all_of_them = lab.subject(spec(busiest)).exemplars()
    some = lab.subject(spec(busiest, exemplars=asked)).exemplars()
    assert [each.index for each in some] == [each.index for each in all_of_them[:count]]


def test_a_unit_is_no_latent(lab: Laboratory) -> None:
    with pytest.raises(UnknownName, match="holds no latents"):
        lab.subject(SystemSpec("latent", "toybox", "layer4", 1, {}))


# --- as pages know it -----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("laboratory")
def test_pages_know_what_it_is_laid_over_and_what_suits_it() -> None:
    assert not compatibility.is_toybox("sae:random")
    save_random(built_laboratory().settings.state, latents=LATENTS, k=K)
    row = registration.model("sae:random")
    assert (row.base, row.available, row.added is None) == ("toybox", True, False)
    layer = Layer.objects.get(model=row)
    assert (layer.name, layer.kind, layer.units) == ("layer4", "latent", LATENTS)
    assert registry.SYSTEM_OF_LAYER[layer.kind] == "latent"
    assert compatibility.is_toybox("sae:random")
    assert "64 latents (topk, k 4) of layer4 of toybox" in VisionModelRow.objects.get(name="sae:random").note


@pytest.mark.usefixtures("laboratory")
def test_one_over_an_unknown_name_is_not_added() -> None:
    with pytest.raises(MissingPart, match=r"manage\.py sae train"):
        registration.model("sae:nowhere")
    assert not VisionModelRow.objects.filter(name="sae:nowhere").exists()
