"""Check members of a circuit as people name them, and find them in the catalogue."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from experiments.core.errors import InvalidInput
from experiments.core.params import clean_text
from experiments.models import CircuitMemberRow, Layer, Unit, VisionModelRow
from workers.record.circuits import CircuitMember, find_size_problem

MAX_LABEL = 500
MEMBER_KINDS = frozenset({"conv", "mlp", "logit", "latent"})
"""Kinds of layers whose units are parts of a network."""


@dataclass(frozen=True)
class MemberDraft:
    """A member as a person names it; `revision` and `label` come with a circuit from elsewhere."""

    member: CircuitMember
    revision: str = ""
    label: str = ""


def draft_places(places: Iterable[tuple[Layer, int]]) -> list[MemberDraft]:
    return [MemberDraft(CircuitMember(layer.model.name, layer.name, number)) for layer, number in places]


def find_network(model: VisionModelRow) -> str:
    """Return the key of the model's network: its own, or the one that it is on top of."""
    # An auto-encoder is on top of another model.
    return model.base or model.name


def build_members(drafts: Sequence[MemberDraft], network: str = "") -> tuple[str, list[CircuitMemberRow]]:
    """Return the key of the network, and the rows without their circuit. All must be of `network` if given.

    Raises InvalidInput for too few or too many members, repeated ones, missing ones, and members of two networks.
    """
    members = [each.member for each in drafts]
    if problem := find_size_problem(members):
        raise InvalidInput(problem, "members")
    # Two queries for all members, however many there are.
    layers = _find_layers(members)
    for each in members:
        _check_member(each, layers.get((each.model, each.layer)))
    models = [layers[each.model, each.layer].model for each in members]
    network = _check_network(members, models, network)
    units = _find_units([(layers[each.model, each.layer], each.unit) for each in members])
    rows = [
        CircuitMemberRow(
            position=position,
            unit=units[layers[each.member.model, each.member.layer].pk, each.member.unit],
            model=each.member.model,
            layer=each.member.layer,
            number=each.member.unit,
            revision=each.revision or model.revision,
            label=clean_text(each.label, MAX_LABEL),
        )
        for position, (each, model) in enumerate(zip(drafts, models, strict=True), 1)
    ]
    return network, rows


def _find_layers(members: Sequence[CircuitMember]) -> Mapping[tuple[str, str], Layer]:
    """Return the layers by key of the model and name."""
    # The product of both sets may find layers that are not asked for; the dictionary makes them harmless.
    models, names = {each.model for each in members}, {each.layer for each in members}
    rows = Layer.objects.select_related("model").filter(model__name__in=models, name__in=names)
    return {(row.model.name, row.name): row for row in rows}


def _check_member(member: CircuitMember, layer: Layer | None) -> None:
    if layer is None:
        raise InvalidInput(f"There is no layer {member.layer} of {member.model} here. List the models.", "members")
    if layer.kind not in MEMBER_KINDS:
        words = f"The {layer.plural} of {layer.name} of {layer.model.name} are no parts of a network"
        raise InvalidInput(f"{words}, so they cannot be in a circuit.", "members")
    if member.unit >= layer.units:
        words = (
            f"{layer.name} of {layer.model.name} has no unit {member.unit:,}: its units are 0 to {layer.units - 1:,}."
        )
        raise InvalidInput(words, "members")


def _check_network(members: Sequence[CircuitMember], models: Sequence[VisionModelRow], network: str) -> str:
    """Return the network of all members. Raises InvalidInput if they differ."""
    # Without a network, the first member decides.
    wanted = network or find_network(models[0])
    for member, model in zip(members, models, strict=True):
        if (found := find_network(model)) != wanted:
            raise InvalidInput(
                f"A circuit is of one network. {member} belongs to {found}, and this circuit to {wanted}.", "members"
            )
    return wanted


def _find_units(places: Sequence[tuple[Layer, int]]) -> Mapping[tuple[int, int], Unit]:
    """Return the rows of these units by layer and number; missing rows are created."""
    # With `ignore_conflicts` Django sets no keys, so the rows are read afterwards.
    Unit.objects.bulk_create([Unit(layer=layer, number=number) for layer, number in places], ignore_conflicts=True)
    # One query for each layer.
    numbers: dict[int, list[int]] = {}
    for layer, number in places:
        numbers.setdefault(layer.pk, []).append(number)
    return {
        (unit.layer_id, unit.number): unit
        for layer, some in numbers.items()
        for unit in Unit.objects.filter(layer=layer, number__in=some)
    }
