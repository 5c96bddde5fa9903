"""What a circuit takes as members, who changes one, and what stays when the catalogue changes."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied

from experiments.circuits import actions, lists
from experiments.circuits.members import MemberDraft
from experiments.core.actors import Actor
from experiments.core.errors import InvalidInput
from experiments.core.system_names import SystemNameMasker
from experiments.models import AuditEntry, Circuit, Unit, VisionModelRow
from tests.support.people import member
from tests.support.unit_pages import RESNET, labelled, layer_of, measured
from workers.record.circuits import MAX_MEMBERS, CircuitMember

SAE = "sae:edges"


@pytest.fixture(autouse=True)
def network(resnet: VisionModelRow) -> VisionModelRow:
    """A network, an auto-encoder over its last layer, and another network."""
    row = VisionModelRow.objects.create(name=SAE, revision="aa", base=RESNET)
    row.layers.create(position=0, name="layer4", path="layer4", kind="latent", units=512)
    other = VisionModelRow.objects.create(name="toybox", revision="t")
    other.layers.create(position=0, name="layer4", path="layer4", kind="conv", units=64)
    other.layers.create(position=1, name="or", path="or", kind="concept", units=9)
    return resnet


@pytest.fixture
def actor(owner: User) -> Actor:
    return Actor(owner)


def drafts(*places: tuple[str, str, int]) -> list[MemberDraft]:
    return [MemberDraft(CircuitMember(*place)) for place in places]


def layer4(numbers: Iterable[int]) -> list[MemberDraft]:
    return drafts(*((RESNET, "layer4", number) for number in numbers))


def members_of(row: Circuit) -> list[str]:
    return [str(each) for each in row.members.all()]


def test_units_and_latents_of_one_network_make_a_circuit(actor: Actor) -> None:
    row = actions.create_circuit(actor, "  sky \n lines ", drafts((RESNET, "conv1", 3), (SAE, "layer4", 500)), "seen")
    assert (row.name, row.note, row.network, row.base and row.base.name) == ("sky lines", "seen", RESNET, RESNET)
    assert members_of(row) == [f"{RESNET} / conv1 / unit 3", f"{SAE} / layer4 / unit 500"]
    assert list(row.members.values_list("revision", flat=True)) == ["1", "aa"]
    assert AuditEntry.objects.get().details == {"members": 2}


BAD = {
    "two networks": (drafts((RESNET, "layer4", 1), ("toybox", "layer4", 1)), "toybox"),
    "none": ([], "not 0"),
    "too many": (layer4(range(10_000)), "not 10,000"),
    "twice": (layer4([5, 6, 5]), "unit 5 is in the circuit twice"),
    "no such model": (drafts(("hf:none", "layer4", 1)), "hf:none"),
    "no such layer": (drafts((RESNET, "layer9", 1)), "layer9"),
    "beyond the layer": (layer4([2048]), "0 to 2,047"),
    "no part of a network": (drafts(("toybox", "or", 1)), "no parts of a network"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_members_are_refused_by_name_and_nothing_is_lost(actor: Actor, what: str) -> None:
    wrong, said = BAD[what]
    row = actions.create_circuit(actor, "kept", layer4([1]))
    before = Unit.objects.count()
    for act in (
        lambda: actions.create_circuit(actor, "new", wrong),
        lambda: actions.change_circuit(actor, row.pk, "other", None, wrong),
    ):
        with pytest.raises(InvalidInput, match=said):
            act()
    assert [(each.name, members_of(each)) for each in Circuit.objects.all()] == [("kept", members_of(row))]
    assert (len(members_of(row)), Unit.objects.count(), AuditEntry.objects.count()) == (1, before, 1)


@pytest.mark.parametrize(("name", "said"), [("", "a name"), (" \n", "a name"), ("x" * 200, "200 characters")])
def test_a_name_is_short_and_not_empty(actor: Actor, name: str, said: str) -> None:
    row = actions.create_circuit(actor, "kept", layer4([1]))
    for act in (
        lambda: actions.create_circuit(actor, name, layer4([1])),
        lambda: actions.rename_circuit(actor, row.pk, name, ""),
    ):
        with pytest.raises(InvalidInput, match=said):
            act()
    assert Circuit.objects.get().name == "kept"


def test_members_are_added_once_and_up_to_the_limit(actor: Actor) -> None:
    row = actions.create_circuit(actor, "grows", layer4(range(MAX_MEMBERS - 1)))
    assert actions.add_members(actor, row.pk, layer4([0, 1])) == 0
    with pytest.raises(InvalidInput, match=f"not {MAX_MEMBERS + 1}"):
        actions.add_members(actor, row.pk, layer4([1000, 1001]))
    with pytest.raises(InvalidInput, match="one network"):
        actions.add_members(actor, row.pk, drafts(("toybox", "layer4", 1)))
    assert actions.add_members(actor, row.pk, layer4([0, 1000])) == 1
    assert members_of(row)[-1].endswith("unit 1000")


def test_the_last_member_stays(actor: Actor) -> None:
    row = actions.create_circuit(actor, "shrinks", layer4([1, 2]))
    keys = list(row.members.values_list("pk", flat=True))
    for chosen in ([], keys, [10**15]):
        with pytest.raises(InvalidInput):
            actions.remove_members(actor, row.pk, chosen)
    assert actions.remove_members(actor, row.pk, keys[:1]) == 1
    assert members_of(row) == [f"{RESNET} / layer4 / unit 2"]


def test_a_circuit_is_its_owners_and_admins(actor: Actor, teammate: User) -> None:
    row = actions.create_circuit(actor, "mine", layer4([1, 2]))
    other, admin = Actor(member("other", "RESEARCHER")), Actor(member("boss", "ADMIN"))
    for stranger in (other, Actor(teammate)):
        with pytest.raises(PermissionDenied):
            actions.rename_circuit(stranger, row.pk, "theirs", "")
        with pytest.raises(PermissionDenied):
            actions.add_members(stranger, row.pk, layer4([3]))
        with pytest.raises(PermissionDenied):
            actions.delete_circuit(stranger, row.pk)
    assert actions.rename_circuit(admin, row.pk, "ours", "").name == "ours"
    with pytest.raises(PermissionDenied):
        actions.create_circuit(Actor(teammate), "viewer's", layer4([1]))


def test_a_member_keeps_its_name_when_its_unit_or_model_is_deleted(actor: Actor, network: VisionModelRow) -> None:
    row = actions.create_circuit(actor, "stays", drafts((RESNET, "layer4", 1), (SAE, "layer4", 2)))
    Unit.objects.get(number=1).delete()
    VisionModelRow.objects.filter(name=SAE).delete()
    network.delete()
    row.refresh_from_db()
    views = lists.view_members(row, SystemNameMasker(None))
    assert [(str(each.member), each.tile) for each in views] == [
        (f"{RESNET} / layer4 / unit 1", None),
        (f"{SAE} / layer4 / unit 2", None),
    ]
    assert (row.base, row.network) == (None, RESNET)


def test_other_weights_are_told(actor: Actor, network: VisionModelRow) -> None:
    row = actions.create_circuit(actor, "old", layer4([1]))
    VisionModelRow.objects.filter(pk=network.pk).update(revision="2")
    assert row.members.get().has_other_weights
    network.layers.filter(name="layer4").update(units=1)
    assert lists.view_members(row, SystemNameMasker(None))[0].tile is None


def test_columns_follow_the_network_and_rows_show_the_first_exemplars(actor: Actor, network: VisionModelRow) -> None:
    places = [(SAE, "layer4", 9), (RESNET, "layer4", 7), (RESNET, "conv1", 0), (RESNET, "logits", 1)]
    row = actions.create_circuit(actor, "all", drafts(*places))
    measured(labelled(layer_of(network), 7, "red balls"))
    members = lists.view_members(row, SystemNameMasker(None))
    columns = [(each.model, each.layer) for each in lists.group_by_layer(row, members)]
    assert columns == [(RESNET, "conv1"), (RESNET, "layer4"), (SAE, "layer4"), (RESNET, "logits")]
    assert [each.label for each in members] == ["", "red balls", "", ""]
    (summary,) = lists.draw_rows(lists.list_circuits(), SystemNameMasker(None))
    assert (summary.size, summary.layers, len(summary.pictures)) == (4, 4, 1)
