"""The graph of a circuit on its page and in the API: what is asked, refused and shown; two circuits side by side."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from experiments.circuits.graph_drawing import MAX_EDGES
from experiments.models import Circuit, CircuitGraph, Dataset, Job, JobStatus, VisionModelRow
from tests.support.api_world import Script
from tests.support.circuit_graphs import make_circuit_graph, make_graph_report
from tests.support.circuits import make_circuit
from tests.support.people import signed_in
from tests.support.unit_pages import MARKUP, labelled, layer_of
from workers.record.circuit_graphs import CircuitGraphReport

pytestmark = pytest.mark.usefixtures("redis_url")


@pytest.fixture
def photos(resnet: VisionModelRow) -> Dataset:
    return Dataset.objects.get(key="photos")


@pytest.fixture
def circuit(owner: User, resnet: VisionModelRow) -> Circuit:
    """Two units of layer4 and two of a later layer; the network has three classes."""
    row = make_circuit(owner, labelled(layer_of(resnet), 7, "red balls"), "reds", 8)
    late = resnet.layers.create(position=8, name="layer5", path="layer5", kind="conv", units=64)
    for position, number in enumerate((1, 2), 3):
        unit = late.unit_set.create(number=number)
        row.members.create(
            position=position, unit=unit, model=resnet.name, layer="layer5", number=number, revision=resnet.revision
        )
    resnet.layers.filter(kind="logit").delete()
    names = ["ball", "crane", "crane"]
    resnet.layers.create(position=9, name="logits", path="fc", kind="logit", units=3, names=names)
    return row


def read(client: Client, row: Circuit, **query: Any) -> str:
    return html.unescape(client.get(row.get_absolute_url(), query).content.decode())


def ask(client: Client, row: Circuit, **form: str) -> Any:
    return client.post(reverse("circuit-graph", args=[row.pk]), {"dataset": "photos", **form})


def test_it_is_asked_for_once(as_owner: Client, circuit: Circuit, photos: Dataset) -> None:
    response = ask(as_owner, circuit, target="ball")
    row = CircuitGraph.objects.get()
    assert response["Location"] == row.get_absolute_url()
    assert [each.unit for each in row.asked_members] == [7, 8, 1, 2]
    job = Job.objects.get()
    assert (job.kind, job.options, row.target) == ("graph", {"row": row.pk}, "ball")
    ask(as_owner, circuit, target="0")
    assert Job.objects.count() == 1, "the same class by its number"
    Job.objects.update(status=JobStatus.STOPPED)
    assert "Measuring again starts from the beginning" in read(as_owner, circuit)
    ask(as_owner, circuit, target="ball")
    assert (CircuitGraph.objects.count(), Job.objects.count()) == (1, 2)
    ask(as_owner, circuit, target="crane")
    assert CircuitGraph.objects.first().target == "1", "a name that two classes have"


def test_what_is_refused_is_told_beside_what_was_typed(as_owner: Client, circuit: Circuit, photos: Dataset) -> None:
    refused = ask(as_owner, circuit, target="unicorn")
    page = html.unescape(refused.content.decode())
    assert (refused.status_code, "no class 'unicorn'" in page, 'value="unicorn"' in page) == (400, True, True)
    assert ask(as_owner, circuit, dataset="paintings").status_code == 400
    assert ask(as_owner, circuit, target="9" * 30).status_code == 400
    assert not CircuitGraph.objects.exists()


def test_circuits_that_have_no_graph_say_why(
    as_owner: Client, circuit: Circuit, photos: Dataset, owner: User, resnet: VisionModelRow
) -> None:
    large = make_circuit(owner, labelled(layer_of(resnet), 100), "large", *range(101, 180))
    assert "at most 64 members, and this circuit has 80" in read(as_owner, large)
    assert ask(as_owner, large).status_code == 400
    circuit.members.first().unit.delete()
    assert "unit 7 is not here any more. Remove it" in read(as_owner, circuit)
    Circuit.objects.update(base=None)
    assert "is not here any more, so nothing of it can be measured" in read(as_owner, circuit)


def test_a_viewer_reads_and_does_not_ask(circuit: Circuit, photos: Dataset, teammate: User) -> None:
    make_circuit_graph(circuit, photos)
    client = signed_in(teammate)
    page = read(client, circuit)
    assert ("data-node" in page, "graph-form" in page) == (True, False)
    assert ask(client, circuit).status_code == 403


def test_members_are_links_by_column_and_lines_have_their_sign(
    as_owner: Client, circuit: Circuit, photos: Dataset
) -> None:
    report = make_graph_report(circuit)
    make_circuit_graph(circuit, photos, report=report)
    page = read(as_owner, circuit)
    nodes = re.findall(r'class="graph-node (\w+)"\s+href="([^"]+)"\s+data-node="(\d+)"', page)
    assert [(kind, place) for kind, _, place in nodes] == [
        ("more", "0"),
        ("less", "1"),
        ("unclear", "2"),
        ("unclear", "3"),
    ]
    assert nodes[0][1].endswith("/layer4/7/")
    lines = re.findall(r'class="graph-edge (\w+) wide-(\d)"\s+d="[^"]+"\s+data-from="(\d)"\s+data-to="(\d)"', page)
    assert {(source, target): kind for kind, _, source, target in lines} == {
        ("0", "2"): "more",
        ("0", "3"): "unclear",
        ("1", "2"): "unclear",
        ("1", "3"): "more",
    }
    assert max(int(width) for _, width, _, _ in lines) == 5
    for said in ("cone", "+0.80 [+0.60, +1.00]", "0.71 [0.60, 0.82]", "200 of 500 probe images"):
        assert said in page
    assert "style=" not in page.partition('id="graph"')[2].partition('id="members-head"')[0]


def test_of_many_edges_the_strongest_are_drawn(
    as_owner: Client, photos: Dataset, owner: User, resnet: VisionModelRow
) -> None:
    row = make_circuit(owner, labelled(layer_of(resnet), 0), "wide", *range(1, 9))
    late = resnet.layers.create(position=8, name="layer5", path="layer5", kind="conv", units=64)
    for number in range(9):
        unit = late.unit_set.create(number=number)
        row.members.create(position=20 + number, unit=unit, model=resnet.name, layer="layer5", number=number)
    make_circuit_graph(row, photos)
    page = read(as_owner, row)
    assert page.count("data-from=") == MAX_EDGES
    assert "The strongest 60 of 81 effects" in page


@pytest.mark.parametrize("odd", [{"nodes": 3}, [], {"edges": [{"source": 9, "target": 0, "effect": {}}]}])
def test_odd_rows_are_opened(as_owner: Client, circuit: Circuit, photos: Dataset, odd: Any) -> None:
    row = make_circuit_graph(circuit, photos)
    CircuitGraph.objects.filter(pk=row.pk).update(result=odd)
    assert "cannot be read" in read(as_owner, circuit)


def test_one_that_says_why_and_one_without_classes(as_owner: Client, circuit: Circuit, photos: Dataset) -> None:
    why = make_circuit_graph(circuit, photos, report=CircuitGraphReport(why="All members are classes."))
    assert "All members are classes." in read(as_owner, circuit)
    why.delete()
    make_circuit_graph(circuit, photos, report=make_graph_report(circuit, class_number=None, class_name="", edges=()))
    page = read(as_owner, circuit)
    assert ("Faithfulness" in page, "No edges" in page) == (False, True)


def test_an_old_graph_is_told_from_the_circuit_as_it_is(as_owner: Client, circuit: Circuit, photos: Dataset) -> None:
    make_circuit_graph(circuit, photos)
    assert "Measured before" not in read(as_owner, circuit)
    circuit.members.last().delete()
    page = read(as_owner, circuit)
    assert ("Measured before" in page, page.count("data-node=")) == (True, 4)


def test_only_the_section_comes_while_it_moves(as_owner: Client, circuit: Circuit, photos: Dataset) -> None:
    ask(as_owner, circuit)
    row = CircuitGraph.objects.get()
    query = {"graph": row.pk}
    part = as_owner.get(circuit.get_absolute_url(), query, HTTP_HX_REQUEST="true", HTTP_HX_TARGET="graph")
    text = part.content.decode().strip()
    assert (text.startswith("<div"), "hx-get" in text, "<html" in text) == (True, True, False)


def test_scripts_ask_and_read(owner: User, circuit: Circuit, photos: Dataset) -> None:
    script, path = Script(owner), f"/circuits/{circuit.pk}/graphs"
    asked = script.post(path, {"dataset": "photos", "target": "ball"})
    assert (asked.status_code, asked.json()["status"]) == (202, "queued")
    assert script.get(f"/circuit-graphs/{asked.json()['id']}").json() == asked.json()
    assert script.post(path, {"dataset": "photos", "target": "unicorn"}).status_code == 422
    assert script.post(path, {"dataset": "paintings"}).status_code == 409
    measured = make_circuit_graph(circuit, photos)
    (newest, _) = script.get(path).json()["items"]
    assert (newest["id"], newest["result"]["nodes"][0]["effect"]["value"]) == (measured.pk, 0.8)


# --- two circuits beside each other ---


@pytest.fixture
def other(owner: User, circuit: Circuit, resnet: VisionModelRow) -> Circuit:
    """Shares one member of four."""
    return make_circuit(owner, labelled(layer_of(resnet), 9), MARKUP, 7)


def compare(client: Client, **query: Any) -> str:
    return html.unescape(client.get(reverse("circuits-compare"), query).content.decode())


def test_shared_members_and_their_effects(
    as_owner: Client, owner: User, circuit: Circuit, other: Circuit, photos: Dataset
) -> None:
    page = compare(as_owner, a=circuit.pk, b=other.pk)
    assert "share 1 member: similarity 0.20 (Jaccard)" in page
    assert ("Effect in" in page, "once the graphs of both" in page) == (False, True)
    make_circuit_graph(circuit, photos)
    make_circuit_graph(other, photos, report=make_graph_report(other, class_number=1))
    assert "Effect in" not in compare(as_owner, a=circuit.pk, b=other.pk), "another class"
    make_circuit_graph(other, photos, "cone")
    page = compare(as_owner, a=circuit.pk, b=other.pk)
    assert "Effect in reds" in page
    found = Script(owner).get(f"/circuit-comparisons?first={circuit.pk}&second={other.pk}").json()
    (shared,) = found["shared"]
    assert (shared["unit"], shared["first"]["value"], shared["second"]["value"]) == (7, 0.8, -0.3)
    assert ([each["unit"] for each in found["first_only"]], found["similarity"]) == ([8, 1, 2], 0.2)
    assert (found["class_name"], found["dataset"], found["second_only"][0]["first"]) == ("cone", "Photographs", None)
    assert MARKUP not in as_owner.get(reverse("circuits-compare"), {"a": circuit.pk, "b": other.pk}).content.decode()


def test_circuits_of_two_networks_have_no_similarity(as_owner: Client, circuit: Circuit, owner: User) -> None:
    toybox = VisionModelRow.objects.create(name="toybox")
    layer = toybox.layers.create(position=0, name="layer4", path="layer4", kind="conv", units=64)
    theirs = make_circuit(owner, layer.unit_set.create(number=7), "toys")
    assert "are circuits of two networks" in compare(as_owner, a=circuit.pk, b=theirs.pk)


@pytest.mark.parametrize("query", [{}, {"a": "x"}, {"b": ""}, {"a": "9" * 40}])
def test_without_two_there_is_a_form(as_owner: Client, circuit: Circuit, query: dict[str, str]) -> None:
    assert "Choose two circuits." in compare(as_owner, **query)


def test_one_that_is_not_there(as_owner: Client, circuit: Circuit) -> None:
    assert as_owner.get(reverse("circuits-compare"), {"a": circuit.pk, "b": 999}).status_code == 404
