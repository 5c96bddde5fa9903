"""Circuits: named sets of units and latents of one network; list, read, create, change, delete, and their files."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Field, Query, Router, Schema, Status

from experiments.api.auth import authorize
from experiments.api.cursors import ListPage, Paging, page
from experiments.api.fields import NO_NUL, Body, Id, Name, UnitNumber, UserName, Words, find
from experiments.api.filters import read_filters, with_filters
from experiments.api.idempotency import answer_once
from experiments.api.versions import must_match
from experiments.circuits import actions, lists
from experiments.circuits.members import MemberDraft
from experiments.core.actors import Actor
from experiments.core.system_names import SystemNameMasker
from experiments.models import Circuit, TokenScope
from workers.record.circuits import CircuitMember

router = Router(tags=["Circuits"])
Typed = Annotated[str, Field(max_length=10_000, pattern=NO_NUL)]
"""A text whose length the action checks, with a message that names the maximum."""


class CircuitMemberIn(Body):
    """A unit, or a latent of an auto-encoder "sae:NAME"."""

    model: Name
    layer: Name
    unit: UnitNumber
    revision: Words = Field("", description="of the weights, where the circuit comes from; else those that are here")
    label: Typed = Field("", description="what it is called where the circuit comes from")


class CircuitIn(Body):
    """Accepts the answer of `GET /circuits/{id}/file` unchanged."""

    name: Typed
    note: Typed = ""
    network: Words = Field("", description="refuse members of another; else that of the members")
    members: list[CircuitMemberIn]


class CircuitChange(Body):
    """Fields that are left out stay unchanged."""

    name: Typed | None = None
    note: Typed | None = None
    members: list[CircuitMemberIn] | None = Field(None, description="in place of all members")


class CircuitMemberOut(Schema):
    """`revision` is that of the weights when the member was added."""

    model: str
    layer: str
    unit: int
    revision: str
    label: str


class CircuitFileOut(Schema):
    """A circuit, in a form that another installation can create again."""

    name: str
    note: str
    network: str
    members: list[CircuitMemberOut]


class CircuitOut(Schema):
    """A circuit in a list; read it for its members."""

    id: int
    name: str
    note: str
    network: str
    owner: UserName
    created: datetime
    size: int = Field(description="members")


class MemberStateOut(CircuitMemberOut):
    """A member with its state in this installation."""

    is_here: bool = Field(description="false if the unit, layer or model was deleted")
    has_other_weights: bool = Field(description="whether the model has other weights than when it was added")
    image: str | None = Field(description="its first exemplar, masked")


class CircuitDetail(CircuitOut):
    members: list[MemberStateOut]


@with_filters(lists.FILTERS)
class CircuitFilters(Schema):
    """The filters of the page Circuits."""


def _circuit_out(row: Circuit) -> CircuitOut:
    return CircuitOut(**_describe_row(row), size=len(row.members.all()))


def _describe_row(row: Circuit) -> dict[str, Any]:
    return {
        "id": row.pk,
        "name": row.name,
        "note": row.note,
        "network": row.network,
        "owner": row.owner,
        "created": row.created,
    }


def _circuit_detail(row: Circuit, names: SystemNameMasker) -> CircuitDetail:
    members = lists.view_members(row, names)
    described = lists.describe_circuit(row, members)["members"]
    found = [
        MemberStateOut(
            **about,
            is_here=each.tile is not None,
            has_other_weights=each.row.has_other_weights,
            image=each.tile.pictures[0].masked if each.tile and each.tile.pictures else None,
        )
        for about, each in zip(described, members, strict=True)
    ]
    return CircuitDetail(**_describe_row(row), size=len(found), members=found)


def _draft(members: Sequence[CircuitMemberIn]) -> list[MemberDraft]:
    # The revision of a file is kept, so that the page can say that other weights are here.
    return [
        MemberDraft(CircuitMember(each.model, each.layer, each.unit), each.revision, each.label) for each in members
    ]


@router.get("/circuits", response=ListPage[CircuitOut], summary="List circuits")
def list_circuits(request: HttpRequest, filters: Query[CircuitFilters], paging: Query[Paging]) -> ListPage[CircuitOut]:
    """Newest first."""
    authorize(request)
    rows = lists.circuits_from(read_filters(filters)).require_sense()
    return page(request, rows, ["-pk"], paging, _circuit_out)


@router.get("/circuits/{pk}", response=CircuitDetail, summary="Read a circuit")
def read_circuit(request: HttpRequest, pk: Id) -> CircuitDetail:
    """Read a circuit with its members in order; a member whose unit was deleted keeps its name."""
    names = SystemNameMasker(authorize(request))
    return _circuit_detail(find(lists.list_circuits(), pk=pk), names)


@router.get("/circuits/{pk}/file", response=CircuitFileOut, summary="Export a circuit")
def export_circuit(request: HttpRequest, pk: Id) -> CircuitFileOut:
    """Send the answer to `POST /circuits` of another installation with the same models to create the circuit there."""
    names = SystemNameMasker(authorize(request))
    row = find(Circuit.objects.all(), pk=pk)
    return CircuitFileOut(**lists.describe_circuit(row, lists.view_members(row, names)))


@router.post("/circuits", response={201: CircuitDetail}, summary="Create a circuit")
def create_circuit(request: HttpRequest, circuit: CircuitIn, response: HttpResponse) -> Status[dict[str, Any]]:
    """Create a circuit of 1 to 200 units and latents of one network."""
    user = authorize(request, actions.CHANGES, TokenScope.WRITE)

    def make() -> tuple[CircuitDetail, str]:
        actor = Actor.behind(request, user)
        row = actions.create_circuit(actor, circuit.name, _draft(circuit.members), circuit.note, circuit.network)
        detail = _circuit_detail(find(lists.list_circuits(), pk=row.pk), SystemNameMasker(user))
        return detail, reverse("api:read_circuit", args=[row.pk])

    return Status(201, answer_once(request, response, user, make))


@router.patch("/circuits/{pk}", response=CircuitDetail, summary="Change a circuit")
def change_circuit(request: HttpRequest, pk: Id, changed: CircuitChange) -> CircuitDetail:
    """Change your own circuit; admins may change any. Needs its ETag in If-Match, so that no other change is lost."""
    actor = Actor.behind(request, authorize(request, actions.CHANGES, TokenScope.WRITE))
    names = SystemNameMasker(actor.user)
    with transaction.atomic():
        _lock_as_read(request, actor, pk, names)
        drafts = None if changed.members is None else _draft(changed.members)
        actions.change_circuit(actor, pk, changed.name, changed.note, drafts)
    return _circuit_detail(find(lists.list_circuits(), pk=pk), names)


@router.delete("/circuits/{pk}", response={204: None}, summary="Delete a circuit")
def delete_circuit(request: HttpRequest, pk: Id) -> Status[None]:
    """Delete your own circuit; admins may delete any. Its units stay. Needs its ETag too."""
    actor = Actor.behind(request, authorize(request, actions.CHANGES, TokenScope.WRITE))
    with transaction.atomic():
        _lock_as_read(request, actor, pk, SystemNameMasker(actor.user))
        actions.delete_circuit(actor, pk)
    return Status(204, None)


def _lock_as_read(request: HttpRequest, actor: Actor, pk: int, names: SystemNameMasker) -> None:
    """Raise Refusal if the circuit has changed since the client read it, PermissionDenied for another person's."""
    find(Circuit.objects.all(), pk=pk)
    actions.lock_circuit(actor, pk)
    # The ETag is that of the whole answer, which is built again under the lock.
    must_match(request, _circuit_detail(find(lists.list_circuits(), pk=pk), names))
