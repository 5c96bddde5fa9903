"""From a dataset to the table, small: training that goes on where it was stopped, the classifier as a model, scores."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from workers import registry
from workers.errors import Cancelled, MissingPart, RequestError, UnknownName
from workers.lab.laboratory import Laboratory
from workers.protocols import LabSettings
from workers.spurious.evaluation import SpuriousSpec, prepare, repair, score
from workers.spurious.regression import fit
from workers.spurious.training import choose_recipe, train_classifier

SMALL = SpuriousSpec("toybox-grounds:seed-{seed}-of-240", units=8)


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    return LabSettings(tmp_path_factory.mktemp("state"), words_per_second=0)


@pytest.fixture(scope="module")
def prepared(settings):
    return prepare(settings, SMALL, 0)


def test_units_are_chosen_and_a_second_call_measures_nothing_again(settings, prepared):
    seen = []
    again = prepare(settings, SMALL, 0, lambda what, _done, _total: seen.append(what))
    assert again.units == prepared.units
    assert 0 < len(prepared.units) <= 10
    assert not [what for what in seen if "training" in what or "measuring" in what]


def test_the_question_names_classes_and_settings_but_not_how_they_were_dealt(prepared):
    question = prepared.question(prepared.units[0])
    assert "car, train, boat, duck" in question
    assert "grass, sand, snow, wood" in question
    assert "tiles" not in question


def test_the_classifier_is_a_model_whose_units_have_exemplars_of_the_biased_data(settings, prepared):
    laboratory = Laboratory(settings)
    unit = prepared.units[0]
    subject = laboratory.subject(prepared.system(unit))
    exemplars = subject.exemplars()
    assert exemplars
    assert subject.respond([exemplars[0].picture.image])[0].activation == pytest.approx(exemplars[0].activation)
    layers = {layer.name: layer.units for layer in laboratory.layers(prepared.model)}
    assert layers == {"features": 128, "logits": 4}
    validation = registry.load(registry.DATASETS, prepared.dataset)(settings)
    values = prepared.splits.validation.values[:, unit]
    assert exemplars[0].activation == pytest.approx(values.max(), rel=1e-5)
    assert exemplars[0].index == int(values.argmax())
    assert len(validation) == len(values)


def test_the_head_and_the_features_give_the_logits(settings, prepared):
    model = Laboratory(settings).model(prepared.model)
    images = [registry.load(registry.DATASETS, prepared.dataset)(settings)[at].image for at in range(3)]
    weights, bias = model.read_head()
    logits = model.maps(images, ["logits"])["logits"][:, :, 0, 0].numpy()
    assert logits == pytest.approx(model.read_features(images) @ weights.T + bias, abs=1e-4)
    shares, maps = model.evidence(images, 1)
    assert shares == pytest.approx(np.exp(logits[:, 1]) / np.exp(logits).sum(1), rel=1e-4)
    assert maps.shape == (3, 12, 12)
    with pytest.raises(UnknownName, match="no class 4"):
        model.evidence(images, 4)


def test_verdicts_become_a_table_and_units_without_one_are_unfinished(prepared):
    first, second, *rest = prepared.units
    table = score(prepared, {first: True, second: False})
    assert table.selective == (first,)
    assert table.unfinished == tuple(rest)
    assert table.row("agent", regularised=False).units == 1
    assert repair(prepared, {first: True, second: False}).units == (second,)


@pytest.mark.more
def test_a_training_that_was_stopped_goes_on_and_ends_the_same(settings, tmp_path):
    dataset = registry.load(registry.DATASETS, "toybox-grounds:seed-1-of-160:train")(settings)

    def stop_in_second_epoch(what, done, total):
        if what == "training the classifier" and done > total // 2:
            raise Cancelled

    stopped, whole = LabSettings(tmp_path / "stopped"), LabSettings(tmp_path / "whole")
    with pytest.raises(Cancelled):
        train_classifier(stopped, dataset, 0, stop_in_second_epoch)
    steps = []
    name = train_classifier(stopped, dataset, 0, lambda what, done, _total: steps.append((what, done)))
    assert min(done for what, done in steps if what == "training the classifier") > 0
    assert train_classifier(whole, dataset, 0) == name
    files = [each.state / "classifiers" / f"{name}.safetensors" for each in (stopped, whole)]
    stopped_weights, whole_weights = map(load_file, files)
    torch.testing.assert_close(stopped_weights, whole_weights, atol=1e-4, rtol=1e-3)  # threads sum in any order
    assert "toybox-grounds-seed-1-of-160" in name
    assert not list(files[0].parent.glob("*.checkpoint"))


def test_weights_that_do_not_fit_are_refused_by_name(settings, tmp_path):
    dataset = registry.load(registry.DATASETS, "toybox-grounds:seed-0-of-240:train")(settings)
    wrong = tmp_path / "wrong.safetensors"
    wrong.write_bytes(b"nothing")
    with pytest.raises(MissingPart, match=r"wrong\.safetensors cannot be read"):
        train_classifier(LabSettings(tmp_path), dataset, 0, recipe=choose_recipe(dataset, str(wrong)))


def test_a_classifier_that_was_never_trained_is_missing(settings):
    with pytest.raises(MissingPart, match="no classifier 'nobody' yet"):
        registry.load(registry.VISION_MODELS, "classifier:nobody")(settings)
    with pytest.raises(UnknownName, match="no name"):
        registry.load(registry.VISION_MODELS, "classifier:../../etc")(settings)


@pytest.fixture(scope="module")
def of_latents(settings, prepared):
    return prepare(settings, replace(SMALL, latents=32), 0)


@pytest.mark.more
def test_latents_take_the_place_of_units_but_for_the_classifiers_own_head(settings, prepared, of_latents):
    assert of_latents.model == prepared.model
    assert of_latents.studied.startswith("sae:")
    assert of_latents.splits.test.values.shape == (len(prepared.splits.test), 32)
    assert of_latents.fixed.rows[0] == prepared.fixed.rows[0]
    seen = []
    again = prepare(settings, replace(SMALL, latents=32), 0, lambda what, _done, _total: seen.append(what))
    assert (again.units, again.card) == (of_latents.units, of_latents.card)
    assert not [what for what in seen if "raining" in what or "easuring" in what]


@pytest.mark.more
def test_a_latent_is_studied_as_its_activation_in_the_biased_data(settings, of_latents):
    latent = of_latents.units[0]
    spec = of_latents.system(latent)
    assert (spec.kind, spec.model, spec.layer) == ("latent", of_latents.studied, "features")
    best = Laboratory(settings).subject(spec).exemplars()[0]
    values = of_latents.splits.validation.values[:, latent]
    assert best.activation == pytest.approx(values.max(), rel=1e-4)
    assert best.index == int(values.argmax())
    assert f"Is latent {latent} of a sparse auto-encoder of its features selective" in of_latents.question(latent)


@pytest.mark.more
def test_rows_of_latents_say_so_and_are_fitted_on_them(of_latents):
    first, second, *_ = of_latents.units
    table = score(of_latents, {first: True, second: True})
    assert table.selective == (first, second)
    agent = table.row("agent", regularised=False)
    assert (agent.units, agent.title) == (2, "The agent's selective latents")
    validation, test = of_latents.splits.validation, of_latents.splits.test
    found = fit(validation.values, validation.classes, [first, second]).predict(test.values)
    assert agent.accuracy == pytest.approx(float((found == test.classes).mean()))


@pytest.mark.parametrize(("latents", "why"), [(1, "1 latents cannot"), (100_000, "100,000 latents cannot")])
def test_numbers_of_latents_that_make_no_sense_are_refused(settings, latents, why):
    with pytest.raises(RequestError, match=why):
        prepare(settings, replace(SMALL, latents=latents), 0)


@pytest.mark.more
def test_too_few_images_for_latents_are_told_by_number(settings):
    few = replace(settings, dataset_images=80)
    with pytest.raises(RequestError, match="has 80 images; at least 100 are needed"):
        prepare(few, replace(SMALL, latents=32), 0)
