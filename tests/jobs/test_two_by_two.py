"""A model judges an evaluation's labels two by two, and people write a quarter of them: on the real laboratory."""

from __future__ import annotations

import json
import re
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from PIL.Image import Image

from experiments.core.actors import Actor
from experiments.core.errors import StateConflict
from experiments.core.system_names import SystemNameMasker
from experiments.evaluations import actions, lists
from experiments.evaluations.results import read_result
from experiments.models import (
    Evaluation,
    EvaluationItem,
    ItemStatus,
    Job,
    Judge,
    Label,
    PairKind,
    PairwiseTrial,
    Run,
    Unit,
    Vote,
)
from tests.support.people import member
from tests.support.provider import Provider, says
from workers.jobs import catalogue
from workers.jobs import laboratory as place
from workers.jobs.evaluations.budget import total_cost
from workers.jobs.evaluations.engine import evaluate
from workers.metrics import two_way
from workers.protocols import no_progress
from workers.toybox.scientist.backbone import ScriptedScientist

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("on_toybox", "no_redis")]
MODEL = "synthetic:toybox-eyes"
SAID = {"milan": ("balls", "anything"), "dissect": ("red balls", "cubes")}


@pytest.fixture
def imported() -> list[Unit]:
    """A ball and a cube, each labelled by two files: of the first one is right, of the second the other."""
    layer = catalogue.look_at_model(MODEL).layers.get(name="mono")
    units = [Unit.objects.create(layer=layer, number=layer.names.index(name)) for name in ("ball", "cube")]
    for source, texts in SAID.items():
        for unit, text in zip(units, texts, strict=True):
            Label.objects.create(text=text, source=source).units.add(unit)
    return units


@pytest.fixture
def evaluation(imported: list[Unit], owner: User) -> Evaluation:
    """Of synthetic neurons: two sources have labelled two units, and the scripted scientist is to judge."""
    job = Job.objects.create(kind="evaluation", subject="two", asked_by=owner)
    options: Any = {"judge": "scripted", "sources": ["import:milan", "import:dissect"]}
    row = Evaluation.objects.create(
        kind="synthetic", name="Two", owner=owner, backbone="scripted", planned=True, job=job, options=options
    )
    said = [(source, unit, text) for source, texts in SAID.items() for unit, text in zip(imported, texts, strict=True)]
    for position, (source, unit, text) in enumerate(said, 1):
        known = {"source": f"import:{source}", "label": text, "status": ItemStatus.DONE}
        row.items.create(position=position, group="mono", unit=unit, unit_name=str(unit), **known)
    return row


def go_on(evaluation: Evaluation) -> str:
    found = evaluate(Job.objects.get(pk=evaluation.job_id or 0), no_progress)
    Job.objects.update(status="done")
    evaluation.refresh_from_db()
    return found


# --- the judge ---


def _load(key: str) -> Image:
    raise AssertionError(f"It looked at {key}.")


@pytest.mark.parametrize(
    ("first", "second", "truth", "answer"),
    [
        ("balls", "red balls", "ball", "first"),
        ("things", "spheres", "ball", "second"),
        ("ball", "a cone or ball", "ball or cone", "second"),
        ("cones", "cars", "ball", "neither"),
        ("ball beside a cone", "ball or cone", "ball or cone", "second"),
        ("a “ball”", "Label B: cone", "ball", "first"),
    ],
)
def test_the_scripted_judge_prefers_what_is_nearer_to_the_truth(
    first: str, second: str, truth: str, answer: str
) -> None:
    scientist = ScriptedScientist(0)
    said = scientist.reply(two_way.build_question(first, second, [], truth), _load, lambda _: None, 0)
    assert two_way.parse_answer(said.text) == answer
    unseen = two_way.build_question(first, second, [("a" * 64, "b" * 64)])
    blind = scientist.reply(unseen, _load, lambda _: None, 0)
    assert two_way.parse_answer(blind.text) == "neither"


def test_a_judge_compares_once_all_items_are_done_and_its_trial_is_closed(evaluation: Evaluation) -> None:
    assert go_on(evaluation) == "Done: 4 of 4 items."
    trial = PairwiseTrial.objects.get()
    assert (trial.evaluation, trial.judges_wanted, trial.closed is not None) == (evaluation, 0, True)
    judge = Judge.objects.get()
    assert judge.backbone == "scripted"
    plain = Vote.objects.filter(pair__kind=PairKind.PLAIN)
    chosen = {vote.pair.truth: vote.pair.text_a if vote.answer == "a" else vote.pair.text_b for vote in plain}
    assert chosen == {"ball": "balls", "cube": "cubes"}
    assert go_on(evaluation) == "Done: 4 of 4 items."
    assert Vote.objects.count() == plain.count() == 2  # nothing is judged twice


def test_one_command_evaluates_and_judges() -> None:
    layer = catalogue.look_at_model(MODEL).layers.get(name="mono")
    for number, name in enumerate(layer.names):
        unit = Unit.objects.create(layer=layer, number=number)
        for source, text in (("milan", name), ("dissect", "red things")):
            Label.objects.create(text=text, source=source).units.add(unit)
    out, asked = StringIO(), ("--source", "import:milan", "import:dissect", "shuffled", "--json")
    with pytest.raises(CommandError, match="'person' cannot judge"):
        call_command("evaluate", "synthetic", "--judge", "person", stdout=out)
    with pytest.raises(CommandError, match="'scripted' cannot judge"):
        call_command("evaluate", "units", "--judge", "scripted", stdout=out)
    command = ("evaluate", "synthetic", "--model", MODEL, "--units", "2", "--judge", "scripted", *asked)
    call_command(*command, stdout=out, stderr=StringIO())
    told = json.loads(out.getvalue().splitlines()[-1])
    (share,) = told["two_way"].values()
    assert (list(told["two_way"]), share["value"], share["n"]) == (["import:milan-import:dissect"], 1.0, 1)
    assert share["low"] == pytest.approx(0.2065, abs=1e-3)  # Wilson, 1 of 1
    assert share["high"] == pytest.approx(1.0)


def test_a_judge_that_costs_counts_for_the_budget_and_goes_on(
    evaluation: Evaluation, settings: Any, tmp_path: Path
) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text('[models]\n"gpt-4o" = { prompt = 1000, completion = 0 }\n')
    with Provider(says("ANSWER: A", usage=(1000, 10))) as server:
        settings.OPENAI_API_KEY, settings.OPENAI_BASE_URL = "key", server.url
        settings.OPENAI_MODELS, settings.OPENAI_PRICES = ["gpt-4o"], prices
        place.build_laboratory.cache_clear()
        evaluation.options = {**evaluation.options, "judge": "openai:gpt-4o"}
        evaluation.cost_limit = 0.5
        evaluation.save()
        assert "Its budget of $0.50 is used up: it has cost $1.00. Unfinished." in go_on(evaluation)
        assert (len(server.asked), total_cost(evaluation)) == (1, 1.0)
        assert lists.with_progress(Evaluation.objects.all()).get().cost == 1.0
        assert PairwiseTrial.objects.get().closed is None
        evaluation.cost_limit = 50
        evaluation.save()
        assert go_on(evaluation) == "Done: 4 of 4 items."
        assert len(server.asked) == 2
    assert PairwiseTrial.objects.get().closed is not None


def test_of_units_without_a_truth_a_judge_that_sees_is_shown_exemplars(
    owner: User, settings: Any, tmp_path: Path
) -> None:
    job = Job.objects.create(kind="evaluation", subject="units", asked_by=owner)
    evaluation = Evaluation.objects.create(kind="units", name="Units", owner=owner, planned=True, job=job)
    evaluation.options = {"judge": "openai:gpt-4o", "model": "toybox", "dataset": "toybox"}
    evaluation.save()
    layer = catalogue.look_at_model("toybox").layers.get(name="layer4")
    dead = set(place.laboratory().index("toybox", "toybox").layer("layer4").dead())
    unit = Unit.objects.create(layer=layer, number=next(each for each in range(layer.units) if each not in dead))
    for position, (source, text) in enumerate((("agent", "balls"), ("one-shot", "cars")), 1):
        known = {"source": source, "label": text, "status": ItemStatus.DONE}
        evaluation.items.create(position=position, group="layer4", unit=unit, unit_name=str(unit), **known)
    with Provider(says("ANSWER: B", usage=(1000, 10))) as server:
        settings.OPENAI_API_KEY, settings.OPENAI_BASE_URL = "key", server.url
        settings.OPENAI_MODELS, settings.OPENAI_PRICES = ["gpt-4o"], tmp_path / "prices.toml"
        place.build_laboratory.cache_clear()
        assert go_on(evaluation) == "Done: 2 of 2 items."
        (asked,) = server.asked
    kinds = [part["type"] for part in asked["messages"][1]["content"]]
    assert kinds.count("image_url") >= 2
    assert unit.profiles.get().exemplars.exists()
    (figure,) = read_result(evaluation).figures[-1:]
    assert (figure.key, figure.n) == ("two_way.agent-one-shot", 1)


def test_nothing_to_compare_is_said(evaluation: Evaluation) -> None:
    evaluation.items.exclude(source="import:milan").delete()
    assert go_on(evaluation) == "Done: 2 of 2 items."
    assert "The judge compared no labels: Choose two sources or more." in [
        each["words"] for each in evaluation.result["notes"]
    ]
    assert not PairwiseTrial.objects.exists()


# --- people ---


def run_of(item: EvaluationItem) -> Run:
    assert item.run is not None
    return item.run


def conclude(run: Run, *labels: str) -> None:
    """What a run that a person has written to its end leaves; how it is written is tested with the editor."""
    Run.objects.filter(pk=run.pk).update(status="concluded", conclusion={"labels": list(labels), "description": "so"})


def test_people_write_a_quarter_and_the_rest_does_not_wait(evaluation: Evaluation, owner: User) -> None:
    actions.ask_people(Actor(owner), evaluation)
    item = EvaluationItem.objects.get(source="person")
    run = run_of(item)
    assert (run.backbone, run.owner, run.model) == ("person", owner, MODEL)
    assert run.options["label_check"] is False
    assert not [name for name in ("ball", "cube", "mono") if name in run.question]
    assert go_on(evaluation) == "Done: 4 of 5 items, 1 waits for people."
    row = lists.with_progress(Evaluation.objects.all()).get()
    assert (row.waiting_items, lists.state_of(row).words, lists.state_of(row).left) == (1, "Waits for people", True)
    assert PairwiseTrial.objects.get().sources == ["import:milan", "import:dissect"]
    with pytest.raises(StateConflict, match="already"):
        actions.ask_people(Actor(owner), evaluation)
    conclude(run, "spheres")
    assert go_on(evaluation) == "Done: 5 of 5 items."
    item.refresh_from_db()
    assert (item.status, item.label, item.label_check is not None) == (ItemStatus.DONE, "spheres", True)
    assert run_of(item).label_check == item.label_check
    assert {"right", "pearson"} <= set(item.scores)
    keys = {figure["key"] for figure in evaluation.result["figures"]}
    assert {"baselines.person.mono.right", "baselines.person.pearson"} <= keys


def test_who_writes_does_not_read_the_truth(evaluation: Evaluation, owner: User) -> None:
    (item,) = actions.ask_people(Actor(owner), evaluation)
    for viewer in (owner, member("colleague", "RESEARCHER"), None):
        assert SystemNameMasker(viewer).is_masked(run_of(item))
        assert "mono" not in lists.name_item(item, SystemNameMasker(viewer))
    conclude(run_of(item), "ball")
    assert not SystemNameMasker(owner).is_masked(run_of(item))


@pytest.mark.parametrize(
    ("change", "why"),
    [({"backbone": "scripted"}, "handed over"), ({"status": "cancelled"}, r"not written to its end \(cancelled\)")],
)
def test_what_no_person_wrote_to_its_end_is_no_score_of_people(
    evaluation: Evaluation, owner: User, change: dict[str, str], why: str
) -> None:
    (item,) = actions.ask_people(Actor(owner), evaluation)
    conclude(run_of(item), "ball")
    Run.objects.filter(pk=run_of(item).pk).update(**change)
    assert go_on(evaluation) == "Done: 5 of 5 items, 1 failed."
    item.refresh_from_db()
    assert (item.status, item.label, item.scores) == (ItemStatus.FAILED, "", {})
    assert re.search(why, item.reason)


def test_the_command_asks_people_when_it_goes_on(evaluation: Evaluation) -> None:
    out = StringIO()
    call_command("evaluate", "--resume", str(evaluation.pk), "--people", "--json", stdout=out, stderr=out)
    assert json.loads(out.getvalue().splitlines()[-1])["items"] == {"done": 4, "of": 5, "failed": 0}
    assert "1 waits for people" in out.getvalue()
    assert Run.objects.get().backbone == "person"


def test_a_quarter_of_each_group_by_the_seed(owner: User, imported: list[Unit]) -> None:
    evaluation = Evaluation.objects.create(kind="synthetic", name="Many", owner=owner, planned=True, seed=4)
    layer = imported[0].layer
    units = [Unit.objects.get_or_create(layer=layer, number=number)[0] for number in range(12)]
    for position, unit in enumerate(units, 1):
        group = "mono" if position <= 8 else "or"
        evaluation.items.create(position=position, group=group, source="agent", unit=unit, unit_name=str(unit))
    added = actions.ask_people(Actor(owner), evaluation)
    assert [item.group for item in added] == ["mono", "mono", "or"]
    assert [item.position for item in added] == [13, 14, 15]
    Evaluation.objects.update(planned=False)
    evaluation.refresh_from_db()
    with pytest.raises(StateConflict, match="not drawn yet"):
        actions.ask_people(Actor(owner), evaluation)
