"""Circuits as an evaluation: classes beside controls, planted circuits by rule; by command, page and API."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from experiments.models import Evaluation, EvaluationItem, ItemStatus
from tests.support.quick_laboratory import QUICK_IMAGES
from tests.support.sparse_layers import save_random
from tests.support.state_folders import copied
from workers.errors import RequestError
from workers.jobs import catalogue, registration
from workers.jobs import laboratory as place
from workers.jobs.evaluations.circuits import EVALUATION_TYPE
from workers.protocols import no_progress

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("no_redis")]


@pytest.fixture
def toybox(quick_laboratory: Path, tmp_path: Path, settings: Any) -> Any:
    settings.STATE, settings.LAB_DATASET_IMAGES = copied(quick_laboratory, tmp_path / "state"), QUICK_IMAGES
    place.build_laboratory.cache_clear()
    catalogue.look_at_model("toybox")
    yield settings.STATE
    place.build_laboratory.cache_clear()


def summarise(row: Evaluation, items: list[EvaluationItem]) -> dict[str, Any]:
    return {figure.key: figure for figure in EVALUATION_TYPE.summarise(row, items).figures}


@pytest.mark.usefixtures("toybox")
def test_planted_circuits_are_recovered_and_classes_are_drawn_by_the_seed() -> None:
    row = Evaluation(kind="circuits", seed=1, options={"units": 2})
    items = EVALUATION_TYPE.plan(row, no_progress)
    classes = [item for item in items if item.group == "classes"]
    assert len(classes) == 2
    assert {item.options["place"] for item in classes} == {"layer4"}, "the last layer before the classes"
    assert [item.unit_name for item in EVALUATION_TYPE.plan(row, no_progress)] == [item.unit_name for item in items]
    planted = [item for item in items if item.source == "planted"][:6]
    for item in planted:
        assert EVALUATION_TYPE.score is not None
        EVALUATION_TYPE.score(row, item, no_progress)
        item.status = ItemStatus.DONE
    found = summarise(row, planted)
    assert found["planted.all.recovered"].value >= 0.9
    assert found["planted.all.kept_out"].value >= 0.5
    assert found["planted.sum.whole"].n == 2
    planted[0].scores = {"members": 4, "recovered": 1, "followers": 3}
    worse = summarise(row, planted)
    assert worse["planted.all.recovered"].value < found["planted.all.recovered"].value
    assert worse["planted.all.kept_out"].value < 1


@pytest.mark.usefixtures("toybox")
def test_what_has_no_classes_or_no_such_layer_is_refused() -> None:
    for options, why in (
        ({"model": "synthetic:toybox-eyes"}, "knows no classes"),
        ({"layers": ["layer9"]}, "has no layer 'layer9'"),
        ({"layers": ["layer3", "layer4"]}, "one layer, not in 2"),
    ):
        with pytest.raises(RequestError, match=why):
            EVALUATION_TYPE.plan(Evaluation(kind="circuits", options=options), no_progress)


@pytest.mark.usefixtures("toybox")
def test_it_is_offered_and_started_without_a_backbone(as_owner: Client) -> None:
    assert "Circuits" in as_owner.get("/evaluations/new/").content.decode()
    page = as_owner.get("/evaluations/new/?kind=circuits&units=2").content.decode()
    assert "Start evaluation" in page
    sent = {"kind": "circuits", "units": 2, "model": "toybox", "layers": ["layer4"]}
    told = as_owner.post("/api/v1/evaluations", sent, content_type="application/json")
    assert told.status_code == 201, told.content
    assert Evaluation.objects.get().options["layers"] == ["layer4"]
    assert Evaluation.objects.get().backbone == ""


@pytest.mark.more
def test_latents_are_set_beside_random_ones_and_plain_neurons(toybox: Path) -> None:
    save_random(toybox, "few", latents=24)
    registration.model("sae:few", None)
    out = StringIO()
    call_command("evaluate", "circuits", "--units", "1", "--repeats", "1", "--json", stdout=out, stderr=StringIO())
    told = json.loads(out.getvalue().splitlines()[-1])
    assert told["items"]["failed"] == 0
    assert told["faithfulness_10"]["gradients"]["n"] == 1
    assert told["faithfulness_10"]["gradients"]["value"] > told["faithfulness_10"]["random"]["value"]
    assert told["planted"]["all"]["recovered"]["value"] >= 0.9
