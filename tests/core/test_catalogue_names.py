"""What a run names is looked up where a worker claims it and where a person has it go on, whoever made its row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from experiments.core import transcript
from experiments.core.actors import Actor
from experiments.core.errors import ActionRefused
from experiments.models import Backbone, Dataset, Layer, Run, VisionModelRow
from experiments.runs.steering import actions
from tests.support.tiny_run import CONCLUSION, Seeing, install, kinds, play, tiny_run
from workers.record.events import Ended

pytestmark = [pytest.mark.usefixtures("redis_url"), pytest.mark.django_db(transaction=True)]

UNKNOWN = [
    ({"options": {"dataset": "folder:/etc"}}, "There is no dataset “folder:/etc”."),
    ({"model": "hf:somebody/anything"}, "There is no model “hf:somebody/anything”."),
    ({"model": "clip-rn50:/etc/passwd"}, "There is no model “clip-rn50:/etc/passwd”."),
    ({"system_kind": "odd"}, "There is no system “odd”."),
    ({"toolset": "odd"}, "There is no toolset “odd”."),
    ({"task": "odd"}, "There is no task “odd”."),
    ({"backbone": "odd"}, "There is no backbone “odd”."),
    ({"backbone_model": "../../x"}, "The model “../../x” is not offered here"),
]


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path) -> None:
    install(monkeypatch, settings, tmp_path)


def named(owner: User, fields: dict[str, Any]) -> Run:
    run = tiny_run(owner, Seeing(CONCLUSION))
    Run.objects.filter(pk=run.pk).update(**fields)
    return Run.objects.get(pk=run.pk)


@pytest.mark.parametrize(("fields", "says"), UNKNOWN)
def test_a_worker_does_nothing_for_a_run_that_names_what_is_not_here(
    owner: User, fields: dict[str, Any], says: str
) -> None:
    run = play(named(owner, fields))
    assert (run.status, kinds(run)) == ("failed", ["failed"])
    assert says in run.reason


@pytest.mark.parametrize(("fields", "says"), UNKNOWN)
def test_a_run_that_names_what_is_not_here_does_not_go_on(owner: User, fields: dict[str, Any], says: str) -> None:
    Backbone.objects.create(key="tiny", available=True)
    run = named(owner, fields)
    transcript.append(run.pk, "cancelled", Ended("Stopped."))
    with pytest.raises(ActionRefused) as caught:
        actions.resume(Actor(owner), run.pk)
    assert says in str(caught.value)
    assert kinds(run) == ["cancelled"]


def test_a_run_does_not_go_on_with_a_model_of_a_backbone_that_cannot_be_used(owner: User) -> None:
    row = Backbone.objects.create(key="tiny", available=False, remedy="Set OPENAI_API_KEY.")
    run = named(owner, {"backbone_model": "of-somebody-else"})
    transcript.append(run.pk, "cancelled", Ended("Stopped."))
    with pytest.raises(
        ActionRefused, match=r"“tiny” cannot be used here yet.*“of-somebody-else”\. Set OPENAI_API_KEY\."
    ):
        actions.resume(Actor(owner), run.pk)
    assert kinds(run) == ["cancelled"]
    Backbone.objects.filter(pk=row.pk).update(available=True, model_names=["ours"])
    with pytest.raises(ActionRefused, match="“of-somebody-else” is not offered here"):
        actions.resume(Actor(owner), run.pk)
    Backbone.objects.filter(pk=row.pk).update(model_names=["of-somebody-else"])
    assert actions.resume(Actor(owner), run.pk)


def test_what_an_admin_added_may_be_named(owner: User) -> None:
    model = VisionModelRow.objects.create(name="tiny")
    Layer.objects.create(model=model, name="patches", path="patches", position=1, kind="conv", units=8)
    Dataset.objects.create(key="folder:/data/birds")
    run = named(owner, {"options": {"dataset": "folder:/data/birds"}})
    transcript.append(run.pk, "cancelled", Ended("Stopped."))
    assert actions.resume(Actor(owner), run.pk)


def test_units_and_kinds_of_a_layer_are_those_of_the_catalogue(owner: User) -> None:
    model = VisionModelRow.objects.create(name="tiny")
    Layer.objects.create(model=model, name="patches", path="patches", position=1, kind="conv", units=2)
    for fields, says in (
        ({"layer": "odd"}, "tiny has no layer “odd”"),
        ({"unit": 2}, "There is no unit 2"),
        ({"system_kind": "logit"}, "is studied as “unit”"),
    ):
        assert says in play(named(owner, fields)).reason
