"""Whether a label names the truth: by words where all are known, elsewhere by a language model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.contrib.auth import get_user_model

from experiments.models import Evaluation, EvaluationItem, Layer, Unit, VisionModelRow
from tests.support.provider import Provider, says
from workers.jobs import laboratory as place
from workers.jobs.evaluations.budget import total_cost
from workers.jobs.evaluations.truth import score_truth
from workers.protocols import no_progress

pytestmark = pytest.mark.django_db
DETECTED = "synthetic:grounding-dino"


def item(label: str, truth: str, model: str = DETECTED, backbone: str = "openai") -> EvaluationItem:
    """An item whose label is there."""
    owner = get_user_model().objects.create(username="owner")
    evaluation = Evaluation.objects.create(
        kind="synthetic", name="Neurons", owner=owner, backbone=backbone, backbone_model="gpt-4o", unpriced=True
    )
    row = VisionModelRow.objects.create(name=model)
    layer = Layer.objects.create(model=row, name="mono", kind="concept", units=1, position=0, names=[truth])
    unit = Unit.objects.create(layer=layer, number=0)
    return EvaluationItem.objects.create(
        evaluation=evaluation, position=1, group="mono", source="agent", unit=unit, unit_name="neuron", label=label
    )


@pytest.mark.parametrize(
    ("reply", "right", "agreement"),
    [
        ("The same animal.\nANSWER: SAME", True, "same"),
        ("ANSWER: PARTLY", False, "partly"),
        ("I would rather not say.", False, "unread"),
    ],
)
def test_what_words_do_not_decide_a_language_model_does(
    reply: str, right: bool, agreement: str, settings, tmp_path: Path
) -> None:
    place.build_laboratory.cache_clear()
    asked = item("young hounds", "dog")
    with Provider(says(reply)) as provider:
        settings.OPENAI_API_KEY, settings.OPENAI_BASE_URL = "key", provider.url
        settings.OPENAI_MODELS, settings.OPENAI_PRICES = ["gpt-4o"], tmp_path / "prices.toml"
        score_truth(asked.evaluation, asked, no_progress)
    assert (asked.scores["right"], asked.scores["agreement"]) == (right, agreement)
    question = json.dumps(provider.asked[0]["messages"])
    assert "young hounds" in question
    assert "dog" in question
    asked.save()
    assert total_cost(asked.evaluation) == asked.scores["cost"]
    place.build_laboratory.cache_clear()


@pytest.mark.parametrize(
    ("label", "truth", "model", "backbone", "right"),
    [
        ("dogs", "dog", DETECTED, "openai", True),  # its words say so: nobody is asked
        ("a boat", "ball", "synthetic:toybox-eyes", "openai", False),
        ("young hounds", "dog", DETECTED, "scripted", False),
        ("", "dog", DETECTED, "openai", False),
    ],
)
def test_nobody_is_asked_where_words_decide(label: str, truth: str, model: str, backbone: str, right: bool) -> None:
    asked = item(label, truth, model, backbone)
    score_truth(asked.evaluation, asked, no_progress)
    assert asked.scores["right"] is right
    assert "agreement" not in asked.scores
