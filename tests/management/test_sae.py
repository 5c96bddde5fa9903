"""`manage.py sae`: training an auto-encoder on toybox-net, listing and measuring it, and what it refuses."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from experiments.core import notify
from experiments.models import SparseAutoencoderRow, VisionModelRow
from workers.jobs.laboratory import build_laboratory
from workers.record.sparse import KINDS
from workers.record.sparse_report import read_report

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("laboratory", "one_thread")]
WISH = ("--layer", "layer4", "--latents", "96", "--k", "8", "--name", "toys")


@pytest.fixture(autouse=True)
def heard_again() -> Iterator[None]:
    yield
    notify.muted.clear()


def said(*words: str) -> str:
    out = StringIO()
    call_command(*words, stdout=out)
    return out.getvalue()


def test_one_is_trained_and_listed(settings) -> None:
    settings.LAB_DATASET_IMAGES = 100
    assert "None was trained yet. manage.py sae train" in said("sae", "list")
    told = said("sae", "train", *WISH, "--steps", "20")
    assert "toys  topk, 96 latents of" in told
    assert "% of variance unexplained with 8.0 active latents" in told
    assert said("sae", "list") == told
    (card,) = json.loads(said("sae", "--json", "list"))
    assert (card["model"], card["layer"], card["dataset"], card["steps"]) == ("toybox", "layer4", "toybox", 20)
    assert card["quality"]["unexplained"] < 1
    assert (Path(settings.STATE) / "sparse" / "toys.safetensors").exists()
    row = VisionModelRow.objects.get(name="sae:toys")
    assert (row.base, row.layers.get().units, row.autoencoder.card) == ("toybox", 96, card)
    with pytest.raises(CommandError, match="'toys' belongs to an auto-encoder of another recipe"):
        said("sae", "train", *WISH, "--steps", "21")


def test_one_is_measured(settings) -> None:
    settings.LAB_DATASET_IMAGES = 100
    said("sae", "train", *WISH, "--steps", "60")
    facts = json.loads(said("sae", "report", "toys", "--json"))
    assert json.loads(said("sae", "--json", "report", "toys")) == facts
    report = read_report(facts)
    assert (report.images, report.positions, report.latents) == (5, 5 * 144, 96)
    told = said("sae", "report", "toys")
    assert f"Variance unexplained  {report.unexplained:.1%}" in told
    assert f"Dead latents          {report.dead} of 96" in told
    assert f"recovered                  {report.output.recovered.value:.1%} [" in told
    bars = dict(re.findall(r"^ +(never|\S+ to \S+) +(\d+)(?: +#+)?$", told, re.MULTILINE))
    assert bars["never"] == str(report.dead)
    assert sum(map(int, bars.values())) == 2 * 96, "every latent stands once in each of two histograms"
    with pytest.raises(CommandError, match="no sparse auto-encoder 'cars', only: toys"):
        said("sae", "report", "cars")
    settings.LAB_DATASET_IMAGES = 120
    build_laboratory.cache_clear()
    with pytest.raises(CommandError, match="'toys' was trained on other images: toybox"):
        said("sae", "report", "toys")


def test_what_was_not_measured_is_told(settings) -> None:
    settings.LAB_DATASET_IMAGES = 100
    said("sae", "train", "--layer", "logits", "--latents", "32", "--k", "4", "--name", "classes", "--steps", "20")
    assert "not measured: logits of toybox is the output itself" in said("sae", "report", "classes")


def test_hardly_any_latent_of_a_short_training_is_dead(settings) -> None:
    settings.LAB_DATASET_IMAGES = 100
    for kind in KINDS:
        wish = ("--layer", "layer4", "--latents", "128", "--k", "8", "--kind", kind, "--steps", "150")
        quality = json.loads(said("sae", "--json", "train", *wish))["quality"]
        assert quality["dead"] <= 0.05
        assert quality["unexplained"] < 0.5


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--layer", "layer9", "--latents", "96", "--k", "8"), "no layer 'layer9'. Choose one of"),
        (("--layer", "layer4", "--latents", "96", "--k", "97"), "k is 97 with 96 latents"),
        (("--layer", "layer4", "--latents", "0", "--k", "1"), "'0' is no number above 0"),
        (("--layer", "layer4", "--latents", "96", "--k", "8", "--model", "resnet"), "Name a dataset"),
        (("--layer", "layer4", "--latents", "96", "--k", "8", "--dataset", "birds"), "no dataset or folder 'birds'"),
    ],
)
def test_what_cannot_be_trained_is_said(words: tuple[str, ...], says: str) -> None:
    with pytest.raises(CommandError, match=says):
        said("sae", "train", *words)


def test_one_on_another_is_refused(settings) -> None:
    settings.LAB_DATASET_IMAGES = 100
    said("sae", "train", *WISH, "--steps", "5")
    with pytest.raises(CommandError, match=r"sae:toys is itself an auto-encoder.* the model below it, toybox"):
        said("sae", "train", "--model", "sae:toys", "--layer", "layer4", "--latents", "192", "--k", "8")
    assert SparseAutoencoderRow.objects.count() == 1
