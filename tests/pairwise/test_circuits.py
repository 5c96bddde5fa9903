"""Trials of circuits: labels by the agent and by people, judged like those of units, set beside AIM's claim."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from experiments.core.actors import Actor
from experiments.core.units_of_runs import keep_circuit
from experiments.evaluations.claims import set_beside
from experiments.models import PairwiseTrial, Unit
from experiments.pairwise import actions
from tests.support import trials
from tests.support.api_world import Script
from tests.support.builders import make_run
from tests.support.people import member, signed_in
from workers.record.circuits import CircuitMember

pytestmark = pytest.mark.django_db
SOURCES = ["agent", "person"]


@pytest.fixture
def circuits(owner: User) -> list[Unit]:
    """Two circuits with an exemplar, and a unit, each labelled by an agent and by a person."""
    found = [trials.unit(30)]
    for first in (1, 5):
        unit = keep_circuit("toybox", [CircuitMember("toybox", "layer4", first), CircuitMember("toybox", "layer4", 9)])
        assert unit is not None
        found.append(unit)
    for number, unit in enumerate(found):
        trials.exemplars(unit, f"{number:064x}")
        trials.label(unit, f"{trials.COLOURS[number]} balls", run=make_run(owner, unit=unit.number))
        by_person = make_run(owner, unit=unit.number, backbone="person")
        trials.label(unit, f"something {trials.COLOURS[number]}", run=by_person)
    return found[1:]


def test_a_trial_is_of_circuits_or_of_units(owner: User, circuits: list[Unit]) -> None:
    of_circuits = trials.trial(owner, source=SOURCES, circuits="on", repeats="0", known_answers="0")
    assert {pair.unit for pair in of_circuits.pairs.all()} == set(circuits)
    assert of_circuits.query == "circuits=True"
    of_units = trials.trial(owner, source=SOURCES, repeats="0", known_answers="0")
    assert [pair.unit.number for pair in of_units.pairs.all() if pair.unit] == [30]


def test_a_script_makes_one(circuits: list[Unit]) -> None:
    script = Script(member("admin", "ADMIN"))
    sent = {"name": "Circuits", "sources": SOURCES, "circuits": True, "repeats": 0, "known_answers": 0}
    told = script.post("/trials", sent)
    assert told.status_code == 201, told.content
    assert {pair.unit for pair in PairwiseTrial.objects.get().pairs.all()} == set(circuits)


def test_what_people_prefer_stands_beside_the_claim_once_it_is_closed(owner: User, circuits: list[Unit]) -> None:
    trial = trials.trial(owner, source=SOURCES, circuits="on", repeats="0", known_answers="0")
    judge = signed_in(member("judge", "REVIEWER"))
    trials.judged(judge, trial, "agent")

    def own() -> list[tuple[str, float | None, int]]:
        row = next(each for each in set_beside({}) if each.key == "aim-people")
        assert row.claimed == 0.52
        return [(each.url, each.figure.value, each.figure.n) for each in row.own]

    assert own() == []
    admin = member("admin", "ADMIN")
    actions.close_trial(Actor(admin), trial.pk)
    assert own() == [(trial.get_absolute_url(), 1.0, len(circuits))]
    assert f'href="{trial.get_absolute_url()}"' in signed_in(admin).get("/evaluations/claims/").content.decode()
    assert Script(admin).get("/claims").json()[2]["ours"][0]["trial"] == trial.pk
