"""`manage.py sae add`: a published auto-encoder on a layer of toybox, from its files to maps, list and report."""

from __future__ import annotations

import json
from dataclasses import asdict
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import torch
from django.core.management import CommandError, call_command
from django.test import Client
from safetensors.torch import load_file, save_file

from experiments.models import SparseAutoencoderRow, VisionModelRow
from tests.support import published_saes
from tests.support.published_saes import draw
from tests.support.sparse_layers import NumberedImages, SumsOfDirections, save_random
from workers import registry
from workers.errors import Cancelled, MissingPart, RequestError
from workers.jobs import sparse
from workers.jobs.laboratory import laboratory
from workers.protocols import LabSettings
from workers.record.sparse_report import read_report
from workers.sparse import storage
from workers.sparse.published.adding import add_published
from workers.sparse.training import find_source

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("on_own_toybox", "no_redis", "one_thread"),
]


def said(*words: str) -> str:
    out = StringIO()
    call_command(*words, stdout=out)
    return out.getvalue()


def explain(units: int) -> dict[str, torch.Tensor]:
    """Weights that rebuild any layer: both signs of every direction of a random orthonormal basis."""
    basis = torch.linalg.qr(torch.randn(units, units, generator=torch.Generator().manual_seed(3))).Q
    both = torch.cat([basis, -basis])
    bias = torch.linspace(-0.1, 0.1, units)
    return {"W_enc": both.T, "b_enc": torch.zeros(2 * units), "W_dec": both, "b_dec": bias}


def width(layer: str = "layer4") -> int:
    return next(info.units for info in laboratory().model("toybox").layers() if info.name == layer)


def add(folder: Path, *more: str, layer: str = "layer4") -> str:
    return said("sae", "add", str(folder), "--layer", layer, *more)


# --- one that explains its layer ----------------------------------------------------------------------------


def test_one_is_added_and_its_maps_are_those_of_the_formula(tmp_path: Path) -> None:
    weights = explain(width())
    told = add(published_saes.saelens(tmp_path / "basis", weights), "--name", "basis")
    assert f"sae:basis  relu, {2 * width()} latents of {width()} units  toybox layer4 on toybox" in told
    assert " positions; from SAELens, folder basis" in told
    assert said("sae", "list") == told
    lab = laboratory()
    images = [lab.dataset("toybox")[number].image for number in range(3)]
    below = lab.model("toybox").maps(images, ["layer4"])["layer4"]
    wanted = torch.relu((below.permute(0, 2, 3, 1) - weights["b_dec"]) @ weights["W_enc"] + weights["b_enc"])
    found = lab.model("sae:basis").maps(images, ["layer4"])["layer4"]
    assert torch.allclose(found, wanted.permute(0, 3, 1, 2), atol=1e-5)
    about = lab.model("sae:basis").about()
    assert "from SAELens, folder basis; on 1,440 positions of toybox: 0.0% of variance unexplained" in about
    assert "trained" not in about


def test_its_card_says_nothing_of_a_training(tmp_path: Path, settings: Any) -> None:
    told = add(published_saes.saelens(tmp_path / "basis", explain(width())), "--json")
    card = json.loads(told)
    assert (card["name"], card["source"]) == (f"toybox-layer4-SAELens-{2 * width()}", "SAELens, folder basis")
    assert (card["steps"], card["images"], card["k"]) == (0, 0, 0)
    assert card["quality"]["unexplained"] < 1e-6
    row = VisionModelRow.objects.get(name=f"sae:{card['name']}")
    assert (row.base, row.layers.get().units, row.autoencoder.card) == ("toybox", 2 * width(), card)
    assert str(tmp_path) not in told
    network, read = storage.load_autoencoder(settings.STATE, card["name"])
    assert json.loads(json.dumps(asdict(read))) == card
    assert network.kind == "relu"


def test_it_is_measured_and_its_page_says_where_it_comes_from(tmp_path: Path, as_owner: Client) -> None:
    add(published_saes.saelens(tmp_path / "basis", explain(width())), "--name", "basis")
    report = read_report(json.loads(said("sae", "report", "basis", "--json")))
    assert report.unexplained < 1e-6
    assert report.output.recovered.value == pytest.approx(1, abs=1e-3)
    told = said("sae", "report", "basis")
    assert f"positions of {report.images} images\n" in told
    assert "never saw" not in told
    page = " ".join(as_owner.get("/settings/autoencoders/").content.decode().split())
    assert "SAELens, folder basis" in page
    assert "ReLU, " in page
    assert "<dt>Steps</dt>" not in page
    assert "Trained by" not in page
    row = SparseAutoencoderRow.objects.get()
    assert "never saw" not in as_owner.get(f"/settings/autoencoders/{row.pk}/").content.decode()


def test_normalisation_and_signs_are_kept_with_the_file(tmp_path: Path, settings: Any) -> None:
    weights = explain(width())
    path = tmp_path / "0.pt"
    state = {
        "pre_bias": weights["b_dec"],
        "encoder.weight": weights["W_enc"].T.contiguous(),
        "latent_bias": weights["b_enc"],
        "decoder.weight": weights["W_dec"].T.contiguous(),
        "activation": "TopK",
        "activation_state_dict": {"k": 2 * width(), "postact_fn": "Identity"},
    }
    state["decoder.weight"] = state["decoder.weight"] / 2  # both signs of a direction say the same twice
    torch.save(state, path)
    add(path, "--name", "signed")
    network, card = storage.load_autoencoder(settings.STATE, "signed")
    assert (card.source, card.normalisation, card.signed) == ("OpenAI, file 0.pt", "layer_norm", True)
    assert (network.normalisation, network.signed) == ("layer_norm", True)
    assert card.quality.unexplained < 1e-5


def test_the_card_of_an_earlier_file_is_read(settings: Any) -> None:
    """Files that were written before published ones could be added have no source."""
    _, card = save_random(settings.STATE, "earlier")
    facts = {name: each for name, each in asdict(card).items() if name not in ("source", "normalisation", "signed")}
    path = storage.find_path(settings.STATE, "earlier")
    save_file(load_file(path), path, {"card": json.dumps(facts)})
    assert storage.read_card(path) == card
    assert "latents dead; 1 steps" in said("sae", "list")


# --- what is refused ----------------------------------------------------------------------------------------


def test_another_width_is_refused_with_both(tmp_path: Path, settings: Any) -> None:
    folder = published_saes.saelens(tmp_path / "basis", explain(width()))
    other = next(each for each in laboratory().model("toybox").layers() if each.units != width())
    with pytest.raises(CommandError, match=rf"takes {width()} units, and {other.name} of toybox has {other.units}"):
        add(folder, layer=other.name)
    assert not storage.list_cards(settings.STATE)


def test_weights_that_explain_nothing_are_refused_with_the_measure(tmp_path: Path, settings: Any) -> None:
    folder = published_saes.saelens(tmp_path / "noise", draw(width(), 100))
    with pytest.raises(
        CommandError, match=r"leaves [\d,.]+% of the variance of layer4 of toybox unexplained, on [\d,]+"
    ):
        add(folder, "--name", "noise")
    assert not list((settings.STATE / "sparse").glob("noise*"))
    assert not SparseAutoencoderRow.objects.exists()


def test_a_name_that_is_taken_is_refused(tmp_path: Path, settings: Any) -> None:
    folder = published_saes.saelens(tmp_path / "basis", explain(width()))
    save_random(settings.STATE, "basis")
    before = storage.read_card(storage.find_path(settings.STATE, "basis"))
    with pytest.raises(CommandError, match="There is an auto-encoder 'basis' already"):
        add(folder, "--name", "basis")
    assert storage.read_card(storage.find_path(settings.STATE, "basis")) == before
    (settings.STATE / "sparse" / "training.checkpoint").touch()
    with pytest.raises(CommandError, match="There is an auto-encoder 'training' already"):
        add(folder, "--name", "training")


def test_one_on_another_is_refused(tmp_path: Path, settings: Any) -> None:
    save_random(settings.STATE, "below")
    with pytest.raises(CommandError, match=r"sae:below is itself an auto-encoder.* the model below it, toybox"):
        add(published_saes.saelens(tmp_path / "basis"), "--model", "sae:below", "--dataset", "toybox")


def test_stopped_it_leaves_nothing(tmp_path: Path, settings: Any) -> None:
    folder = published_saes.saelens(tmp_path / "basis", explain(width()))

    def stop(what: str, done: int, total: int) -> None:
        if what.startswith("Rebuilding"):
            raise Cancelled("Stopped.")

    with pytest.raises(Cancelled):
        sparse.add(folder, "toybox", "layer4", "toybox", "stopped", stop)
    assert not list((settings.STATE / "sparse").glob("*"))
    assert not VisionModelRow.objects.filter(name="sae:stopped").exists()


def test_other_weights_of_the_model_name_the_command(tmp_path: Path, settings: Any) -> None:
    add(published_saes.saelens(tmp_path / "basis", explain(width())), "--name", "basis")
    card = storage.read_card(storage.find_path(settings.STATE, "basis"))
    with pytest.raises(MissingPart, match=r"was added to other weights of toybox.*manage\.py sae add"):
        storage.check_weights(card, "another")
    below = registry.load(registry.VISION_MODELS, "toybox")(LabSettings(settings.STATE))
    storage.check_weights(card, below.revision)


def test_a_dataset_too_small_to_measure_on_is_refused(tmp_path: Path) -> None:
    source = find_source("sums", SumsOfDirections(), "sums", "numbers", NumberedImages(20))
    with pytest.raises(RequestError, match="has 20 images; at least 100 are needed"):
        add_published(LabSettings(tmp_path / "state"), source, published_saes.saelens(tmp_path / "sae"), "small")
    assert not (tmp_path / "state").exists()
