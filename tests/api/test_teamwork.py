"""Saved views, comparisons, similar units, imports and removals by a script: what it gets is what the pages show."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from experiments.core import transfers
from experiments.models import (
    AuditEntry,
    Dataset,
    Import,
    Label,
    Layer,
    LayerIndex,
    Member,
    Role,
    Run,
    SavedView,
    UnitProfile,
    VisionModelRow,
)
from tests.support.api_world import KEY, Script, World, fill, told_run


@pytest.fixture
def world(owner: User) -> World:
    return fill(owner)


@pytest.fixture
def script(owner: User, world: World) -> Script:
    return Script(owner)


@pytest.fixture
def admin(owner: User, script: Script) -> Script:
    Member.objects.filter(user=owner).update(role=Role.ADMIN)
    return script


# --- saved views ---


def test_a_view_is_saved_changed_and_deleted(script: Script) -> None:
    made = script.post("/views", {"name": " Failed ", "query": "status=failed&page=3"})
    assert made.status_code == 201
    assert made.json() | {"id": 0} == {
        "id": 0,
        "name": "Failed",
        "query": "status=failed",
        "list": "runs",
        "shared": False,
        "owner": "owner",
    }
    place = made["Location"].removeprefix("/api/v1")
    tag = script.get(place)["ETag"]
    assert script.send("PUT", place, {"name": "Lost", "shared": True}).status_code == 428
    assert script.send("PUT", place, {"name": "Lost", "shared": True}, If_Match=tag).json()["name"] == "Lost"
    assert script.send("DELETE", place, If_Match=tag).status_code == 412
    assert script.send("DELETE", place, If_Match=script.get(place)["ETag"]).status_code == 204
    assert not SavedView.objects.exists()
    assert list(AuditEntry.objects.order_by("pk").values_list("verb", flat=True)) == [
        "view.saved",
        "view.renamed",
        "view.deleted",
    ]


def test_a_name_is_taken_once(script: Script) -> None:
    script.post("/views", {"name": "Failed"})
    assert script.post("/views", {"name": "Failed"}).status_code == 409
    assert SavedView.objects.count() == 1


def test_views_of_others_are_seen_where_they_share_them_and_never_changed(script: Script, teammate: User) -> None:
    shared = SavedView.objects.create(owner=teammate, name="theirs", shared=True)
    SavedView.objects.create(owner=teammate, name="private")
    assert [view["name"] for view in script.get("/views").json()["items"]] == ["theirs"]
    assert script.send("DELETE", f"/views/{shared.pk}", If_Match="*").status_code == 404


# --- side by side ---


def test_runs_are_compared_as_on_the_page(script: Script, world: World, owner: User) -> None:
    other = told_run(owner)
    Run.objects.filter(pk=other.pk).update(seed=5)
    found = script.get(f"/comparisons?run={world.run.pk}&run={other.pk}&base={other.pk}").json()
    assert (found["runs"], found["base"], found["next"]) == ([world.run.pk, other.pk], other.pk, None)
    lines = {line["name"]: line for line in found["lines"]}
    assert lines["Question"]["same"]
    assert [cell["text"] for cell in lines["Seed"]["cells"]] == ["0", "5"]
    assert lines["Images"]["cells"][0] == {"run": world.run.pk, "text": "3", "difference": "same"}
    (hypotheses,) = {tuple(each["hypotheses"]) for each in found["rounds"][0]["runs"]}
    assert hypotheses == ("It likes red.",)
    assert {image["image"] for image in found["rounds"][0]["runs"][0]["images"]} == {KEY}


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ("run={one}", 422),
        ("run={one}&run={one}", 422),
        ("run={one}&run=999999", 404),
        ("run={one}&run=x", 422),
        ("run={one}&run={two}&base=999999", 422),
    ],
)
def test_a_comparison_that_makes_no_sense_is_refused(
    script: Script, owner: User, world: World, asked: str, status: int
) -> None:
    named = asked.format(one=world.run.pk, two=told_run(owner).pk)
    assert script.get(f"/comparisons?{named}").status_code == status


# --- similar units ---


def test_the_units_most_like_one(script: Script, world: World) -> None:
    place = f"/layers/{world.layer.pk}/units/1/similar"
    assert script.get(f"{place}?dataset=toybox").json()["looking"]
    row = [world.layer.pk, 3, 0.75, 2]
    told = {"measure": "shared exemplars", "images": 200, "layers": 1, "same": [row], "others": []}
    UnitProfile.objects.update(neighbours=told, compared=timezone.now())
    Label.objects.create(text="blue", source="person").units.add(world.layer.unit_set.create(number=3))
    found = script.get(f"{place}?dataset=toybox").json()
    assert found["same"] == [
        {
            "layer_id": world.layer.pk,
            "layer": "layer4",
            "number": 3,
            "similarity": 0.75,
            "shared": 2,
            "labels": ["blue"],
        }
    ]
    assert not found["looking"]
    assert script.get(f"{place}?dataset=nowhere").status_code == 404


# --- taken off the lists ---


def test_what_somebody_added_is_removed_and_what_belongs_to_the_program_stays(admin: Script, world: World) -> None:
    own = VisionModelRow.objects.create(name="hf:x/y", added=timezone.now())
    photographs = Dataset.objects.create(key="folder:/data", label="photographs", added=timezone.now())
    LayerIndex.objects.create(dataset=photographs, layer=world.layer)
    assert admin.send("DELETE", f"/models/{own.pk}").status_code == 204
    assert admin.send("DELETE", f"/datasets/{photographs.pk}").status_code == 204
    assert admin.send("DELETE", f"/models/{world.layer.model_id}").status_code == 409
    assert admin.send("DELETE", f"/datasets/{Dataset.objects.get().pk}").status_code == 409
    assert Layer.objects.filter(pk=world.layer.pk).exists()


# --- imports ---


def test_a_file_is_handed_to_a_worker(script: Script) -> None:
    given = b"layer,unit,description\nlayer4,3,dogs\n"
    made = script.upload("/imports", {"kind": "labels", "model": "toybox", "source": "milan", "file": given})
    assert made.status_code == 202, made.content
    row = Import.objects.get()
    with transfers.fetch(row.place) as path:
        assert path.read_bytes() == given
    said = {name: value for name, value in row.job.options.items() if value}
    assert (said, row.job.asked_by.get_username()) == ({"model": "toybox", "source": "milan"}, "owner")
    read = script.get(made["Location"].removeprefix("/api/v1")).json()
    assert (read["kind"], read["size"], read["status"], read["runs"]) == ("labels", len(given), "queued", [])


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": "labels", "model": "toybox", "file": b"x"},
        {"kind": "photographs", "file": b"x"},
        {"kind": "bundle", "file": b""},
        {"kind": "bundle"},
        {"kind": "history", "model": "toybox", "layer": "layer4", "unit": "one", "file": b"x"},
    ],
)
def test_a_file_that_nobody_could_read_is_refused(script: Script, fields: dict[str, object]) -> None:
    assert script.upload("/imports", dict(fields)).status_code == 422
    assert not Import.objects.exists()
