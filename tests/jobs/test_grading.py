"""A label tested while its run goes on, in the real laboratory: a neuron with two causes, and an agent that names one
of them at first."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from experiments.core.system_names import SystemNameMasker
from experiments.display.label_checks import describe_check, read_check
from experiments.label_checks.requests import request_check_of
from experiments.models import CheckStatus, LabelCheck, Run
from experiments.models.evaluation import DEVELOPMENT, PROBE
from experiments.units.bands import find_bands
from tests.support.builders import make_run
from tests.support.tiny_run import Seeing, here, kinds, play
from workers import registry
from workers.jobs import catalogue
from workers.jobs.label_checks.check import run_check
from workers.protocols import no_progress

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("on_toybox", "no_redis")]
MODEL = "synthetic:toybox-eyes"
ONE = "[DESCRIPTION]: It responds to balls.\n[LABEL]: balls"
WORDED = "[DESCRIPTION]: It responds to balls.\n[LABEL]: round balls"
BOTH = "[DESCRIPTION]: It responds to balls and to cones.\n[LABEL]: balls\n[LABEL 2]: cones"


@pytest.fixture(autouse=True)
def written(monkeypatch: pytest.MonkeyPatch) -> None:
    tiny = {"tiny": ("Tiny agent", "tests.support.tiny_run.load_backbone")}
    monkeypatch.setattr(registry, "BACKBONES", registry.BACKBONES | tiny)


def asked(owner: User, backbone: Seeing, layer: str, reflections: int = 2) -> Run:
    catalogue.look_at_model(MODEL)
    here["backbone"] = backbone
    options = {"reflections": reflections, "label_check": False}
    what = {"system_kind": "synthetic", "model": MODEL, "layer": layer, "unit": 0, "toolset": "toybox"}
    return make_run(owner, **what, backbone="tiny", options=options)


def test_a_label_that_misses_a_second_cause_goes_back_and_the_better_one_passes(owner: User) -> None:
    backbone = Seeing(WORDED, BOTH)
    run = play(asked(owner, backbone, "or"))
    assert kinds(run) == ["started", "reply", "graded", "reply", "graded", "concluded"]
    first, second = (each.content for each in run.events.filter(kind="graded").order_by("seq"))
    assert (first.label, first.passed, first.left) == ("round balls", False, 1)
    assert first.generated_auc >= 0.9  # only natural images tell that there is more
    assert (first.direction, second.direction) == ("too narrow", "")
    assert first.pearson < first.needed["pearson"] < first.reachable
    assert second.pearson >= second.needed["pearson"]
    assert len({each.title for each in first.images}) == len(first.images)  # one image of each prompt
    assert {each.origin for each in first.images} == {"generated"}  # natural ones are to test the next label
    assert second.passed
    assert "failed: round balls\nRead as “balls”." in backbone.heard[-1].text
    assert run.conclusion["labels"] == ["balls", "cones"]
    assert run.rounds == 2


def test_an_easy_label_passes_at_once(owner: User) -> None:
    run = play(asked(owner, Seeing(ONE), "mono"))
    assert kinds(run) == ["started", "reply", "graded", "concluded"]
    assert run.events.get(kind="graded").content.passed


def test_a_label_that_cannot_be_tested_goes_back_once_and_the_second_one_concludes(owner: User) -> None:
    vague = "[DESCRIPTION]: Various things drive it.\n[LABEL]: various things"
    backbone = Seeing(vague, vague)
    run = play(asked(owner, backbone, "mono", reflections=1))
    assert kinds(run) == ["started", "reply", "graded", "reply", "graded", "concluded"]
    first, second = (each.content for each in run.events.filter(kind="graded").order_by("seq"))
    assert (first.goes_back, second.goes_back, first.left, first.direction) == (True, False, 1, "not readable")
    assert "various things" in second.reason
    assert "various things" in backbone.heard[-1].text
    assert run.status == "concluded"


def test_the_same_label_is_measured_once(owner: User) -> None:
    play(asked(owner, Seeing(ONE), "mono"))
    play(asked(owner, Seeing(ONE), "mono"))
    assert [each.status for each in LabelCheck.objects.all()] == [CheckStatus.DONE]


def images_of(check: LabelCheck) -> set[str]:
    """All images that are kept of a check."""
    found = read_check(check)
    assert found.natural
    assert found.generated
    groups = (found.natural.bright_without, found.natural.dark_with, found.generated.positive, found.generated.neutral)
    return {each.image for group in groups for each in group}


def test_what_is_reported_rests_on_other_images_than_what_the_agent_was_told(owner: User) -> None:
    run = play(asked(owner, Seeing(WORDED, BOTH), "or"))
    assert {each.split for each in LabelCheck.objects.all()} == {DEVELOPMENT}
    layer = LabelCheck.objects.all()[0].unit.layer
    assert find_bands(layer.model, [layer], SystemNameMasker(owner))[layer.pk] == {}  # tried is not yet checked
    reported = request_check_of(run, enqueue=False)
    assert reported
    assert reported.split == PROBE
    run_check(reported.pk, no_progress)
    reported.refresh_from_db()
    tried = LabelCheck.objects.get(text=reported.text, split=DEVELOPMENT)
    assert reported.pearson
    assert tried.pearson
    assert reported.pearson != tried.pearson
    assert not images_of(reported) & images_of(tried)
    assert (describe_check(reported).note, describe_check(tried).note) == ("", "development")
    assert len(find_bands(layer.model, [layer], SystemNameMasker(owner))[layer.pk]) == 1
