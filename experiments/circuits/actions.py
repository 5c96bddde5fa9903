"""Actions on circuits: create, rename, add and remove members, change as a whole, delete, search for."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from django.db import transaction
from django.http import Http404

from experiments.circuits.members import MemberDraft, build_members, draft_places
from experiments.circuits.searches import CircuitQuestion, check_question, read_found
from experiments.core import audit
from experiments.core.actors import Actor
from experiments.core.asked_once import ask_unless_answered, find_or_add
from experiments.core.audit import Verb
from experiments.core.errors import InvalidInput
from experiments.core.params import bounded_text, require_line
from experiments.models import (
    Circuit,
    CircuitMemberRow,
    CircuitSearch,
    Dataset,
    JobKind,
    Layer,
    Role,
    VisionModelRow,
)
from experiments.units.chosen import Target
from workers.record.circuits import find_size_problem

CHANGES = Role.RESEARCHER
MAX_NAME = 80
MAX_NOTE = 2_000
TARGET = Target("circuit", "Circuits", "name", MAX_NAME, "Circuit of this network")


@transaction.atomic
def create_circuit(
    actor: Actor, name: str, drafts: Sequence[MemberDraft], note: str = "", network: str = ""
) -> Circuit:
    """Create a circuit of the actor's own, of `network` if given. Raises InvalidInput."""
    actor.require(CHANGES)
    row = Circuit(owner=actor.person, name=_check_name(name), note=_check_note(note))
    # Members are checked before anything is written.
    row.network, members = build_members(drafts, network)
    # The key of the network stays if its model is deleted later; `base` then becomes null.
    row.base = VisionModelRow.objects.filter(name=row.network).first()
    row.save()
    _insert(row, members)
    audit.record(actor, Verb.CIRCUIT_CREATED, row, members=len(members))
    return row


@transaction.atomic
def rename_circuit(actor: Actor, pk: int, name: str, note: str) -> Circuit:
    """Rename a circuit. Raises InvalidInput, and PermissionDenied for another person's."""
    row = lock_circuit(actor, pk)
    # Before the change, so that the record has the old name beside the new one.
    audit.record(actor, Verb.CIRCUIT_RENAMED, row, name=name)
    row.name, row.note = _check_name(name), _check_note(note)
    row.save(update_fields=["name", "note"])
    return row


@transaction.atomic
def add_members(actor: Actor, pk: int, drafts: Sequence[MemberDraft]) -> int:
    """Add those that are not in the circuit yet, and return their number. Raises InvalidInput, PermissionDenied."""
    row = lock_circuit(actor, pk)
    there = [each.member for each in _list_members(row)]
    fresh = [each for each in dict.fromkeys(drafts) if each.member not in there]
    if not fresh:
        return 0
    # `build_members` sees only the fresh ones; the size of the whole is checked here.
    if problem := find_size_problem([*there, *(each.member for each in fresh)]):
        raise InvalidInput(problem, "members")
    _, members = build_members(fresh, row.network)
    # After the highest position, not after the count: removed members leave gaps.
    last = max((each.position for each in row.members.all()), default=0)
    _insert(row, members, after=last)
    audit.record(actor, Verb.CIRCUIT_EXTENDED, row, members=len(members))
    return len(members)


@transaction.atomic
def remove_members(actor: Actor, pk: int, chosen: Collection[int]) -> int:
    """Remove the members with these keys, and return how many existed. Raises InvalidInput if none would be left."""
    row = lock_circuit(actor, pk)
    leaving = row.members.filter(pk__in=chosen)
    count = leaving.count()
    if not count:
        raise InvalidInput("Tick the members to remove first.", "members")
    if count == row.members.count():
        raise InvalidInput("A circuit has at least one member. Keep one, or delete the circuit.", "members")
    leaving.delete()
    audit.record(actor, Verb.CIRCUIT_REDUCED, row, members=count)
    return count


@transaction.atomic
def change_circuit(
    actor: Actor, pk: int, name: str | None, note: str | None, drafts: Sequence[MemberDraft] | None
) -> Circuit:
    """Change what is not None; `drafts` replace all members. Raises InvalidInput."""
    row = lock_circuit(actor, pk)
    row.name = row.name if name is None else _check_name(name)
    row.note = row.note if note is None else _check_note(note)
    row.save(update_fields=["name", "note"])
    if drafts is not None:
        # Of the same network still: runs and graphs of the circuit refer to it.
        _, members = build_members(drafts, row.network)
        row.members.all().delete()
        _insert(row, members)
    audit.record(actor, Verb.CIRCUIT_CHANGED, row, members=row.members.count())
    return row


@transaction.atomic
def delete_circuit(actor: Actor, pk: int) -> None:
    """Delete a circuit. Its units and their labels stay. Raises PermissionDenied for another person's."""
    row = lock_circuit(actor, pk)
    # Before the deletion, which empties the key that the record needs.
    audit.record(actor, Verb.CIRCUIT_DELETED, row, members=row.members.count())
    row.delete()


@transaction.atomic
def search_circuit(actor: Actor, layer: Layer, dataset: Dataset, question: CircuitQuestion) -> CircuitSearch:
    """Ask a worker to find the units of a layer that a class depends on. The same question is measured once; a
    stopped or failed one starts again. Raises InvalidInput."""
    actor.require(CHANGES)
    asked = vars(check_question(layer, question))
    key = CircuitSearch.key_of(layer, dataset, **asked)
    row, _ = find_or_add(CircuitSearch, key, asked | {"layer": layer, "dataset": dataset})
    ask_unless_answered(actor, row, JobKind.CIRCUIT, Verb.CIRCUIT_SEARCHED, dataset=dataset.key)
    return row


@transaction.atomic
def keep_found(actor: Actor, row: CircuitSearch, name: str, count: int) -> Circuit:
    """Create a circuit from the strongest members of a search's result. Raises InvalidInput."""
    report = read_found(row)
    found = report.members if report else ()
    if not 1 <= count <= len(found):
        raise InvalidInput(f"{len(found)} members were found. Keep 1 to {len(found)} of them, not {count}.", "count")
    # Results are sorted, strongest first.
    drafts = draft_places((row.layer, each.unit) for each in found[:count])
    return create_circuit(actor, name, drafts, f"Found by effect on the logit of {row.target}.")


def lock_circuit(actor: Actor, pk: int) -> Circuit:
    """Lock a circuit that the actor may change in this transaction. Raises Http404, PermissionDenied."""
    actor.require(CHANGES)
    row = Circuit.objects.select_for_update().filter(pk=pk).first()
    if row is None:
        raise Http404(f"There is no circuit {pk}.")
    actor.require_own("created this circuit", row.owner_id)
    return row


def _list_members(row: Circuit) -> list[CircuitMemberRow]:
    return list(row.members.select_related("unit__layer__model"))


def _insert(row: Circuit, members: Sequence[CircuitMemberRow], after: int = 0) -> None:
    for each in members:
        each.circuit, each.position = row, each.position + after
    CircuitMemberRow.objects.bulk_create(members)


def _check_name(name: str) -> str:
    return require_line(name, "name", "circuit", MAX_NAME)


def _check_note(note: str) -> str:
    return bounded_text(note, "note", "circuit", MAX_NOTE)
