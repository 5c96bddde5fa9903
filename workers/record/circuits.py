"""A circuit: units and latents of one network that are studied together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any

import msgspec

from workers.record.estimates import Estimate

MAX_MEMBERS = 200
"""Maximum number of members."""
MIN_IMAGES = 8
"""Minimum number of images for finding a circuit. Half of them select its members."""
CIRCUIT = "circuit"
"""Kind of systems that are circuits."""
ACTIVATION_LAYER, MAP_LAYER = "circuit", "circuit map"
"""Layers in which a circuit is studied. In the first, its unit is the number from `find_number`; the second shows
where it responds."""
MEMBERS_LAYER = "circuit members"
"""Layer whose units are the members, in order."""


@dataclass(frozen=True, order=True)
class CircuitMember:
    """A unit of a layer, or a latent of an auto-encoder of a layer."""

    model: str
    """Key of the network, or "sae:NAME"."""
    layer: str
    unit: int

    @property
    def is_latent(self) -> bool:
        return self.model.startswith("sae:")

    def __str__(self) -> str:
        return f"{self.model} / {self.layer} / unit {self.unit}"


def find_size_problem(members: Sequence[CircuitMember]) -> str:
    """Return why these members make no circuit; "" if they do."""
    if not 1 <= len(members) <= MAX_MEMBERS:
        return f"A circuit has 1 to {MAX_MEMBERS} members, not {len(members):,}."
    if len(set(members)) != len(members):
        twice = next(each for each in members if members.count(each) > 1)
        return f"{twice} is in the circuit twice."
    return ""


def find_number(members: Iterable[CircuitMember]) -> int:
    """Return the unit number under which these members are studied, from 1 to 10^9 - 1.

    It is a hash: the same for the same members in any order and on any installation, and different for other
    members.
    """
    named = "\n".join(f"{each.model}\t{each.layer}\t{each.unit}" for each in sorted(members))
    # Sorted, so that the order of members makes no difference
    return int.from_bytes(sha256(named.encode("utf-8", "replace")).digest()[:8]) % 999_999_999 + 1


def encode_members(members: Iterable[CircuitMember]) -> list[dict[str, Any]]:
    """Return the option "members" of a circuit's system."""
    return [asdict(each) for each in members]


def decode_members(given: Iterable[Mapping[str, Any]]) -> list[CircuitMember]:
    """Return the members from objects with model, layer and unit."""
    return [CircuitMember(each["model"], each["layer"], each["unit"]) for each in given]


@dataclass(frozen=True)
class MemberStates:
    """Shares of images by how many members are on, that is at least as active as their thresholds."""

    images: int
    all_on: float | None = None
    all_off: float | None = None
    one_off: float | None = None
    otherwise: float | None = None


@dataclass(frozen=True)
class MemberFinding:
    """A member of a circuit whose label was checked."""

    model: str
    layer: str
    unit: int
    off_with: float | None = None
    """Among images that the label describes, the share on which this member alone is off."""
    off_without: float | None = None
    """The same share among images that the label does not describe."""
    pearson_without: float | None = None
    """r of the label and the circuit without this member; None for the only member."""


@dataclass(frozen=True)
class CircuitFindings:
    """How often the members are active together where the label says, and which of them the label explains."""

    described: MemberStates
    others: MemberStates
    pearson: float | None = None
    """r of the label and the whole circuit, on the same images."""
    members: tuple[MemberFinding, ...] = ()


@dataclass(frozen=True)
class CircuitCurve:
    """How well circuits of several sizes explain a class, for one selection method: an estimate over seeds for each
    size."""

    method: str
    """A key of `METHODS`."""
    sizes: tuple[int, ...]
    faithfulness: tuple[Estimate, ...]
    """Of the circuit alone: 1 if it gives the whole logit, 0 if it gives no more than no units."""
    completeness: tuple[Estimate, ...]
    """Of all other units without the circuit: 0 if the circuit contains everything that matters."""


@dataclass(frozen=True)
class FoundMember:
    """A unit of the layer with its effect on the logit of the class, averaged over seeds."""

    unit: int
    effect: float
    lift: float


@dataclass(frozen=True)
class CircuitReport:
    """The units or latents of a layer that a class depends on."""

    model: str
    layer: str
    target: str
    """Name of the class."""
    nodes: int
    """Number of units that vary among the images. Circuits are made of these."""
    images: int
    """Number of images that show the class most. Half of them select members, the other half measure."""
    seeds: int
    curves: tuple[CircuitCurve, ...] = ()
    members: tuple[FoundMember, ...] = ()
    """The strongest members by effect."""
    why: str = ""
    """Why nothing was found."""


def read_circuit_report(facts: Any) -> CircuitReport:
    """Parse a stored report. Raises ValueError if it is invalid."""
    try:
        return msgspec.convert(facts, CircuitReport)
    # Stored facts may be of an older version, or imported
    except msgspec.ValidationError as error:
        raise ValueError(f"This is no result of a circuit search: {error}. Ask for the search again.") from None


METHODS = {
    "effect": "by effect, exact ablation",
    "gradients": "by effect, 10 gradients",
    "bare": "the same, its error left out",
    "lift": "by co-activation",
    "random": "drawn at random",
    "neurons": "plain neurons by effect",
}
