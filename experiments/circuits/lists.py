"""List circuits for pages and API: rows of the list, members with labels and exemplars, the file."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Count, Prefetch, QuerySet

from experiments.api.fields import Words
from experiments.core.system_names import SystemNameMasker
from experiments.display.narrowing import (
    Filter,
    Narrowed,
    contain_words,
    equal,
    index_filters,
    narrow_down,
    offer_values,
)
from experiments.models import Circuit, CircuitMemberRow, Layer, Role
from experiments.units.tiles import UnitTile, read_tiles
from workers.record.circuits import CircuitMember

ROW_PICTURES = 4
"""Members of a circuit whose first exemplars are in its row of the list."""
MEMBER_PICTURES = 3
MAX_CIRCUITS = 200
"""Maximum circuits that a unit's page lists or a form offers, the newest."""
FILTERS = index_filters(
    Filter("q", "Words", contain_words("name"), Words, "words of the name", in_fields=False),
    Filter(
        "network",
        "Network",
        equal("network"),
        Words,
        "key of the model",
        choices=offer_values(lambda _: Circuit.objects.all(), "network"),
    ),
)
"""By name in the address, for the page and the API."""


@dataclass(frozen=True)
class MemberView:
    """A member; `tile` is None if the catalogue no longer has the unit."""

    row: CircuitMemberRow
    tile: UnitTile | None

    @property
    def member(self) -> CircuitMember:
        return self.row.member

    @property
    def label(self) -> str:
        """Return the unit's current label here, else the one that came with the circuit."""
        return self.tile.label.text if self.tile and self.tile.label else self.row.label


@dataclass(frozen=True)
class CircuitColumn:
    """The members of one layer of one model."""

    model: str
    layer: str
    members: Sequence[MemberView]


@dataclass(frozen=True)
class CircuitSummary:
    """A circuit in the list."""

    row: Circuit
    size: int
    layers: int
    pictures: Sequence[str]
    """Keys of masked exemplars of its first members."""


def circuits_from(params: Mapping[str, str]) -> Narrowed:
    """Return the circuits that an address selects, newest first."""
    return narrow_down(list_circuits(), params, FILTERS)


def list_circuits() -> QuerySet[Circuit]:
    """Return circuits with their members, newest first."""
    members = CircuitMemberRow.objects.select_related("unit__layer__model")
    return Circuit.objects.select_related("owner", "base").prefetch_related(Prefetch("members", queryset=members))


def list_circuits_of(layer: Layer, number: int) -> QuerySet[Circuit]:
    """Return the circuits with this unit as a member, newest first."""
    rows = Circuit.objects.filter(members__unit__layer=layer, members__unit__number=number)
    # The join would list a circuit once for each matching member.
    return rows.distinct()[:MAX_CIRCUITS]


def find_with_members(network: str, members: Sequence[CircuitMember]) -> Circuit | None:
    """Return the newest circuit with exactly these members."""
    # Databases cannot compare sets: fetch the circuits with the first member, and compare here.
    first = members[0] if members else CircuitMember("", "", 0)
    some = {"members__model": first.model, "members__layer": first.layer, "members__number": first.unit}
    rows = list_circuits().filter(network=network, **some)[:MAX_CIRCUITS]
    return next((row for row in rows if {each.member for each in row.members.all()} == {*members}), None)


def list_circuits_for(user: User, role: Role | None, networks: Collection[str]) -> QuerySet[Circuit]:
    """Return the circuits of a network to which a user may add members; none for units of several networks."""
    # A circuit is of one network, so units of several cannot join one.
    rows = Circuit.objects.filter(network__in=networks) if len(networks) == 1 else Circuit.objects.none()
    rows = rows if role == Role.ADMIN else rows.filter(owner=user)
    return rows.annotate(size=Count("members"))[:MAX_CIRCUITS]


def draw_rows(rows: Iterable[Circuit], names: SystemNameMasker) -> list[CircuitSummary]:
    """Return rows of the list, with the same number of queries for a page as for one."""
    some = list(rows)
    shown = {row.pk: [each.place for each in row.members.all() if each.place][:ROW_PICTURES] for row in some}
    # Each unit once, although several circuits may contain it.
    tiles = read_tiles(list({place: None for places in shown.values() for place in places}), names)
    pictures = {(tile.layer, tile.number): tile.pictures[0].masked for tile in tiles if tile.pictures}
    return [
        CircuitSummary(
            row,
            len(row.members.all()),
            len({(each.member.model, each.member.layer) for each in row.members.all()}),
            [pictures[place] for place in shown[row.pk] if place in pictures],
        )
        for row in some
    ]


def view_members(row: Circuit, names: SystemNameMasker) -> list[MemberView]:
    """Return the members in order."""
    members = list(row.members.select_related("unit__layer__model"))
    places = [each.place for each in members if each.place]
    tiles = {(tile.layer.pk, tile.number): tile for tile in read_tiles(places, names, MEMBER_PICTURES)}
    return [MemberView(each, tiles.get((each.place[0].pk, each.place[1])) if each.place else None) for each in members]


def group_by_layer(row: Circuit, members: Sequence[MemberView]) -> list[CircuitColumn]:
    """Return a column for each layer in the order of the network; latents come after the units of the layer below."""
    columns: dict[tuple[str, str], list[MemberView]] = {}
    for each in members:
        columns.setdefault((each.member.model, each.member.layer), []).append(each)
    # An auto-encoder's layer has the name of the layer below.
    # Layers that are not in the catalogue any more come last.
    positions = dict(Layer.objects.filter(model__name=row.network).values_list("name", "position"))

    def rank(place: tuple[str, str]) -> tuple[float, bool, str]:
        model, layer = place
        return positions.get(layer, math.inf), model != row.network, model

    return [CircuitColumn(*place, columns[place]) for place in sorted(columns, key=rank)]


def describe_circuit(row: Circuit, members: Sequence[MemberView]) -> Mapping[str, Any]:
    """Return the circuit as a file, from which another installation can create it again."""
    return {
        "name": row.name,
        "note": row.note,
        "network": row.network,
        "members": [
            {
                "model": each.member.model,
                "layer": each.member.layer,
                "unit": each.member.unit,
                "revision": each.row.revision,
                "label": each.label,
            }
            for each in members
        ],
    }
