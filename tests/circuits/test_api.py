"""Circuits for scripts: created, read, changed, deleted; from one installation to another; what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User

from experiments.models import Circuit, Label, Unit, VisionModelRow
from tests.support.api_world import Script
from tests.support.circuits import make_circuit
from tests.support.people import member
from tests.support.unit_pages import RESNET, labelled, layer_of

pytestmark = pytest.mark.usefixtures("redis_url")


@pytest.fixture
def script(owner: User, resnet: VisionModelRow) -> Script:
    return Script(owner)


def of_layer4(*numbers: int) -> list[dict[str, Any]]:
    return [{"model": RESNET, "layer": "layer4", "unit": number} for number in numbers]


def test_a_circuit_is_created_read_changed_and_deleted(script: Script) -> None:
    made = script.post("/circuits", {"name": "reds", "members": of_layer4(7, 8)})
    assert made.status_code == 201
    path = f"/circuits/{made.json()['id']}"
    read = script.get(path)
    assert [each["unit"] for each in read.json()["members"]] == [7, 8]
    assert script.send("PATCH", path, {"name": "x"}).status_code == 428
    changed = script.send("PATCH", path, {"name": "blues", "members": of_layer4(9)}, If_Match=read["ETag"])
    assert (changed.json()["name"], [each["unit"] for each in changed.json()["members"]]) == ("blues", [9])
    assert script.send("PATCH", path, {"name": "late"}, If_Match=read["ETag"]).status_code == 412
    (listed,) = script.get(f"/circuits?network={RESNET}&q=blue").json()["items"]
    assert (listed["name"], listed["size"]) == ("blues", 1)
    assert script.get("/circuits?network=toybox").json()["items"] == []
    assert script.send("DELETE", path, If_Match="*").status_code == 204
    assert script.get(path).status_code == 404


def test_a_file_makes_the_same_circuit_elsewhere(script: Script, owner: User, resnet: VisionModelRow) -> None:
    row = make_circuit(owner, labelled(layer_of(resnet), 7, "red balls"), "reds", 8)
    sent = script.get(f"/circuits/{row.pk}/file").json()
    assert sent["members"][0] == {
        **of_layer4(7)[0],
        "revision": "1",
        "label": "red balls",
    }
    # The other installation has other weights, no label and no unit that somebody asked about
    Circuit.objects.all().delete()
    Label.objects.all().delete()
    Unit.objects.all().delete()
    VisionModelRow.objects.update(revision="2")
    made = script.post("/circuits", sent)
    assert made.status_code == 201
    assert all(each["has_other_weights"] for each in made.json()["members"])
    assert script.get(f"/circuits/{made.json()['id']}/file").json() == sent


BAD: dict[str, tuple[Any, str]] = {
    "unknown field": ({"name": "x", "members": of_layer4(1), "colour": "red"}, "colour"),
    "unknown field of a member": ({"name": "x", "members": [{**of_layer4(1)[0], "weight": 1}]}, "weight"),
    "a list": ([], ""),
    "members of another shape": ({"name": "x", "members": "layer4"}, "members"),
    "a number as text": ({"name": "x", "members": [{**of_layer4(1)[0], "unit": "1"}]}, "unit"),
    "a negative number": ({"name": "x", "members": of_layer4(-1)}, "unit"),
    "no members": ({"name": "x", "members": []}, "not 0"),
    "too many": ({"name": "x", "members": of_layer4(*range(10_000))}, "not 10,000"),
    "twice": ({"name": "x", "members": of_layer4(1, 1)}, "twice"),
    "no name": ({"name": " ", "members": of_layer4(1)}, "a name"),
    "a long name": ({"name": "x" * 200, "members": of_layer4(1)}, "200 characters"),
    "beyond the layer": ({"name": "x", "members": of_layer4(2048)}, "0 to 2,047"),
    "another network": ({"name": "x", "members": of_layer4(1), "network": "toybox"}, "toybox"),
}


@pytest.mark.parametrize("what", BAD)
def test_what_makes_no_circuit_is_told(script: Script, what: str) -> None:
    sent, said = BAD[what]
    refused = script.post("/circuits", sent)
    assert refused.status_code == 422
    assert said in refused.content.decode()
    assert not Circuit.objects.exists()


def test_others_and_viewers_change_nothing(script: Script, owner: User, resnet: VisionModelRow, teammate: User) -> None:
    row = make_circuit(owner, labelled(layer_of(resnet), 7), "mine")
    for user in (teammate, member("other", "RESEARCHER")):
        other = Script(user)
        assert other.get(f"/circuits/{row.pk}").status_code == 200
        for method, body in (("PATCH", {"name": "theirs"}), ("DELETE", None)):
            assert other.send(method, f"/circuits/{row.pk}", body, If_Match="*").status_code == 403
    assert Circuit.objects.get().name == "mine"
