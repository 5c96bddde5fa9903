"""Fuzzing in label checks: parts where a unit of a network responds, asked of toybox's judge and of a model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from experiments.label_checks.requests import BACKBONE, CheckMethod, choose_method, request_check
from experiments.models import CheckStatus, LabelCheck
from tests.support.provider import Provider, says
from tests.support.synthetic_units import unit
from workers.jobs import laboratory as place
from workers.jobs.label_checks.check import run_check
from workers.jobs.label_checks.parts import BACKBONE_PARTS
from workers.metrics import presence
from workers.metrics.detection_sample import MIN_IMAGES
from workers.protocols import no_progress
from workers.record.label_checks import CheckResult

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("on_toybox", "no_redis")]
SEEN = "\n".join(f"IMAGE {n}: {90 if n % 3 else 5} %" for n in range(1, 9))


@pytest.fixture
def provider(settings: Any, tmp_path: Path) -> Iterator[Provider]:
    place.build_laboratory.cache_clear()
    with Provider(says(SEEN)) as server:
        settings.OPENAI_API_KEY, settings.OPENAI_BASE_URL = "key", server.url
        settings.OPENAI_MODELS, settings.OPENAI_PRICES = ["gpt-4o"], tmp_path / "prices.toml"
        yield server
    place.build_laboratory.cache_clear()


def measure(row: LabelCheck) -> LabelCheck:
    run_check(row.pk, no_progress)
    row.refresh_from_db()
    return row


def check(text: str) -> LabelCheck:
    return measure(request_check(unit(1, "layer4", "toybox"), text, choose_method("toybox", "scripted"), enqueue=False))


def test_fuzzing_tells_where_a_unit_of_a_network_responds() -> None:
    results = [
        msgspec.convert(check(text).result, CheckResult).natural for text in ("stars", "trees", "scenes on snow")
    ]
    own, foreign, ground = (
        each.other_tests.fuzzing for each in results if each is not None and each.other_tests is not None
    )
    assert own is not None
    assert foreign is not None
    assert ground is not None
    assert own.balanced_accuracy.n >= 2 * MIN_IMAGES
    assert own.balanced_accuracy.value is not None
    assert foreign.balanced_accuracy.value is not None
    assert own.balanced_accuracy.value > foreign.balanced_accuracy.value + 0.1
    assert own.cover is not None
    assert 0 < own.cover < 0.4
    assert "ground or light alone" in ground.balanced_accuracy.why
    assert not own.dimmed


def test_a_model_is_asked_about_parts_once_and_told_what_counts(provider: Provider) -> None:
    asked = CheckMethod("toybox", "toybox", BACKBONE, BACKBONE, "openai", "gpt-4o")
    row = measure(request_check(unit(1, "layer4", "toybox"), "stars", asked, enqueue=False))
    about_parts = [body for body in provider.asked if "red line" in json.dumps(body["messages"])]
    parts = row.kept["parts"]
    assert 2 * MIN_IMAGES <= len(parts) <= 2 * BACKBONE_PARTS
    assert len(about_parts) == -(-len(parts) // presence.MAX_IMAGES)
    assert len({name.split()[0] for name in parts}) == len(parts), "each image once"
    provider.asked.clear()
    LabelCheck.objects.filter(pk=row.pk).update(status=CheckStatus.QUEUED)
    measure(row)
    assert not any("red line" in json.dumps(body["messages"]) for body in provider.asked)
