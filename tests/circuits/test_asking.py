"""What makes no run on a circuit, and files that make no circuit."""

from __future__ import annotations

import html
import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from experiments.circuits import runs
from experiments.core.catalogue import find_unknown_part
from experiments.core.system_names import SystemNameMasker
from experiments.exchange import run_decoding
from experiments.exchange.safe_zip import ExchangeError
from experiments.models import Circuit, LabelCheck, Layer, Run, Unit, VisionModelRow
from experiments.units.label_search import find_by_words
from tests.support.api_world import Script
from tests.support.circuit_runs import MEMBERS, ask_about, make_toybox_circuit, query_values, toybox_row
from tests.support.unit_pages import RESNET
from workers.record.circuits import CircuitMember, find_number

pytestmark = pytest.mark.usefixtures("redis_url")


@pytest.fixture
def circuit(owner: User) -> Circuit:
    toybox_row()
    return make_toybox_circuit(owner)


def refused(client: Client, circuit: Circuit, **more: Any) -> str:
    response = client.post("/query/", query_values(circuit, **more))
    assert response.status_code == 200
    assert not Run.objects.exists()
    return html.unescape(response.content.decode())


def test_members_that_are_gone_are_named(as_owner: Client, circuit: Circuit) -> None:
    Unit.objects.get(number=12).delete()
    assert "toybox / layer4 / unit 12 of the circuit “round things” is not here any more" in refused(as_owner, circuit)
    assert "is not here any more" in as_owner.get(f"/query/?circuit={circuit.pk}").content.decode()


def test_a_circuit_that_is_gone_or_of_another_network_is_refused(owner: User, circuit: Circuit) -> None:
    script, asked = Script(owner), {"question": "What?", "circuit": circuit.pk}
    other = script.post("/runs", asked | {"model": RESNET})
    assert (other.status_code, "not of" in other.content.decode()) == (422, True)
    gone = script.post("/runs", asked | {"circuit": 10**6})
    assert (gone.status_code, "no circuit 1000000" in gone.content.decode()) == (422, True)
    assert script.post("/runs", {"question": "What?"}).status_code == 422
    by_hand = script.post("/runs", {"question": "What?", "model": "toybox", "layer": "circuit", "unit": 5})
    assert by_hand.status_code == 422
    assert not Run.objects.exists()


def test_a_circuit_of_200_members_is_asked_about(owner: User) -> None:
    row = toybox_row()
    row.layers.update(units=200)
    circuit = make_toybox_circuit(owner, "all", [CircuitMember("toybox", "layer4", number) for number in range(200)])
    made = Script(owner).post("/runs", {"question": "What?", "circuit": circuit.pk, "dataset": "toybox"})
    assert made.status_code == 201, made.content
    assert len(Run.objects.get().options["members"]) == 200


def test_ablation_of_a_circuit_is_refused(as_owner: Client, circuit: Circuit) -> None:
    assert "A circuit is several units" in refused(as_owner, circuit, ablation="on")


def test_the_same_members_are_the_same_unit_in_any_order(owner: User, circuit: Circuit) -> None:
    other = make_toybox_circuit(owner, "the same", MEMBERS[::-1])
    first, second = ask_about(owner, circuit), ask_about(owner, other)
    assert first.unit == second.unit == find_number(MEMBERS)
    assert Layer.with_circuits.filter(kind="circuit").count() == 1
    assert [run.pk for run in runs.list_runs("toybox", first.unit, circuit)] == [second.pk, first.pk]


def test_what_a_worker_would_not_study_is_told(owner: User, circuit: Circuit) -> None:
    run = ask_about(owner, circuit)
    assert find_unknown_part(run) == ""
    of_two = [each | {"model": "other"} if each["unit"] == 7 else each for each in run.options["members"]]
    VisionModelRow.objects.create(name="other").layers.create(
        position=0, name="layer4", path="layer4", kind="conv", units=64
    )
    for members, said in (
        ([], "not 0"),
        (run.options["members"][:2], "does not stand"),
        (of_two, "belongs to other"),
        ([each | {"unit": 99} for each in run.options["members"][:1]], "is not here"),
    ):
        wrong = [CircuitMember(**each) for each in members]
        run.options = {"members": members}
        run.unit = find_number(MEMBERS) if said == "does not stand" else find_number(wrong)
        assert said in find_unknown_part(run)


@pytest.mark.parametrize(
    "given",
    [
        "layer4",
        [],
        [{"model": "m", "layer": "l"}],
        [{"model": "m", "layer": "l", "unit": -1}],
        [{"model": "m", "layer": "l", "unit": 1, "more": 1}],
        [{"model": "m" * 999, "layer": "l", "unit": 1}],
        [{"model": "m", "layer": "l", "unit": 1}] * 2,
        [{"model": "m", "layer": "l", "unit": number} for number in range(201)],
    ],
)
def test_a_bundle_with_odd_members_is_refused(given: Any) -> None:
    with pytest.raises(ExchangeError):
        run_decoding.options({"members": given})


# --- rows, and files ---


def test_odd_rows_of_checks_are_left_out(as_owner: Client, owner: User, circuit: Circuit) -> None:
    run = ask_about(owner, circuit)
    unit = Unit.objects.get(number=run.unit)
    for number, natural in enumerate(({"circuit": 7}, {"circuit": {"described": []}}, [], {"circuit": None})):
        LabelCheck.objects.create(
            key=str(number), unit=unit, text="x", dataset="d", options={}, pearson=0.5, result={"natural": natural}
        )
    Run.objects.update(options={"members": "x", "circuit": circuit.pk, "circuit_name": 5})
    page = as_owner.get(circuit.get_absolute_url())
    assert page.status_code == 200
    assert b"Members where the label says" not in page.content
    assert as_owner.get(run.get_absolute_url()).status_code == 200


def test_circuits_are_no_units_of_the_network(as_owner: Client, owner: User, circuit: Circuit) -> None:
    run = ask_about(owner, circuit)
    label = run.label_set.create(text="round things", source="run")
    label.units.add(Unit.objects.get(number=run.unit))
    assert as_owner.get("/search/units/?q=round").status_code == 200
    assert b"circuit" not in as_owner.get("/api/v1/units?labelled=true").content
    assert as_owner.get("/units/").status_code == 200
    assert find_by_words("round things", SystemNameMasker(owner)) == []


def bring(client: Client, data: bytes) -> str:
    sent = {"file": SimpleUploadedFile("circuit.json", data, "application/json")}
    return html.unescape(client.post("/circuits/import/", sent, follow=True).content.decode())


def test_the_exported_file_is_taken(as_owner: Client, circuit: Circuit) -> None:
    data = as_owner.get(f"{circuit.get_absolute_url()}circuit.json").content
    assert "Created “round things”" in bring(as_owner, data)
    assert "Created “round things”" in bring(as_owner, b"\xef\xbb\xbf" + data)
    assert Circuit.objects.count() == 3
    assert [each.member for each in Circuit.objects.latest("pk").members.all()] == MEMBERS


GOOD = {"name": "x", "members": [{"model": "toybox", "layer": "layer4", "unit": 1}]}
BAD: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "Choose a file"),
    "no JSON": (b"{", "no file of a circuit"),
    "not UTF-8": (b'{"name": "\xff"}', "no file of a circuit"),
    "a list": (b"[]", "no file of a circuit"),
    "an unknown field": (json.dumps(GOOD | {"colour": 1}).encode(), "colour"),
    "a unit as text": (json.dumps(GOOD | {"members": [GOOD["members"][0] | {"unit": "1"}]}).encode(), "unit"),  # type: ignore[index, operator]
    "an unknown model": (json.dumps(GOOD | {"members": [GOOD["members"][0] | {"model": "m\0"}]}).encode(), "no layer"),  # type: ignore[index, operator]
    "a huge unit": (json.dumps(GOOD | {"members": [GOOD["members"][0] | {"unit": 2**60}]}).encode(), "no unit"),  # type: ignore[index, operator]
    "another network": (json.dumps(GOOD | {"network": RESNET}).encode(), "one network"),
    "many members": (json.dumps(GOOD | {"members": GOOD["members"] * 999}).encode(), "not 999"),  # type: ignore[operator]
    "deep": (b"[" * 100_000, "no file of a circuit"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_file_that_makes_no_circuit_keeps_nothing(as_owner: Client, owner: User, what: str) -> None:
    toybox_row()
    data, said = BAD[what]
    assert said in bring(as_owner, data)
    assert not Circuit.objects.exists()


def test_viewers_bring_and_ask_for_nothing(teammate: User, owner: User, circuit: Circuit) -> None:
    script = Script(teammate)
    assert script.post(f"/circuits/{circuit.pk}/exemplars", {"dataset": "toybox"}).status_code == 403
    unknown = Script(owner).post(f"/circuits/{circuit.pk}/exemplars", {"dataset": "none"})
    assert (unknown.status_code, "dataset" in unknown.content.decode()) == (409, True)
