"""The paper's two applications by one command, on small data: units judged and a classifier repaired; biases found."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from experiments.core import notify
from experiments.core.actors import Actor
from experiments.core.errors import StateConflict
from experiments.evaluations import actions
from experiments.models import Evaluation, EvaluationItem, ItemStatus, Run, SparseAutoencoderRow
from workers.jobs import laboratory as place

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.more]


@pytest.fixture(autouse=True)
def state(tmp_path: Path, settings):
    settings.STATE = tmp_path
    place.build_laboratory.cache_clear()
    yield
    place.build_laboratory.cache_clear()
    notify.muted.clear()


def evaluate(*options: str) -> dict[str, Any]:
    out = StringIO()
    call_command("evaluate", *options, "--json", stdout=out, stderr=StringIO())
    found: dict[str, Any] = json.loads(out.getvalue().splitlines()[-1])
    return found


def test_units_of_a_classifier_are_judged_and_its_head_is_repaired() -> None:
    small = "toybox-grounds:seed-{seed}-of-240"
    told = evaluate("spurious", "--dataset", small, "--units", "4", "--seed", "0", "--repeats", "2")
    assert told["items"]["failed"] == 0
    assert told["items"]["done"] == told["items"]["of"] == EvaluationItem.objects.count() >= 8
    assert set(EvaluationItem.objects.values_list("label", flat=True)) <= {"SELECTIVE", "SPURIOUS"}
    row = Evaluation.objects.get()
    table = next(each for each in row.result["tables"] if each["key"] == "table2")
    assert len(table["rows"]) >= 5  # more where a unit was judged selective
    assert told["accuracy"]["original_refit"]["n"] == 2
    runs = Run.objects.count()
    row.options = {**row.options, "repair": 0.0}
    row.save()
    again = evaluate("--resume", str(row.pk))
    assert Run.objects.count() == runs  # nothing is judged twice
    assert again["accuracy"] == told["accuracy"]
    row.refresh_from_db()
    assert any(each["key"].startswith("repair") for each in row.result["tables"])


def test_latents_of_a_classifier_are_judged_in_the_place_of_its_units() -> None:
    small = "toybox-grounds:seed-{seed}-of-240"
    told = evaluate("spurious", "--dataset", small, "--units", "4", "--latents", "32")
    assert told["items"]["failed"] == 0
    assert told["items"]["done"] == told["items"]["of"] > 0
    card = SparseAutoencoderRow.objects.get().card
    assert (card["latents"], card["layer"]) == (32, "features")
    assert card["model_key"].startswith("classifier:")
    for run in Run.objects.all():
        assert (run.status, run.model, run.system_kind) == ("concluded", f"sae:{card['name']}", "latent")
        assert "latent" in run.question
    row = Evaluation.objects.get()
    tables = {each["key"]: each for each in row.result["tables"]}
    assert not [key for key in tables if key.startswith("repair")]
    assert tables["table2"]["columns"][:2] == ["Latents chosen by", "Latents"]
    assert any("Nothing is repaired" in json.dumps(note) for note in row.result["notes"])
    with pytest.raises(StateConflict, match="weighs units, not latents"):
        actions.repair(Actor(row.owner), row, 0.0)


def test_latents_are_asked_for_in_a_sensible_number_and_of_spurious_features_alone() -> None:
    for options, why in (
        (("spurious", "--latents", "1"), "1 latents cannot take the place of units"),
        (("spurious", "--latents", "100000"), "100,000 latents cannot"),
        (("spurious", "--latents", "-3"), "-3 latents cannot"),
        (("bias", "--latents", "64"), "for spurious features alone"),
        (("aim", "--latents", "64"), "take no --latents"),
    ):
        with pytest.raises(CommandError, match=why):
            call_command("evaluate", *options, stdout=StringIO(), stderr=StringIO())
    assert not Evaluation.objects.exists()


def test_a_planted_bias_is_found_with_its_two_image_sets() -> None:
    told = evaluate("bias", "--units", "1", "--seed", "4")
    item = EvaluationItem.objects.get()
    assert item.status == ItemStatus.DONE
    assert told["items"] == {"done": 1, "of": 1, "failed": 0}
    sets = [name for name, images in item.evidence.items() if images]
    assert {name.split()[0] for name in sets} == {"with", "without"}
    assert item.scores["holding"] >= 1
