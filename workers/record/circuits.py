"""A circuit: units and latents of one network that are studied together, as one thing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any

import msgspec

from workers.record.estimates import Estimate

MAX_MEMBERS = 200
"""Members of a circuit."""
MIN_IMAGES = 8
"""Images that a circuit is looked for on: half of them choose."""
CIRCUIT = "circuit"
"""Kind of the systems that are circuits."""
ACTIVATION_LAYER, MAP_LAYER = "circuit", "circuit map"
"""What a circuit is studied as: the first layer, whose unit has the number of its members; the second says where it
responds."""
MEMBERS_LAYER = "circuit members"
"""Its units are the members one by one, in their order."""


@dataclass(frozen=True, order=True)
class CircuitMember:
    """A unit of a layer of the network, or a latent of an auto-encoder of one of its layers."""

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
    """Why so many members make no circuit; "" if they do."""
    if not 1 <= len(members) <= MAX_MEMBERS:
        return f"A circuit has 1 to {MAX_MEMBERS} members, not {len(members):,}."
    if len(set(members)) != len(members):
        twice = next(each for each in members if members.count(each) > 1)
        return f"{twice} is in the circuit twice."
    return ""


def find_number(members: Iterable[CircuitMember]) -> int:
    """The number of the unit that these members are studied as, 1 to 10^9 - 1: the same for the same members in any
    order, here and elsewhere, and another for others."""
    named = "\n".join(f"{each.model}\t{each.layer}\t{each.unit}" for each in sorted(members))
    return int.from_bytes(sha256(named.encode("utf-8", "replace")).digest()[:8]) % 999_999_999 + 1


def encode_members(members: Iterable[CircuitMember]) -> list[dict[str, Any]]:
    """As the option "members" of a circuit's system."""
    return [asdict(each) for each in members]


def decode_members(given: Iterable[Mapping[str, Any]]) -> list[CircuitMember]:
    """The members of objects of model, layer and unit."""
    return [CircuitMember(each["model"], each["layer"], each["unit"]) for each in given]


@dataclass(frozen=True)
class MemberStates:
    """Of some images the share on which so many members are on: at least as active as their thresholds."""

    images: int
    all_on: float | None = None
    all_off: float | None = None
    one_off: float | None = None
    otherwise: float | None = None


@dataclass(frozen=True)
class MemberFinding:
    """One member of a circuit whose label was checked."""

    model: str
    layer: str
    unit: int
    off_with: float | None = None
    """Share of the images that the label describes on which it alone is off."""
    off_without: float | None = None
    """The same of the images that it does not describe."""
    pearson_without: float | None = None
    """r of the label and the circuit without this member; None where it is the only one."""


@dataclass(frozen=True)
class CircuitFindings:
    """Whether the members of a circuit are active together where its label says, and which of them it explains."""

    described: MemberStates
    others: MemberStates
    pearson: float | None = None
    """r of the label and the whole circuit, on the same images."""
    members: tuple[MemberFinding, ...] = ()


@dataclass(frozen=True)
class CircuitCurve:
    """How circuits of some sizes explain a class, found one way; an estimate for each size, over seeds."""

    method: str
    """A key of `METHODS`."""
    sizes: tuple[int, ...]
    faithfulness: tuple[Estimate, ...]
    """Of the circuit alone: 1 if it gives the whole logit, 0 if no more than without any unit."""
    completeness: tuple[Estimate, ...]
    """Of all others without the circuit: 0 if it holds all that matters."""


@dataclass(frozen=True)
class FoundMember:
    """A unit of the layer by what it adds to the logit of the class, on average over seeds."""

    unit: int
    effect: float
    lift: float


@dataclass(frozen=True)
class CircuitReport:
    """Which units or latents of a layer a class rests on."""

    model: str
    layer: str
    target: str
    """Name of the class."""
    nodes: int
    """Units that vary among the images: those that circuits are made of."""
    images: int
    """On which the class is seen most; half of them choose, the other half measure."""
    seeds: int
    curves: tuple[CircuitCurve, ...] = ()
    members: tuple[FoundMember, ...] = ()
    """The strongest, by effect."""
    why: str = ""
    """Why nothing was found."""


def read_circuit_report(facts: Any) -> CircuitReport:
    """A report from the plain JSON that it was stored as. Raises ValueError if it is none."""
    try:
        return msgspec.convert(facts, CircuitReport)
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
