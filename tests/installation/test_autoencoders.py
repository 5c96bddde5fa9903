"""The page of sparse auto-encoders: empty, full, under way; what its form takes and refuses; the same for scripts."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from experiments.core import notify
from experiments.installation.form import KINDS as FORM_KINDS
from experiments.models import Dataset, Job, JobStatus, Layer, SparseAutoencoderRow, VisionModelRow
from tests.support.api_world import Script
from tests.support.autoencoders import make_autoencoder
from tests.support.people import member
from workers.record.sparse import KINDS

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis_url")]
PAGE = "/settings/autoencoders/"
GOOD = {
    "model": "toybox",
    "layer": "layer4",
    "dataset": "toybox",
    "latents": "256",
    "k": "8",
    "kind": "topk",
    "name": "",
    "steps": "5000",
    "seed": "0",
}


def fill() -> None:
    """toybox with two layers and its classes, a large model of photographs, a dataset for each and a small one."""
    Dataset.objects.create(key="toybox", label="Toys", images=3000)
    Dataset.objects.create(key="folder:/birds", label="Birds <b>", images=500)
    Dataset.objects.create(key="folder:/few", label="Few", images=12)
    layers = {"toybox": (32, 64, 10), "resnet": (512, 2048, 1000)}
    for name, units in layers.items():
        model = VisionModelRow.objects.create(name=name, label=name)
        for position, (layer, kind) in enumerate((("layer3", "conv"), ("layer4", "conv"), ("logits", "logit"))):
            about = {"kind": kind, "units": units[position], "path": layer, "position": position}
            Layer.objects.create(model=model, name=layer, **about)


def text(client: Client, path: str = PAGE, **headers: str) -> str:
    response = client.get(path, headers={"HX-Request": "true", **headers} if headers else {})
    assert response.status_code == 200
    return response.content.decode()


def test_the_empty_page_says_what_to_do(as_owner: Client) -> None:
    assert "A worker lists the models and datasets" in text(as_owner)
    assert "train-form" not in text(as_owner)
    fill()
    page = text(as_owner)
    assert "No auto-encoder was trained yet" in page
    assert "start training" in page


def test_what_was_trained_is_listed_with_its_figures(as_owner: Client, owner: User) -> None:
    fill()
    row = make_autoencoder("toys-256", by=owner)
    page = text(as_owner)
    item = page.partition(f'id="autoencoder-{row.pk}"')[2].partition("</li>")[0]
    for words in (
        "sae:toys-256",
        "toybox / layer4",
        "BatchTopK, 256 latents of 64 units, k 8",
        "11.2 %",
        "7.9",
        "3.1 %",
    ):
        assert words in item, words
    assert "/units/sae:toys-256/layer4/" in item
    assert "?model=sae%3Atoys-256" in item
    assert '<option value="sae:toys-256"' not in page
    SparseAutoencoderRow.objects.update(card={"name": "<b>"})
    assert "cannot be read" in text(as_owner)


def test_a_viewer_reads_the_list_and_trains_nothing(client: Client) -> None:
    fill()
    row = make_autoencoder("toys-256")
    client.force_login(member("onlooker", "VIEWER"))
    page = text(client)
    assert f'id="autoencoder-{row.pk}"' in page
    assert "Start training" not in page
    assert "New run" not in page.partition('id="list"')[2]
    assert client.post(f"{PAGE}train/", GOOD).status_code == 403
    assert Script(User.objects.get(username="onlooker")).post("/autoencoders", body()).status_code == 403
    assert not Job.objects.exists()


@pytest.mark.parametrize(
    ("chosen", "layer", "latents", "k", "dataset"),
    [
        ("", "layer4", 256, 8, "toybox"),
        ("?model=resnet", "layer4", 8192, 32, "folder:/birds"),
        ("?model=resnet&layer=layer3&dataset=folder:/few", "layer3", 2048, 32, "folder:/few"),
        ("?model=toybox&layer=nothing&dataset=nothing", "layer4", 256, 8, "toybox"),
    ],
)
def test_the_form_is_filled_with_what_suits_the_layer(
    as_owner: Client, chosen: str, layer: str, latents: int, k: int, dataset: str
) -> None:
    fill()
    part = text(as_owner, f"{PAGE}{chosen}", **{"HX-Target": "sparse-choice"})
    assert "<html" not in part
    assert f'name="latents" value="{latents}"' in part
    assert f'name="k" value="{k}"' in part
    assert f'<option value="{layer}" selected>' in part
    assert f'<option value="{dataset}" selected>' in part


def test_a_training_is_asked_of_a_worker_once(as_owner: Client, owner: User) -> None:
    fill()
    assert as_owner.post(f"{PAGE}train/", GOOD)["Location"] == PAGE
    as_owner.post(f"{PAGE}train/", GOOD)
    job = Job.objects.get()
    assert (job.kind, job.subject, job.asked_by) == ("sparse", "toybox", owner)
    wanted = {"layer": "layer4", "dataset": "toybox", "latents": 256, "k": 8, "kind": "topk", "name": ""}
    assert job.options == wanted | {"steps": 5000, "images": 0, "seed": 0}


def test_work_under_way_is_shown_stopped_and_resumed(as_owner: Client) -> None:
    fill()
    as_owner.post(f"{PAGE}train/", GOOD)
    job = Job.objects.get()
    Job.objects.update(status=JobStatus.RUNNING)
    notify.keep_report(job.topic, "Training toybox-layer4", 40, 5000)
    page = text(as_owner, **{"HX-Target": "work"})
    assert "Train an auto-encoder on toybox" in page
    assert "layer4, 256 latents, k 8" in page
    assert "Training toybox-layer4: 40 of 5,000" in page
    assert as_owner.post(f"/settings/jobs/{job.pk}/stop/")["Location"] == PAGE
    Job.objects.update(status=JobStatus.STOPPED, result="Stopped. What was done is kept.")
    page = text(as_owner, **{"HX-Target": "work"})
    assert 'id="list" class="list" hx-swap-oob="true"' in page
    assert f"/settings/jobs/{job.pk}/resume/" in page
    assert as_owner.post(f"/settings/jobs/{job.pk}/resume/")["Location"] == PAGE
    job.refresh_from_db()
    assert job.status == JobStatus.QUEUED


REFUSED = [
    ({"model": "nothing"}, "model", "Choose a model of the list"),
    ({"model": "sae:toys"}, "model", "is itself an auto-encoder"),
    ({"layer": "<layer9>"}, "layer", "has no layer"),
    ({"layer": "single"}, "layer", "has 1 unit"),
    ({"dataset": "nothing"}, "dataset", "Choose a dataset of the list"),
    ({"dataset": "folder:/few"}, "dataset", "at least 100 are needed"),
    ({"k": "257"}, "k", "not 257"),
    ({"name": "../up"}, "name", "cannot name an auto-encoder"),
    ({"name": "toys"}, "name", "already"),
]


def add_odd_ones() -> None:
    make_autoencoder("toys")
    toybox = VisionModelRow.objects.get(name="toybox")
    Layer.objects.create(model=toybox, name="single", kind="conv", units=1, path="single", position=9)


@pytest.mark.parametrize(("changes", "field", "says"), REFUSED)
def test_what_cannot_be_trained_is_refused_with_the_field(
    as_owner: Client, owner: User, changes: dict[str, str], field: str, says: str
) -> None:
    fill()
    add_odd_ones()
    response = as_owner.post(f"{PAGE}train/", GOOD | changes)
    page = response.content.decode()
    assert response.status_code == 400
    assert says in page.partition(f'id="id_{field}_error"')[2].partition("</p>")[0]
    assert "<layer9>" not in page
    assert 'aria-invalid="true"' in page.partition(f'name="{field}"')[2].partition(">")[0]
    problem = Script(owner).post("/autoencoders", body(**changes))
    assert problem.status_code == 422
    assert [(each["field"], says in each["message"]) for each in problem.json()["errors"]] == [(field, True)]
    assert not Job.objects.exists()


@pytest.mark.parametrize(
    "changes",
    [
        {"latents": ""},
        {"latents": "many"},
        {"latents": str(10**30)},
        {"k": "0"},
        {"k": "4, eight"},
        {"k": "4, 4"},
        {"k": "1,2,3,4,5,6,7,8,9,10,11,12,13"},
        {"k": "4, 8", "name": "toys"},
        {"steps": "0"},
        {"seed": "-1"},
        {"kind": "dense"},
        {"name": "x" * 101},
        {"model": ""},
        {"dataset": "\x00"},
    ],
)
def test_what_makes_no_sense_comes_back_with_what_was_typed(as_owner: Client, changes: dict[str, str]) -> None:
    fill()
    response = as_owner.post(f"{PAGE}train/", GOOD | changes | {"layer": "layer3"})
    assert response.status_code == 400
    page = response.content.decode()
    assert 'role="alert"' in page
    assert '<option value="layer3" selected>' in page
    assert not Job.objects.exists()


def test_several_k_are_trained_or_none_of_them(as_owner: Client) -> None:
    fill()
    assert as_owner.post(f"{PAGE}train/", GOOD | {"k": "4, 257", "name": ""}).status_code == 400
    assert not Job.objects.exists()
    assert as_owner.post(f"{PAGE}train/", GOOD | {"k": "4, 8,16", "name": ""}).status_code == 302
    assert sorted(job.options["k"] for job in Job.objects.all()) == [4, 8, 16]


def test_the_name_of_one_whose_file_is_gone_may_be_trained_again(as_owner: Client) -> None:
    fill()
    make_autoencoder("toys")
    VisionModelRow.objects.filter(name="sae:toys").update(available=False, remedy="It is not here.")
    assert "It is not here." in text(as_owner)
    assert as_owner.post(f"{PAGE}train/", GOOD | {"name": "toys"}).status_code == 302


def body(**changes: str) -> dict[str, Any]:
    """What a script sends for the same."""
    sent: dict[str, Any] = GOOD | changes
    return {name: int(value) if str(value).isdigit() else value for name, value in sent.items()}


def test_scripts_train_with_defaults_and_list_what_there_is(owner: User) -> None:
    fill()
    script = Script(owner)
    made = script.post("/autoencoders", {"model": "toybox", "layer": "layer4", "latents": 128, "k": 4})
    assert made.status_code == 202
    assert (made.json()["options"]["dataset"], made.json()["options"]["steps"]) == ("toybox", 5000)
    both = script.post("/autoencoders", body() | {"images": 100})
    assert both.json()["errors"][0]["field"] == "steps"
    Dataset.objects.filter(key__startswith="folder:").delete()
    unasked = script.post("/autoencoders", {"model": "resnet", "layer": "layer4", "latents": 128, "k": 4})
    assert "toybox's scenes are not taken for it unasked" in unasked.json()["errors"][0]["message"]
    row = make_autoencoder("toys-256", by=owner)
    VisionModelRow.objects.filter(name="sae:toys-256").update(added=timezone.now())
    (item,) = script.get("/autoencoders").json()["items"]
    assert (item["id"], item["model"], item["card"]["model_key"]) == (row.pk, "sae:toys-256", "toybox")
    assert item["card"]["quality"]["unexplained"] == pytest.approx(0.112)


def test_the_form_offers_every_kind() -> None:
    assert tuple(key for key, _ in FORM_KINDS) == KINDS
