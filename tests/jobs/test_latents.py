"""Neurons against latents: what is planned, what a latent says of a neuron, the figures, the whole by one command."""

from __future__ import annotations

import json
from dataclasses import asdict
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.http import QueryDict
from django.test import Client
from django.urls import reverse

from experiments.core.actors import Actor
from experiments.core.errors import InvalidInput
from experiments.evaluations import actions
from experiments.evaluations.autoencoders import compare_options
from experiments.evaluations.drawing import draw_result
from experiments.evaluations.form import NewEvaluation
from experiments.evaluations.results import read_result
from experiments.models import (
    Evaluation,
    EvaluationItem,
    ItemStatus,
    Judge,
    Pair,
    PairwiseTrial,
    SparseAutoencoderRow,
    Unit,
    VisionModelRow,
    Vote,
)
from tests.support.quick_laboratory import QUICK_IMAGES
from tests.support.sparse_layers import save_random
from tests.support.state_folders import copied
from workers.jobs import catalogue, registration
from workers.jobs import laboratory as place
from workers.jobs.evaluations import latent_figures, latents
from workers.jobs.evaluations.sources import find_label
from workers.protocols import no_progress

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("no_redis")]
SPARSE, DENSE = "sae:four", "sae:sixteen"


@pytest.fixture
def autoencoders(quick_laboratory: Path, tmp_path: Path, settings: Any) -> Any:
    """Two with random weights over layer4 of toybox-net, of k 4 and 16, in a laboratory of this test's own."""
    settings.STATE, settings.LAB_DATASET_IMAGES = copied(quick_laboratory, tmp_path / "state"), QUICK_IMAGES
    place.build_laboratory.cache_clear()
    catalogue.look_at_model("toybox")
    for name, k in ((SPARSE, 4), (DENSE, 16)):
        _, card = save_random(settings.STATE, name.removeprefix("sae:"), k=k)
        row = registration.model(name, None)
        SparseAutoencoderRow.objects.create(model=row, card=asdict(card))
    yield
    place.build_laboratory.cache_clear()


def draft(*names: str, units: int = 2, **fields: Any) -> Evaluation:
    options: Any = {"units": units, **compare_options(names or (SPARSE, DENSE))}
    return Evaluation(kind="latents", name="Latents", backbone="scripted", options=options, **fields)


def plan(evaluation: Evaluation) -> list[EvaluationItem]:
    items = latents.EVALUATION_TYPE.plan(evaluation, no_progress)
    for position, item in enumerate(items, 1):
        item.evaluation, item.position = evaluation, position
        item.save()
    evaluation.save()
    return items


@pytest.mark.usefixtures("autoencoders")
def test_units_and_latents_are_drawn_alike_and_what_latents_say_of_units_comes_last(owner: User) -> None:
    evaluation = actions.begin(Actor(owner), draft(), enqueue=False)
    items = plan(evaluation)
    drawn = [(item.group, item.unit_name.partition(" / ")[0], item.source) for item in items]
    for group, model in (("neurons", "toybox"), ("latents", SPARSE), ("latents", DENSE)):
        for source in ("agent", "one-shot"):
            assert drawn.count((group, model, source)) == 2
    late = [item for item in items if item.source in (SPARSE, DENSE)]
    assert items[-len(late) :] == late
    assert len(late) == 4
    asked = {(item.unit_name.partition(" / ")[0], item.unit.number) for item in items if item.source == "agent"}
    for item in late:
        latent = item.options.get("latent")
        assert latent is None or (item.source, int(str(latent))) in asked, "whose label is taken over is asked for"
    again = [(item.unit_id, item.source) for item in latents.EVALUATION_TYPE.plan(evaluation, no_progress)]
    assert again == [(item.unit_id, item.source) for item in items], "the seed decides"


@pytest.mark.usefixtures("autoencoders")
def test_a_neuron_is_labelled_by_the_latent_that_adds_most_to_it(owner: User) -> None:
    evaluation = actions.begin(Actor(owner), draft(SPARSE, units=1), enqueue=False)
    items = plan(evaluation)
    late = next(item for item in items if item.source == SPARSE)
    latent = next(item for item in items if item.group != "neurons" and item.source == "agent")
    late.options = {}
    assert find_label(evaluation, late, no_progress) == ""
    assert late.reason == "No latent of sae:four adds anything to it."
    late.options = {"latent": str(latent.unit.number if latent.unit else 0)}
    assert find_label(evaluation, late, no_progress) == ""
    assert "has no label" in late.reason
    EvaluationItem.objects.filter(pk=latent.pk).update(label="red cubes", status=ItemStatus.DONE)
    assert find_label(evaluation, late, no_progress) == "red cubes"


@pytest.mark.usefixtures("autoencoders")
def test_auto_encoders_of_one_layer_alone_are_compared(settings: Any) -> None:
    assert compare_options([DENSE, SPARSE]) == {
        "autoencoders": [SPARSE, DENSE],
        "model": "toybox",
        "layers": ["layer4"],
    }
    _, card = save_random(settings.STATE, "three", layer="layer3")
    SparseAutoencoderRow.objects.create(model=registration.model("sae:three", None), card=asdict(card))
    for names, why in (
        ([], "Choose 1 to 12 auto-encoders"),
        ([f"sae:{number}" for number in range(13)], "not 13"),
        (["sae:gone"], "There is no auto-encoder “sae:gone”"),
        ([SPARSE, "sae:three"], "choose auto-encoders of one layer"),
    ):
        with pytest.raises(InvalidInput, match=why):
            compare_options(names)
        with pytest.raises(CommandError, match="sae list says"):
            call_command("evaluate", "latents", *(["--autoencoders", *names] if names else []))


@pytest.mark.usefixtures("autoencoders")
def test_the_form_offers_them_and_tells_what_it_takes(as_owner: Client) -> None:
    catalogue.write_backbone("scripted")
    given = QueryDict(mutable=True)
    given.update({"kind": "latents", "backbone": "scripted", "units": "3"})
    assert NewEvaluation(given, []).problems == ["Auto-encoders: Choose one or more auto-encoders of a layer."]
    given.setlist("autoencoders", [SPARSE, DENSE])
    page = as_owner.get(f"{reverse('evaluation-new')}?{given.urlencode()}").content.decode()
    assert page.count('name="autoencoders"') == 4, "two to choose, two to send"
    for said in ("<b>15</b>", "<b>30</b>", "layer4 of toybox, k 16", "and as many latents of each"):
        assert said in page
    form = NewEvaluation(given, [])
    assert form.is_valid()
    row = form.draft()
    assert row.name == "3 units of toybox layer4 against 2 auto-encoders by scripted"
    assert row.options["autoencoders"] == [SPARSE, DENSE]
    given.setlist("autoencoders", ["sae:gone"])
    assert "no auto-encoder “sae:gone”" in NewEvaluation(given, []).problems[0]


# --- figures ---


def score(evaluation: Evaluation, group: str, model: str, source: str, values: list[float]) -> None:
    """Items that are done, with r and right choices."""
    layer = VisionModelRow.objects.get(name=model).layers.get(name="layer4")
    for number, value in enumerate(values):
        unit, _ = Unit.objects.get_or_create(layer=layer, number=number)
        evaluation.items.create(
            position=evaluation.items.count() + 1,
            group=group,
            source=source,
            unit=unit,
            unit_name=str(unit),
            label=f"{source} {number}",
            status=ItemStatus.DONE,
            scores={"pearson": value, "base_rate": 0.1, "auprc": value, "choice": (1 + value) / 2},
        )


@pytest.fixture
def scored(autoencoders: None, owner: User) -> Evaluation:
    """Latents of the sparser one are labelled best, those of the other worse than neurons."""
    row = actions.begin(Actor(owner), draft(), enqueue=False)
    row.prepared = {latent_figures.CARDS: [latents._describe(name) for name in (SPARSE, DENSE)]}
    row.prepared["autoencoders"][1]["unexplained"] = 0.1
    row.save()
    for group, model, values in (
        ("neurons", "toybox", [0.5, 0.6, 0.4]),
        ("latents", SPARSE, [0.9, 0.8, 0.7]),
        ("latents", DENSE, [0.2, 0.1, 0.3]),
    ):
        score(row, group, model, "agent", values)
        score(row, group, model, "one-shot", [each / 2 for each in values])
    score(row, "neurons", "toybox", SPARSE, [0.6, 0.6, 0.6])
    return row


def test_each_side_has_its_figures_and_latents_are_set_against_neurons(scored: Evaluation) -> None:
    result = latents.EVALUATION_TYPE.summarise(scored, list(scored.items.select_related("unit__layer")))
    found = {figure.key: figure for figure in result.figures}
    assert found["neurons.pearson"].value == pytest.approx(0.5)
    assert found["four.pearson"].value == pytest.approx(0.8)
    assert found["four.pearson"].label == "Latents, k 4: mean r"
    assert found["four.choice"].value == pytest.approx(0.9)
    contrast = found["difference.four.pearson"]
    assert contrast.value == pytest.approx(0.3)
    assert contrast.low is not None
    assert contrast.low > 0
    by_latent = found["by_latent.four.pearson"]
    assert (by_latent.value, by_latent.n) == (pytest.approx(0.1), 3)
    assert found["difference.sixteen.agent-one-shot.pearson"].value == pytest.approx(0.1)
    named = {table.key: table for table in result.tables}
    fronts = {row[0].text: row[-1].text for row in named["autoencoders"].rows}
    assert fronts == {"Latents, k 4": "yes", "Latents, k 16": ""}
    rows = {row[0].text: row[1].value for row in named["labels"].rows}
    assert rows["Neurons, by their latents, k 4"] == pytest.approx(0.6)
    assert rows["Latents, k 16, one-shot labeller"] == pytest.approx(0.1)
    claims = {row[0].text: (row[1].value, row[1].weak) for row in named["claims"].rows}
    assert claims["AIM over MILAN, neurons (claimed)"] == (0.78, True)
    assert claims["AIM over MAIA, neurons (claimed)"] == (0.68, True)


def test_who_gives_no_label_gains_nothing(scored: Evaluation) -> None:
    scored.items.filter(group="latents", source="agent", position__gt=0, unit__number=0).update(
        label="", status=ItemStatus.LACKING, scores={}
    )
    result = latents.EVALUATION_TYPE.summarise(scored, list(scored.items.select_related("unit__layer")))
    found = {figure.key: figure for figure in result.figures}
    assert (found["four.pearson"].value, found["four.pearson"].n) == (pytest.approx((0 + 0.8 + 0.7) / 3), 3)
    assert found["four.choice"].value == pytest.approx((0.5 + 0.9 + 0.85) / 3)


def test_the_front_is_drawn_and_who_lies_behind_it_is_not_joined(scored: Evaluation) -> None:
    result = latents.EVALUATION_TYPE.summarise(scored, list(scored.items.select_related("unit__layer")))
    front = next(plot for plot in result.plots if plot.key == "front")
    names = {series.name: [point.label for point in series.points] for series in front.series}
    assert names == {"On the front": ["Neurons", "Latents, k 4"], "Behind it": ["Latents, k 16"]}
    drawn = draw_result(front, lambda _: "")
    assert drawn is not None
    assert len(drawn.plot.paths) == 1


def test_preferences_are_told_apart_by_model_and_stand_beside_the_claims(scored: Evaluation, client: Client) -> None:
    trial = PairwiseTrial.objects.create(
        name="Two", owner=scored.owner, sources=["agent", "one-shot", SPARSE], evaluation=scored, judges_wanted=0
    )
    judge = Judge.objects.create(trial=trial, backbone="openai", backbone_model="gpt-4o")
    for place_, (model, one, other, answer) in enumerate(
        (
            ("toybox", "agent", "one-shot", "b"),
            ("toybox", "agent", SPARSE, "b"),
            (SPARSE, "agent", "one-shot", "a"),
        ),
        1,
    ):
        pair = Pair.objects.create(
            trial=trial,
            position=place_,
            unit_name=f"{model} / layer4 / unit 0",
            source_a=one,
            source_b=other,
            text_a="x",
            text_b="y",
        )
        Vote.objects.create(judge=judge, pair=pair, answer=answer, swapped=False)
    PairwiseTrial.objects.update(closed=scored.created)
    figures = {figure.key: (figure.value, figure.n) for figure in read_result(scored).figures}
    assert figures == {
        "two_way.toybox.agent-one-shot": (0.0, 1),
        f"two_way.toybox.agent-{SPARSE}": (0.0, 1),
        f"two_way.{SPARSE}.agent-one-shot": (1.0, 1),
    }
    result = latents.EVALUATION_TYPE.summarise(scored, list(scored.items.select_related("unit__layer")))
    claims = next(table for table in result.tables if table.key == "claims")
    shares = {row[0].text: row[1].value for row in claims.rows if not row[0].weak}
    assert shares[f"By its latent of {SPARSE} over agent, on toybox, by gpt-4o"] == 1.0
    client.force_login(scored.owner)
    page = client.get(scored.get_absolute_url()).content.decode()
    assert f"Agent over one-shot labeller, on {SPARSE}" in page


@pytest.mark.more
@pytest.mark.usefixtures("autoencoders")
def test_one_command_labels_checks_and_compares() -> None:
    out, told = StringIO(), StringIO()
    call_command(
        *("evaluate", "latents", "--autoencoders", "four", "--units", "1", "--seed", "1", "--json"),
        stdout=out,
        stderr=told,
    )
    found = json.loads(out.getvalue().splitlines()[-1])
    assert found["items"]["failed"] == 0
    assert found["items"]["of"] in (5, 6), "the latent of the neuron may be the one that was drawn"
    for side in ("neurons", "four"):
        assert 0 <= found[side]["choice"]["value"] <= 1
        assert found[side]["pearson"]["n"] == 1
    assert found["difference"]["four"]["pearson"]["n"] == 2
    assert "absence of evidence" in told.getvalue().casefold()
