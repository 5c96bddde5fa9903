"""The pages of circuits: from a unit, a sheet and search to a circuit, and what each refuses."""

from __future__ import annotations

import html
import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from experiments.models import Circuit, VisionModelRow
from tests.support.circuits import make_circuit
from tests.support.people import member, signed_in
from tests.support.unit_pages import MARKUP, RESNET, labelled, layer_of, measured

ADD = "/circuits/add/"


def read(client: Client, path: str, status: int = 200, **query: Any) -> str:
    response = client.get(path, query)
    assert response.status_code == status
    return html.unescape(response.content.decode())


def member_of(layer: Any, number: int) -> str:
    return f"{layer.pk}.{number}"


def test_a_unit_starts_a_circuit_and_shows_it(as_owner: Client, resnet: VisionModelRow) -> None:
    unit = reverse("unit", args=[RESNET, "layer4", 7])
    assert "Add to circuit" in read(as_owner, unit)
    sent = {"member": member_of(layer_of(resnet), 7), "act": "create", "name": MARKUP}
    response = as_owner.post(ADD, sent)
    row = Circuit.objects.get()
    assert response["Location"] == row.get_absolute_url()
    assert row.get_absolute_url() in read(as_owner, unit)
    for path in ("/circuits/", row.get_absolute_url(), unit):
        assert MARKUP not in as_owner.get(path).content.decode()


def test_the_sheet_hands_over_what_is_ticked(as_owner: Client, resnet: VisionModelRow, owner: User) -> None:
    assert f'formaction="{ADD}"' in read(as_owner, reverse("units-layer", args=[RESNET, "layer4"]))
    chosen = {"model": RESNET, "layer": "layer4", "units": "3-5,9"}
    asked = as_owner.post(ADD, chosen)
    assert asked.status_code == 200
    assert asked.content.decode().count('name="member"') == 4
    row = make_circuit(owner, labelled(layer_of(resnet), 3), "mine")
    as_owner.post(ADD, chosen | {"act": "extend", "circuit": row.pk})
    assert list(row.members.values_list("number", flat=True)) == [3, 4, 5, 9]


def test_search_results_are_ticked(as_owner: Client, resnet: VisionModelRow) -> None:
    layer = layer_of(resnet)
    labelled(layer, 7, "red balls")
    page = read(as_owner, "/search/units/", q="red")
    assert f'value="{member_of(layer, 7)}" form="choose-found"' in page


def test_what_was_chosen_is_shown_again_when_it_is_refused(as_owner: Client, resnet: VisionModelRow) -> None:
    other = VisionModelRow.objects.create(name="toybox")
    theirs = other.layers.create(position=0, name="layer4", path="layer4", kind="conv", units=64)
    chosen = [member_of(layer_of(resnet), 7), member_of(theirs, 1)]
    for name, said in (("both", "one network"), ("", "a name"), ("x" * 200, "200 characters")):
        response = as_owner.post(ADD, {"member": chosen, "act": "create", "name": name})
        page = html.unescape(response.content.decode())
        assert (response.status_code, said in page) == (400, True)
        assert all(f'value="{each}" checked' in page for each in chosen)
        assert not name or f'name="name" value="{name}"' in page
        assert ("circuit-name_error" in page) == (name != "both"), "beside the name, if that is what is wrong"
    assert not Circuit.objects.exists()


@pytest.mark.parametrize("field", ["", "x.y", "1.99999999999", "9" * 30 + ".1", "0.0", "\x00.1"])
def test_members_that_are_none_are_left_out(as_owner: Client, resnet: VisionModelRow, field: str) -> None:
    assert "No units chosen" in as_owner.post(ADD, {"member": field}).content.decode()
    refused = as_owner.post(ADD, {"member": field, "act": "create", "name": "empty"})
    assert (refused.status_code, b"not 0" in refused.content) == (400, True)


def test_too_many_are_counted_and_refused(as_owner: Client, resnet: VisionModelRow) -> None:
    sent = {"model": RESNET, "layer": "layer4", "units": "0-2047", "act": "create", "name": "all"}
    response = as_owner.post(ADD, sent)
    assert (response.status_code, b"not 2,048" in response.content) == (400, True)


def test_a_circuit_shows_its_members_with_labels_and_pictures(
    as_owner: Client, resnet: VisionModelRow, owner: User
) -> None:
    unit = labelled(layer_of(resnet), 7, "red balls")
    measured(unit)
    row = make_circuit(owner, unit, "reds", 8)
    page = read(as_owner, row.get_absolute_url())
    assert page.count("red balls") == 2
    assert "thumb-160.webp" in page
    assert reverse("unit", args=[RESNET, "layer4", 8]) in page
    unit.delete()
    assert "no longer here" in read(as_owner, row.get_absolute_url())
    resnet.delete()
    assert "which is no longer here" in read(as_owner, row.get_absolute_url())
    assert "reds" in read(as_owner, "/circuits/")


def test_the_owner_renames_removes_and_deletes(as_owner: Client, resnet: VisionModelRow, owner: User) -> None:
    row = make_circuit(owner, labelled(layer_of(resnet), 7), "first", 8)
    path = row.get_absolute_url()
    as_owner.post(f"{path}rename/", {"name": "second", "note": "a\nb"})
    refused = as_owner.post(f"{path}rename/", {"name": "x" * 200, "note": "typed"})
    assert (refused.status_code, b"typed" in refused.content, b"200 characters" in refused.content) == (400, True, True)
    as_owner.post(f"{path}remove/", {"member": row.members.earliest("pk").pk})
    assert as_owner.post(f"{path}remove/", {"member": row.members.get().pk}).status_code == 400
    row.refresh_from_db()
    assert (row.name, row.note, row.members.count()) == ("second", "a\nb", 1)
    assert as_owner.post(f"{path}delete/")["Location"] == "/circuits/"
    assert read(as_owner, path, status=404)
    assert "No circuit yet" in read(as_owner, "/circuits/")


def test_others_read_and_change_nothing(resnet: VisionModelRow, owner: User, teammate: User) -> None:
    row = make_circuit(owner, labelled(layer_of(resnet), 7), "mine", 8)
    for client in (signed_in(teammate), signed_in(member("other", "RESEARCHER"))):
        assert "Delete circuit" not in read(client, row.get_absolute_url())
        for what in ("rename", "remove", "delete"):
            sent = {"name": "theirs", "member": row.members.earliest("pk").pk}
            assert client.post(f"{row.get_absolute_url()}{what}/", sent).status_code == 403
        sent = {"member": member_of(layer_of(resnet), 9), "act": "extend", "circuit": row.pk}
        assert client.post(ADD, sent).status_code == 403
    assert (Circuit.objects.get().name, row.members.count()) == ("mine", 2)


def test_the_list_is_narrowed_to_a_network(as_owner: Client, resnet: VisionModelRow, owner: User) -> None:
    make_circuit(owner, labelled(layer_of(resnet), 7), "reds")
    assert "reds" in read(as_owner, "/circuits/", network=RESNET)
    assert "Nothing matches" in read(as_owner, "/circuits/", network="toybox")


def test_the_list_is_searched_by_name(as_owner: Client, resnet: VisionModelRow, owner: User) -> None:
    make_circuit(owner, labelled(layer_of(resnet), 7), "red balls")
    assert "red balls" in read(as_owner, "/circuits/", q="balls red")
    assert "Nothing matches" in read(as_owner, "/circuits/", q="blue")
    assert "are looked for" in read(as_owner, "/circuits/", q="blue" * 60)


def test_the_file_is_what_the_api_takes(as_owner: Client, resnet: VisionModelRow, owner: User) -> None:
    row = make_circuit(owner, labelled(layer_of(resnet), 7, "red balls"), "reds")
    response = as_owner.get(f"{row.get_absolute_url()}circuit.json")
    assert "attachment" in response["Content-Disposition"]
    assert json.loads(response.content) == as_owner.get(f"/api/v1/circuits/{row.pk}/file").json()
