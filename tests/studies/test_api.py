"""Studies as scripts read and change them."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User

from experiments.models import Image, Study
from tests.support import blind_runs
from tests.support.api_world import KEY, Script
from tests.support.builders import make_run
from tests.support.people import member
from tests.support.unit_pages import RESNET

UNIT = {"model": RESNET, "layer": "layer4", "unit": 7}


def test_a_script_does_what_the_pages_do(study: Study, owner: User) -> None:
    script, run = Script(owner), make_run(owner)
    made = script.post("/studies", {"title": "Mine", "text": "**a**", "items": [UNIT | {"caption": "c"}]})
    assert made.status_code == 201
    path = f"/studies/{made.json()['id']}"
    assert script.get("/studies?q=mine").json()["items"][0]["size"] == 1
    added = script.post(f"{path}/items", {"items": [{"run": run.pk}, UNIT]}).json()
    assert [(each["run"], each["unit"], each["caption"]) for each in added["items"]] == [
        (None, 7, "c"),
        (run.pk, None, ""),
    ]
    item = added["items"][0]["id"]
    assert script.send("DELETE", f"{path}/items/{item}").status_code == 204
    assert script.send("DELETE", f"{path}/items/{item}").status_code == 404
    assert list(Study.objects.get(title="Mine").items.values_list("position", "run")) == [(1, run.pk)]
    assert script.send("PATCH", path, {"title": "Ours"}).status_code == 428
    changed = script.send("PATCH", path, {"title": "Ours", "items": [UNIT]}, If_Match=script.get(path)["ETag"]).json()
    assert (changed["title"], changed["text"], [each["unit"] for each in changed["items"]]) == ("Ours", "**a**", [7])
    share = script.post(f"{path}/shares", {"days": 2}).json()
    assert (share["run"], share["study"], share["show_names"]) == (None, made.json()["id"], False)
    assert "Ours" in script.client.get(share["address"].removeprefix("http://testserver")).content.decode()
    assert [each["id"] for each in script.get(f"{path}/shares").json()["items"]] == [share["id"]]
    assert script.send("DELETE", f"/shares/{share['id']}").status_code == 204
    assert script.send("DELETE", path, If_Match="*").status_code == 204
    assert Study.objects.get() == study


@pytest.mark.parametrize(
    "item",
    [
        {},
        {"run": 99},
        {"run": 1, **UNIT},
        {"model": RESNET, "layer": "layer4"},
        UNIT | {"unit": 2048},
        UNIT | {"layer": "x"},
    ],
)
def test_items_that_are_none_are_refused(study: Study, owner: User, item: dict[str, Any]) -> None:
    response = Script(owner).post(f"/studies/{study.pk}/items", {"items": [item]})
    assert response.status_code == 422
    assert study.items.count() == 2


def test_a_study_is_its_owners(study: Study) -> None:
    script = Script(member("other", "RESEARCHER"))
    for method, path, body in (
        ("PATCH", f"/studies/{study.pk}", {"title": "theirs"}),
        ("DELETE", f"/studies/{study.pk}", None),
        ("POST", f"/studies/{study.pk}/items", {"items": [UNIT]}),
        ("DELETE", f"/studies/{study.pk}/items/{study.items.earliest('pk').pk}", None),
    ):
        assert script.send(method, path, body, If_Match="*").status_code == 403
    assert (Study.objects.get().title, study.items.count()) == ("What it likes", 2)


def test_who_is_to_judge_reads_no_name_of_a_neuron(study: Study, owner: User) -> None:
    Image.objects.create(key=KEY, width=8, height=8, origin="generated")
    blind = blind_runs.blind_run(owner)
    unit = {"model": blind_runs.MODEL, "layer": blind_runs.LAYER, "number": blind_runs.NUMBER}
    study.items.create(position=4, **unit)
    judge = member("judge", "REVIEWER")
    script = Script(judge)
    assert blind_runs.LAYER in script.get(f"/studies/{study.pk}").content.decode()
    blind_runs.queued(blind, judge)
    assert blind_runs.TOLD not in script.get(f"/studies/{study.pk}").content.decode()
