"""The demo: its scenes leave alone what is there, times move back together, and strangers' installations are refused.

What workers play is made up here; `test_demo_whole.py` has it played.
"""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError
from django.utils import timezone

from experiments.core import transcript
from experiments.management.demo import asking, filling, judging
from experiments.management.demo.diary import Diary, day_before, move_back
from experiments.management.demo.team import Team, admit_team
from experiments.models import (
    AuditEntry,
    Backbone,
    Comment,
    Dataset,
    Event,
    LabelCheck,
    Layer,
    Member,
    Notification,
    Review,
    ReviewQueue,
    Role,
    Run,
    Share,
    Study,
    Unit,
    VisionModelRow,
)
from tests.support.builders import make_run, started

pytestmark = pytest.mark.django_db


@pytest.fixture
def team(owner: User) -> Team:
    Member.objects.filter(user=owner).update(role=Role.ADMIN)
    return admit_team(owner, lambda: None, small=False)


@pytest.fixture
def catalogue() -> None:
    model = VisionModelRow.objects.create(name=asking.TOYBOX, available=True)
    for place, (name, kind) in enumerate((("layer3", "conv"), ("layer4", "conv"), ("logits", "logit"))):
        Layer.objects.create(model=model, position=place, name=name, path=name, kind=kind, units=96)
    Dataset.objects.create(key="toybox", label="Toybox", images=3000, available=True)
    Backbone.objects.create(key="scripted", label="Scripted scientist", available=True)


@pytest.fixture
def answered(team: Team, catalogue: None) -> list[Run]:
    """Runs of the researcher's that concluded, each with a check."""
    layer = Layer.objects.get(name="layer4")
    runs = []
    for number, r in enumerate((0.9, 0.6, 0.2), 1):
        unit = Unit.objects.create(layer=layer, number=number)
        check = LabelCheck.objects.create(
            key=f"{number:064}", unit=unit, text="red balls", options={}, pearson=r, status="done"
        )
        conclusion = {"labels": ["red balls"], "description": "Red balls."}
        fields = {"unit": number, "conclusion": conclusion, "label_check": check, "status": "concluded"}
        runs.append(make_run(team.researcher.person, **fields))
        runs[-1].label_set.create(text="red balls", source="run").units.add(unit)
    return runs


def test_the_team_is_there_once(team: Team, owner: User) -> None:
    again = admit_team(owner, lambda: None, small=False)
    assert again.reviewer.person == team.reviewer.person
    assert Member.objects.count() == 5
    assert {actor.role for actor in team.reviewers} == {Role.REVIEWER}


def test_scenes_of_asking_ask_once(team: Team, catalogue: None) -> None:
    for _ in range(2):
        asking.ask_units(team)
        asking.ask_classes(team)
        asking.sweep_layer(team)
    assert Run.objects.count() == len(asking.UNITS) + len(asking.CLASSES)
    assert set(Run.objects.values_list("status", flat=True)) == {"queued"}
    assert {run.task for run in Run.objects.filter(owner=team.second_researcher.person)} == {"bias", "spurious"}


def test_scenes_of_judging_judge_once_and_agree_in_part(team: Team, answered: list[Run]) -> None:
    for _ in range(2):
        judging.review_units(team)
        judging.share_run(team)
        judging.publish_study(team)
    queue = ReviewQueue.objects.get()
    assert queue.items.filter(complete=True).count() == len(answered)
    assert Review.objects.filter(state="submitted").count() == 3 * len(answered)
    assert len(set(Review.objects.values_list("verdict", flat=True))) > 1
    assert Review.objects.exclude(corrected_label="").exists()
    assert (Comment.objects.count(), Share.objects.count()) == (2, 1)
    assert Study.objects.get().items.count() == len(answered) + 1
    assert Share.objects.get().run_id == answered[0].pk, "the one whose label held best"
    assert Notification.objects.filter(user=team.second_reviewer.person, kind="mention").count() == 1


def test_times_move_back_together_and_the_audit_stays(team: Team, owner: User) -> None:
    before = make_run(owner, created=timezone.now() - timedelta(days=1))
    began, audited = timezone.now(), list(AuditEntry.objects.values_list("pk", "time"))
    run = make_run(owner)
    transcript.append(run.pk, "started", started())
    passed = Event.objects.get(run=run).time - run.created
    ending = day_before(3, 10)
    move_back(began, ending)
    moved, kept = Run.objects.get(pk=run.pk), Run.objects.get(pk=before.pk)
    assert abs(moved.created - ending) < timedelta(minutes=5)
    assert Event.objects.get(run=run).time - moved.created == passed
    assert kept.created == before.created
    assert list(AuditEntry.objects.values_list("pk", "time")) == audited


def test_the_diary_knows_when_a_broken_off_scene_began_and_which_are_over(tmp_path: Path) -> None:
    assert not Diary(tmp_path).is_there
    began = Diary(tmp_path).begin("one")
    again = Diary(tmp_path)
    assert again.begin("one") == began
    again.end("one")
    assert Diary(tmp_path).over == ["one"]
    assert json.loads((tmp_path / "demo.json").read_text())["over"] == ["one"]


def test_an_installation_that_holds_other_runs_is_told_from_a_demo(owner: User, tmp_path: Path) -> None:
    assert not filling.holds_other_things(tmp_path)
    make_run(owner)
    assert filling.holds_other_things(tmp_path)
    Diary(tmp_path).write()
    assert not filling.holds_other_things(tmp_path)


def test_refusing_says_what_would_help(owner: User, settings: object, tmp_path: Path) -> None:
    from experiments.management.commands.demo import refuse_other_things

    make_run(owner)
    with pytest.raises(CommandError, match="--into-filled"):
        refuse_other_things(tmp_path)
