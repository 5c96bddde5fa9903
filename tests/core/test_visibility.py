"""Nothing tells who writes a label for an evaluation what others found of the unit: no page, call, search, file."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from experiments.core import access, transcript
from experiments.core.actors import Actor
from experiments.evaluations import actions
from experiments.exchange import export_query
from experiments.models import (
    Evaluation,
    EvaluationItem,
    ExportSubject,
    Label,
    LabelCheck,
    ReviewQueue,
    Run,
    Share,
)
from tests.support import builders
from tests.support.address_rows import make_ids
from tests.support.api_operations import READING, call
from tests.support.api_world import KEY, Script, World, fill
from tests.support.builders import make_run
from tests.support.judged_images import make_waiting
from tests.support.people import member
from tests.support.read_pages import pages, table
from tests.support.streams import text_of
from workers.jobs.evaluations.figures import note_lacking
from workers.record.evaluations import Cell, EvaluationResult, Point, ResultPlot, ResultTable, Series
from workers.record.events import Ended
from workers.record.replies import Conclusion

pytestmark = pytest.mark.django_db
TOLD = "hayloft"
"""Stands in all that nobody is to be told; no random token holds it by chance."""
PLACES = {
    "synthetic": {"system_kind": "synthetic", "model": "synthetic:own-eyes", "layer": "own-kind", "unit": 1},
    "units": {"system_kind": "unit", "model": "own-net", "layer": "own-layer", "unit": 1},
}


@pytest.fixture
def ids(owner: User) -> dict[str, int]:
    return make_ids(make_run(owner))


@pytest.fixture
def world(owner: User) -> World:
    return fill(owner)


@pytest.fixture(params=PLACES)
def evaluation(request: pytest.FixtureRequest, owner: User, world: World) -> Evaluation:
    """An agent's run on one unit that concluded, its label with a check, and the evaluation that it is of."""
    return evaluate(owner, request.param, world.check)


def evaluate(owner: User, kind: str, check: LabelCheck) -> Evaluation:
    place: dict[str, Any] = PLACES[kind]
    unit = check.unit
    layer = unit.layer
    layer.model.name, layer.name, layer.names = place["model"], place["layer"], [] if kind == "units" else ["a", "b"]
    layer.kind = "conv" if kind == "units" else "concept"
    layer.model.save()
    layer.save()
    LabelCheck.objects.filter(pk=check.pk).update(text=f"{TOLD} checked")
    Label.objects.filter(units=unit).update(text=f"{TOLD} imported", label_check=check)
    make_waiting(unit, f"{TOLD} asked")
    run = conclude(owner, place, check)
    row = Evaluation.objects.create(kind=kind, name="compared", owner=owner, planned=True, backbone="scripted")
    known = {
        "unit": unit,
        "unit_name": f"{TOLD} name" if kind == "synthetic" else "layer / unit",
        "group": f"{TOLD} group",
    }
    done = {"status": "done", "label": f"{TOLD} item", "label_check": check, "scores": {"right": 1, "why": TOLD}}
    agent = row.items.create(position=1, source="agent", run=run, **known, **done)
    row.items.create(position=2, source="shuffled", status="lacking", reason=TOLD, **known)
    Evaluation.objects.filter(pk=row.pk).update(result=msgspec.to_builtins(result_of(row, agent)))
    return row


def conclude(owner: User, place: dict[str, Any], check: LabelCheck) -> Run:
    run = make_run(owner, **place)
    transcript.append(run.pk, "started", builders.started())
    transcript.append(run.pk, "reply", builders.replied())
    transcript.append(run.pk, "experiment", builders.experiment())
    transcript.append(run.pk, "result", builders.result(images=(KEY,)))
    transcript.append(run.pk, "concluded", Ended("", Conclusion(f"It likes {TOLD}.", (f"{TOLD} concluded",))))
    thread = run.threads.create(on="run")
    thread.comments.create(author=owner, text=f"{TOLD} comment")
    Run.objects.filter(pk=run.pk).update(label_check=check, question=f"What is {TOLD}?")
    run.observations.update(title=f"{TOLD} title", prompt=f"{TOLD} prompt")
    run.experiments.update(output=f"{TOLD} output")
    run.refresh_from_db()
    return run


def result_of(row: Evaluation, agent: EvaluationItem) -> EvaluationResult:
    """A result in whose table, plot and notes the items stand by their names."""
    cells = (Cell(f"{TOLD} cell", item=agent.pk), Cell(value=0.987654))
    point = Point(0.0, 0.876543, item=agent.pk, label=f"{TOLD} point")
    plot = ResultPlot("p", "Plot", "strip", "", "r", (Series("Agent", (point,)),))
    notes = tuple(note_lacking(list(row.items.all())))
    return EvaluationResult((), (ResultTable("t", "Table", ("", "r"), (cells,)),), (plot,), notes)


def ask(evaluation: Evaluation) -> Run:
    (item,) = actions.ask_people(Actor(evaluation.owner), evaluation)
    assert item.run is not None
    return item.run


def walk(user: User, numbers: dict[str, Any], world: World) -> dict[str, str]:
    """Every page and every call that reads, by its address."""
    client = signed_in_as(user)
    more = ["/search/?q=concluded", "/jump/?q=concluded", "/api/v1/search?q=concluded", f"/api/v1/labels?q={TOLD}"]
    more += [f"/evaluations/{{evaluation}}/figures.{end}" for end in ("json", "tex")]
    more += ["/api/v1/evaluations/{evaluation}/items"]
    told = {path: text_of(client.get(path.format(**numbers))) for path in [*pages(), *more]}
    return told | {path: text_of(call(client, path, operation, world)) for path, operation in READING}


def signed_in_as(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


WORDS = re.compile(rf".{{0,50}}(?:{TOLD} |is {TOLD}|0\.98765|0\.9877).{{0,40}}", re.DOTALL)


def telling(told: dict[str, str]) -> dict[str, str]:
    """The addresses that tell, each with what it says; words that it was asked for are no news."""
    found = {path: WORDS.search(text) for path, text in told.items()}
    return {path: each[0] for path, each in found.items() if each}


@pytest.fixture
def numbers(ids: dict[str, int], evaluation: Evaluation, world: World) -> dict[str, Any]:
    run, check = evaluation.items.get(source="agent").run, world.check
    assert run is not None
    known = {"run": run.pk, "evaluation": evaluation.pk, "label": world.label.pk, "check": check.pk, "key": KEY}
    known |= {"parent": run.pk, "child": run.pk, "thread": run.threads.get().pk}
    queue = ReviewQueue.objects.create(name="q", owner=run.owner, blind=False)
    queue.items.create(run=run, position=1)
    known["queue"] = queue.pk
    return ids | known | {"comment": run.threads.get().comments.get().pk}


@pytest.mark.more
def test_no_address_tells_who_writes_and_all_tell_afterwards(
    numbers: dict[str, Any], evaluation: Evaluation, world: World, redis_url: str
) -> None:
    world = replace(world, run=Run.objects.get(pk=numbers["run"]), evaluation=evaluation)
    writer = member("writer", "ADMIN")
    before = telling(walk(writer, numbers, world))
    for path in ("/runs/{run}/", "/runs/", "/evaluations/{evaluation}/", "/checks/{check}/", "/api/v1/labels"):
        assert any(each.startswith(path) for each in before), path
    written = ask(evaluation)
    told = telling(walk(writer, numbers, world))
    assert not told, "\n".join(f"{path}: {words}" for path, words in told.items())
    assert signed_in_as(writer).get(f"/runs/{written.pk}/").status_code == 200
    Run.objects.filter(pk=written.pk).update(status="concluded")
    assert telling(walk(writer, numbers, world)).keys() == before.keys()


@pytest.fixture
def neuron(owner: User, world: World) -> Evaluation:
    return evaluate(owner, "synthetic", world.check)


def test_who_writes_finds_neither_the_run_nor_what_it_scored(neuron: Evaluation, owner: User) -> None:
    script, agent = Script(owner), neuron.items.get(source="agent")
    assert f"{TOLD} concluded" in script.get(f"/runs/{agent.run_id}").content.decode()
    written = ask(neuron)
    (item,) = script.get(f"/evaluations/{neuron.pk}/items").json()["items"]
    assert (item["run"], item["label"], item["group"], item["score"]) == (written.pk, "", "", None)
    assert item["unit"].startswith("neuron ")
    refused = script.get(f"/runs/{agent.run_id}")
    assert refused.status_code == 403
    assert "People write labels of the unit" in refused.content.decode()


def test_notes_name_no_neuron_that_somebody_writes_of(neuron: Evaluation, owner: User) -> None:
    def notes() -> list[str]:
        return Script(owner).get(f"/evaluations/{neuron.pk}").json()["notes"]

    (named,) = notes()
    assert "has no label of 1: " in named
    ask(neuron)
    assert notes() == [named.replace(named.partition(": ")[2], "hidden until you have reviewed it.")]
    Evaluation.objects.update(result={"notes": [f"As kept before: {TOLD} name."]})
    assert notes() == []


def test_a_file_and_a_link_tell_no_more_than_the_pages(neuron: Evaluation, owner: User, client: Client) -> None:
    run = neuron.items.get(source="agent").run
    assert run is not None
    _, token = Share.issue(run, owner, timezone.now() + timedelta(days=1), names=True, comments=True)
    whats = [ExportSubject.RUNS, ExportSubject.OBSERVATIONS, ExportSubject.LABELS, ExportSubject.EVALUATIONS]
    assert [what for what in whats if f"{TOLD} " not in table(what, owner)] == []
    assert client.get(f"/shared/{token}/").status_code == 200
    written = ask(neuron)
    assert [what for what in whats if f"{TOLD} " in table(what, owner)] == []
    assert not export_query.select_rows(ExportSubject.BUNDLE, f"run={run.pk}", owner).exists()
    assert client.get(f"/shared/{token}/").status_code == 404
    assert not access.may_watch(owner, run.pk)
    assert access.may_watch(owner, written.pk)
