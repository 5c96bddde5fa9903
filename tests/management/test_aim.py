"""`manage.py evaluate aim`: what AIM claims, with ours beside it; refused, planned, resumed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from experiments.evaluations.claims import find_newest, set_beside
from experiments.management import aim
from experiments.management.supervisor import welcome
from experiments.models import Evaluation, EvaluationKind, SparseAutoencoderRow
from tests.support.sparse_layers import save_random
from tests.support.state_folders import copied
from workers.jobs import laboratory as place
from workers.jobs import registration
from workers.protocols import no_progress
from workers.record.decoding import encode
from workers.record.evaluations import CAVEAT, EvaluationResult, Figure

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("on_toybox")]
OPTIONS = {"units": 1, "seed": 0, "backbone": "scripted", "backbone_model": "", "unpriced": False}


@pytest.fixture
def autoencoder(settings: Any, tmp_path: Path, on_toybox: None) -> Iterator[str]:
    settings.STATE = copied(settings.STATE, tmp_path / "state")  # others use the laboratory's own
    place.build_laboratory.cache_clear()
    _, card = save_random(settings.STATE, "few", latents=24)
    row = registration.model("sae:few", None)
    SparseAutoencoderRow.objects.create(model=row, card=asdict(card))
    yield "sae:few"
    place.build_laboratory.cache_clear()


def measure(kind: EvaluationKind, *found: tuple[str, float]) -> Evaluation:
    figures = tuple(Figure(key, key, value, value - 0.1, value + 0.1, 4) for key, value in found)
    owner = welcome.owner()[0]
    result = encode(EvaluationResult(figures))
    return Evaluation.objects.create(kind=kind, name=kind.label, owner=owner, planned=True, result=result)


def test_figures_stand_beside_the_claim_that_they_are_of() -> None:
    latents = measure(
        EvaluationKind.LATENTS, ("by_latent.few.pearson", 0.1), ("two_way.people.toybox.agent-sae:few", 0.4)
    )
    spurious = measure(EvaluationKind.SPURIOUS, ("accuracy.agent_refit", 0.7), ("gap", 0.2))
    measure(EvaluationKind.UNITS, ("two_way.people.agent-person", 0.55), ("pearson", 0.8))
    rows = {row.key: row for row in set_beside(find_newest())}
    assert [(each.evaluation, each.figure.value) for each in rows["aim-maia"].own] == [
        (latents.pk, 0.1),
        (latents.pk, 0.4),
    ]
    assert [(each.evaluation, each.figure.value) for each in rows["table2"].own] == [(spurious.pk, 0.7)]
    assert [each.figure.value for each in rows["maia-people"].own] == [0.55]
    assert not rows["aim-people"].own
    assert not rows["circuits"].own
    assert (rows["aim-milan"].claimed, rows["figure5"].claimed) == (0.78, None)
    text = aim.write_text(list(rows.values()))
    assert "claimed 0.68" in text
    assert "0.700 [0.600, 0.800] n=4  evaluation" in text
    assert "ours: nothing yet" in text
    assert text.endswith(CAVEAT)


def test_a_table_of_latents_stands_beside_one_of_units() -> None:
    latents = measure(EvaluationKind.SPURIOUS, ("accuracy.agent_refit", 0.6))
    latents.options = {"units": 10, "latents": 64}
    latents.save()
    units = measure(EvaluationKind.SPURIOUS, ("accuracy.agent_refit", 0.7))
    rows = {row.key: row for row in set_beside(find_newest())}
    found = [(each.evaluation, each.figure.value) for each in rows["table2"].own]
    assert found == [(units.pk, 0.7), (latents.pk, 0.6)]
    assert rows["table2"].claimed == 0.852


def test_page_and_script_show_the_same_beside_each_claim(as_owner: Client) -> None:
    latents = measure(EvaluationKind.LATENTS, ("by_latent.few.pearson", 0.125))
    page = as_owner.get("/evaluations/claims/").content.decode()
    assert f'href="{latents.get_absolute_url()}">evaluation {latents.pk}</a>' in page
    assert "0.125" in page
    assert page.count("Nothing was measured here yet.") == 7
    told = {each["key"]: each for each in as_owner.get("/api/v1/claims").json()}
    assert [each["value"] for each in told["aim-maia"]["ours"]] == [0.125]
    assert (told["table2"]["claimed"], told["table2"]["ours"]) == (0.852, [])


def test_one_of_the_last_layer_is_taken_again_and_steps_are_found_again(autoencoder: str) -> None:
    assert aim.choose_autoencoder([], no_progress) == (autoencoder, "the newest there")
    assert aim.choose_autoencoder(["few"], no_progress) == (autoencoder, "as named")
    owner = welcome.owner()[0]
    steps = aim.plan(owner, autoencoder, OPTIONS)
    assert [step.kind for step in steps] == [*aim.PER_UNIT, EvaluationKind.SPURIOUS]
    assert [step.evaluation.options.get("latents") for step in steps] == [None, None, None, None, 64]
    circuits = steps[0].evaluation
    assert (circuits.backbone, circuits.options["autoencoders"], circuits.options["units"]) == ("", [autoencoder], 2)
    circuits.owner = owner
    circuits.save()
    again = aim.plan(owner, autoencoder, OPTIONS)
    assert again[0].evaluation.pk == circuits.pk
    assert aim.plan(owner, autoencoder, {**OPTIONS, "seed": 1})[0].evaluation.pk is None


def test_what_cannot_be_measured_is_told_before_anything_is_begun(autoencoder: str) -> None:
    for options, why in (
        (("--units", "0"), "measures nothing"),
        (("--autoencoders", "none"), "There is no auto-encoder"),
        (("--autoencoders", "few", "other"), "name one"),
        (("--model", "toybox"), "take no --model"),
        (("--repeats", "2"), "take no --repeats"),
    ):
        with pytest.raises(CommandError, match=why):
            call_command("evaluate", "aim", *options, stdout=StringIO(), stderr=StringIO())
    assert not Evaluation.objects.exists()
    assert autoencoder


@pytest.mark.more
def test_the_whole_is_measured_and_pays_nothing_twice(autoencoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Neurons and ablations take minutes, and are done by the same loop
    monkeypatch.setattr(aim, "PER_UNIT", {EvaluationKind.CIRCUITS: 1, EvaluationKind.SPURIOUS: 2})

    def ask() -> dict[str, Any]:
        out = StringIO()
        call_command("evaluate", "aim", "--json", stdout=out, stderr=StringIO())
        found: dict[str, Any] = json.loads(out.getvalue().splitlines()[-1])
        return found

    told = ask()
    assert told["undone"] == []
    assert told["autoencoder"] == autoencoder
    ours = {claim["claim"]: claim["ours"] for claim in told["claims"]}
    assert ours["circuits"]
    assert len({each["evaluation"] for each in ours["table2"]}) == 2, "of units and of latents"
    assert ask() == told
    assert Evaluation.objects.count() == 3
