"""A run on a circuit from the form to its conclusion and check; what the circuit's page and the API show of it."""

from __future__ import annotations

import html
import io
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from experiments.circuits import runs
from experiments.core.catalogue import find_unknown_part
from experiments.core.units_of_runs import find_unit_of
from experiments.models import Circuit, Label, Run, UnitProfile
from tests.support.api_world import Script
from tests.support.bundles import brought, bundled, forgotten
from tests.support.circuit_runs import MEMBERS, make_toybox_circuit, query_values
from tests.support.people import signed_in
from workers.jobs import catalogue, foreground, unit_profiles
from workers.jobs.console import Console
from workers.protocols import no_progress
from workers.record.statuses import Status

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("on_toybox", "redis_url")]


@pytest.fixture
def circuit(owner: User) -> Circuit:
    catalogue.write_model("toybox")
    catalogue.write_dataset("toybox")
    catalogue.write_backbone("scripted")
    catalogue.write_toolset("toybox")
    return make_toybox_circuit(owner)


@pytest.fixture
def client(owner: User) -> Client:
    return signed_in(owner)


def read(client: Client, path: str, status: int = 200) -> str:
    response = client.get(path)
    assert response.status_code == status
    return html.unescape(response.content.decode())


def ask(client: Client, circuit: Circuit, **more: Any) -> Run:
    response = client.post("/query/", query_values(circuit, **more))
    assert response.status_code == 302, response.content.decode()
    return Run.objects.latest("pk")


@pytest.mark.timeout(600)  # a whole run, its check and its exemplars
def test_a_run_concludes_is_checked_travels_and_is_shown(
    client: Client, circuit: Circuit, owner: User, tmp_path: Path
) -> None:
    path = circuit.get_absolute_url()
    assert f"/query/?system_kind=circuit&circuit={circuit.pk}" in read(client, path)
    form = read(client, f"/query/?system_kind=circuit&circuit={circuit.pk}")
    assert "a circuit of 3 members in toybox" in form
    assert all(str(each) in form for each in MEMBERS)

    run = foreground.investigate(ask(client, circuit), Console(io.StringIO()))
    assert run.options["circuit"] == circuit.pk
    assert [each["unit"] for each in run.options["members"]] == [7, 12, 30]
    assert (run.status, bool(run.labels)) == (Status.CONCLUDED, True)
    check = foreground.check_conclusion(run, no_progress)
    assert check is not None
    assert (check.status, check.reason) == ("done", "")
    assert check.pearson is not None
    assert check.unit == Label.objects.get(run=run, position=1).units.get()

    (compared,) = runs.list_checked(check.unit)
    for states in (compared.findings.described, compared.findings.others):
        shares = [states.all_on, states.one_off, states.all_off, states.otherwise]
        assert sum(each or 0.0 for each in shares) == pytest.approx(1, abs=1e-3)
    assert compared.findings.pearson == pytest.approx(check.pearson, abs=1e-3)
    assert [each.member for each in compared.members] == MEMBERS
    shows(client, circuit, run)
    writes_exemplars(client, circuit)
    travels(owner, run, check.pearson, tmp_path)


def shows(client: Client, circuit: Circuit, run: Run) -> None:
    page = read(client, circuit.get_absolute_url())
    assert run.get_absolute_url() in page
    assert run.labels[0] in page
    assert "Members where the label says" in page
    told = client.get(f"/api/v1/circuits/{circuit.pk}/study").json()
    assert [(each["id"], each["same_members"]) for each in told["runs"]] == [(run.pk, True)]
    assert [each["unit"] for each in told["compared"][0]["members"]] == [7, 12, 30]
    assert "circuit “round things”" in read(client, run.get_absolute_url())
    there = client.get(f"/units/toybox/circuit/{run.unit}/", follow=True)
    assert there.redirect_chain[-1][0] == circuit.get_absolute_url()
    assert "circuit" not in [each.name for each in circuit.base.layers.all()]  # type: ignore[union-attr]


def writes_exemplars(client: Client, circuit: Circuit) -> None:
    profile = UnitProfile.objects.get()  # the run asked for them
    unit_profiles.write(profile, no_progress)
    told = client.get(f"/api/v1/circuits/{circuit.pk}/study").json()
    activations = [each["activation"] for each in told["exemplars"]]
    assert len(activations) > 5
    assert activations == sorted(activations, reverse=True)
    assert all(each["image"] != each["masked"] for each in told["exemplars"])
    assert told["exemplars"][0]["masked"] in read(client, circuit.get_absolute_url())


def travels(owner: User, run: Run, pearson: float, tmp_path: Path) -> None:
    """A bundle carries members, label and check; the key of the circuit stays here."""
    file, members, labels = bundled(run, path=tmp_path / "run.zip"), run.options["members"], run.labels
    UnitProfile.objects.all().delete()
    forgotten(run)
    Label.objects.all().delete()
    (taken,) = brought(file, owner)
    there = Run.objects.get(pk=taken.run.pk)
    assert there.options["members"] == members
    assert "circuit" not in there.options
    assert there.labels == labels
    assert there.label_check is not None
    assert there.label_check.pearson == pytest.approx(pearson)
    assert there.label_check.unit == find_unit_of(there)
    assert find_unknown_part(there) == ""


def test_later_changes_and_the_end_of_the_circuit_leave_the_run(client: Client, circuit: Circuit, owner: User) -> None:
    run, path = ask(client, circuit, rounds=1), circuit.get_absolute_url()
    gone = circuit.members.get(number=12)
    client.post(f"{path}remove/", {"member": gone.pk})
    assert "of other members" in read(client, path)
    again = client.post(f"/api/v1/runs/{run.pk}/again", content_type="application/json")
    assert again.status_code == 201, again.content
    second = Run.objects.latest("pk")
    assert second.options["members"] == run.options["members"]
    assert (second.unit, second.options["circuit"]) == (run.unit, circuit.pk)
    form = read(client, f"/query/?from={run.pk}")
    assert f"value={run.unit}" in form.replace('"', "")
    assert "Nothing is changed yet" in form

    client.post(f"{path}delete/")
    assert "circuit “round things”" in read(client, run.get_absolute_url())
    alone = client.get(f"/units/toybox/circuit/{run.unit}/", follow=True).content.decode()
    assert all(str(each) in alone for each in MEMBERS)
    assert run.get_absolute_url() in alone
    client.post(f"/api/v1/runs/{run.pk}/again", content_type="application/json")
    third = Run.objects.latest("pk")
    assert third.options["members"] == run.options["members"]
    ended = foreground.investigate(run, Console(io.StringIO()))
    assert (ended.status, ended.experiment_count) == (Status.LIMIT_REACHED, 1)
    given = {"round": 1, "note": "look again", "limits": {"rounds": 3}}
    fork = Script(owner).post(f"/runs/{run.pk}/forks", given)
    assert fork.status_code == 201, fork.content
    assert Run.objects.latest("pk").options["members"] == run.options["members"]
