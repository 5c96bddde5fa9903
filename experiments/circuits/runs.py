"""Show what is known of a circuit: its runs and labels, whether a label explains its members, its exemplars.

Labels, checks and exemplars are of its current members; runs on earlier members say so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet

from experiments.circuits.actions import CHANGES
from experiments.core.actors import Actor
from experiments.core.errors import StateConflict
from experiments.core.units_of_runs import keep_circuit
from experiments.core.visibility import visible_to
from experiments.display.image_cards import ImageCard
from experiments.display.label_checks import read_check
from experiments.display.plots import Scale
from experiments.models import Circuit, Exemplar, LabelCheck, Run, Unit, UnitProfile
from experiments.models.evaluation import DEVELOPMENT
from experiments.units import actions as units
from workers.record.circuits import CIRCUIT, CircuitFindings, CircuitMember, MemberFinding, find_number

RUNS = 20
"""Maximum runs that a circuit's page lists, the newest."""
CHECKS = 10
"""Maximum checked labels whose members the page offers to compare, the newest."""
UNSHOWN = ("limits", "versions")


@dataclass(frozen=True)
class StudiedMember:
    """A member, and what a label explains of it; `explains` is by how much r falls without it."""

    finding: MemberFinding
    explains: float | None

    @property
    def member(self) -> CircuitMember:
        return CircuitMember(self.finding.model, self.finding.layer, self.finding.unit)


@dataclass(frozen=True)
class CheckedMembers:
    """The members of a circuit on the images of a label check."""

    check: LabelCheck
    findings: CircuitFindings
    members: Sequence[StudiedMember]

    @classmethod
    def of(cls, check: LabelCheck) -> CheckedMembers | None:
        """Return the members; None if they were not measured, or the row holds something else."""
        # Only checks on dataset images measure the members one by one.
        natural = read_check(check).natural
        if natural is None or natural.circuit is None:
            return None
        found, r = natural.circuit, natural.circuit.pearson
        rows = [
            # Positive: the label explains the circuit better with this member than without.
            StudiedMember(each, None if r is None or each.pearson_without is None else r - each.pearson_without)
            for each in found.members
        ]
        return cls(check, found, rows)


@dataclass(frozen=True)
class CircuitExemplars:
    """The images with the highest activation of a circuit, over one dataset."""

    profile: UnitProfile
    images: Sequence[Exemplar]

    @property
    def cards(self) -> list[ImageCard]:
        return [ImageCard.exemplar(each) for each in self.images]

    @property
    def mean(self) -> float | None:
        return sum(each.activation for each in self.images) / len(self.images) if self.images else None

    @property
    def scale(self) -> Scale:
        return Scale.of([each.activation for each in self.images], self.mean)


def number_of(row: Circuit) -> int:
    """Return the number of the unit for its current members."""
    return find_number([each.member for each in row.members.all()])


def find_studied(network: str, number: int) -> Unit | None:
    """Return the unit of these members; None if they were never asked about."""
    # A circuit is also a unit of the layer "circuit": runs, labels and exemplars work on it as on any unit.
    rows = Unit.objects.filter(layer__model__name=network, layer__kind=CIRCUIT, number=number)
    return rows.select_related("layer__model").first()


def list_runs(network: str, number: int, row: Circuit | None = None) -> QuerySet[Run]:
    """Return the runs on these members, and on earlier ones of the circuit; newest first."""
    # The number is of these members; runs that started from the circuit's page also carry its key.
    meant = Q(unit=number) | (Q(options__circuit=row.pk) if row else Q())
    rows = visible_to(Run.objects.filter(meant, system_kind=CIRCUIT, model=network))
    return rows.select_related("owner", "label_check").defer(*UNSHOWN)


def list_checked(unit: Unit | None) -> list[CheckedMembers]:
    """Return what the checks of its labels found of the members, newest first."""
    if unit is None:
        return []
    # An agent was told how its label did on the development images: that r proves nothing.
    rows = visible_to(LabelCheck.objects.filter(unit=unit, pearson__isnull=False)).exclude(split=DEVELOPMENT)
    found = [CheckedMembers.of(each) for each in rows.order_by("-pk")[:CHECKS]]
    return [each for each in found if each is not None]


def read_exemplars(unit: Unit | None) -> CircuitExemplars | None:
    """Return exemplars over the last requested dataset; None if none was requested."""
    rows = UnitProfile.objects.filter(unit=unit).select_related("dataset") if unit else UnitProfile.objects.none()
    # One dataset at a time: the page has room for one.
    profile = rows.order_by("-pk").first()
    if profile is None:
        return None
    return CircuitExemplars(profile, list(profile.exemplars.all()) if profile.written else [])


def describe_study(network: str, number: int, row: Circuit | None, asked: str = "") -> dict[str, Any]:
    """Return what the pages of a circuit show of it. `asked` is the key of the check whose members are compared."""
    unit, runs = find_studied(network, number), list_runs(network, number, row)
    checked = list_checked(unit)
    return {
        "number": number,
        "network": network,
        "unit": unit,
        "runs": runs[:RUNS],
        "run_count": runs.count(),
        "checked": checked,
        # The requested check, else the newest.
        "compared": next((each for each in checked if str(each.check.pk) == asked), next(iter(checked), None)),
        "exemplars": read_exemplars(unit),
    }


@transaction.atomic
def ask_for_exemplars(actor: Actor, row: Circuit, dataset: str) -> UnitProfile:
    """Ask a worker to find the images with the highest activation of the circuit. Raises StateConflict for a
    dataset that cannot be used, and for members that are not here."""
    actor.require(CHANGES)
    members = list(row.members.select_related("unit__layer__model"))
    if gone := [each.member for each in members if each.place is None]:
        raise StateConflict(f"{gone[0]} is not here any more. Remove it from the circuit first.")
    # Creates the unit of these members, unless it exists.
    unit = keep_circuit(row.network, [each.member for each in members]) if members else None
    if unit is None:
        raise StateConflict(f"The network {row.network} is not here any more, or the circuit has no member.")
    return units.ask_for_exemplars(actor, unit.layer, unit.number, dataset)
