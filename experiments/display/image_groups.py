"""The images of an experiment laid out: grids, edits beside what they were made from, the strongest of a run.

Plain data for templates; draws nothing and changes nothing. Called by `rendering`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Min, Q, QuerySet

from experiments.display.number_format import is_same
from experiments.models import Observation, Run

Json = Mapping[str, Any]

FEW, SHOWN = 15, 10
"""Up to so many images of one entry all stand in the order of the program; of more, so many stand unfolded."""

HEADING = 80
"""Characters up to which the text of an entry is the heading of its images."""

STRONGEST = 5
"""Images that stand beside a conclusion."""


@dataclass(frozen=True)
class Shot:
    """One logged image. `change` is what an edit did to the activation; None for all that is no edit."""

    title: str
    activation: float
    image: str
    masked: str
    origin: str
    prompt: str
    seed: int | None
    original: str = ""
    change: float | None = None
    claimed: float | None = None
    """What the program logged; None if it named no number."""
    measured: bool = False
    """Whether `activation` is what the system returned; else it is what the program claimed."""
    differs: bool = False

    @property
    def direction(self) -> str:
        """Which way the edit moved it: "up", "down", or "same"."""
        change = self.change or 0.0
        if is_same(self.activation - change, self.activation):
            return "same"
        return "up" if change > 0 else "down"

    def edited_from(self, before: Shot) -> Shot:
        return Shot(**{**self.__dict__, "change": self.activation - before.activation})


@dataclass(frozen=True)
class Family:
    """An image and what was made of it by edits."""

    before: Shot
    edits: Sequence[Shot]


@dataclass(frozen=True)
class Entry:
    """What one call of `tools.log_experiment` left."""

    text: str
    families: Sequence[Family]
    singles: Sequence[Shot]
    """Images that are neither edits nor edited here."""

    @property
    def pairs(self) -> Sequence[Family]:
        return [family for family in self.families if len(family.edits) == 1]

    @property
    def larger(self) -> Sequence[Family]:
        return [family for family in self.families if len(family.edits) > 1]

    @property
    def edits(self) -> int:
        return sum(len(family.edits) for family in self.families)

    @property
    def heading(self) -> str:
        """The text, if it is short enough to stand above its images."""
        fits = len(self.text) <= HEADING and "\n" not in self.text.strip()
        return self.text if fits and (self.singles or self.families) else ""

    @property
    def mean(self) -> float | None:
        return sum(shot.activation for shot in self.singles) / len(self.singles) if self.singles else None

    @property
    def ordered(self) -> Sequence[Shot]:
        """Few images keep the program's order; of many the strongest come first."""
        return sorted(self.singles, key=lambda shot: -shot.activation) if self.is_large else self.singles

    @property
    def is_large(self) -> bool:
        return len(self.singles) > FEW

    @property
    def shown(self) -> Sequence[Shot]:
        return self.ordered[:SHOWN] if self.is_large else self.ordered

    @property
    def folded(self) -> Sequence[Shot]:
        return self.ordered[SHOWN:] if self.is_large else []


def entries(payload: Json, earlier: Mapping[str, Shot]) -> list[Entry]:
    """The entries of a result. An edit finds its original in its own entry, or among what was logged `earlier`."""
    return [
        entry_of(entry["text"], [shot_of(each) for each in entry["observations"]], earlier)
        for entry in payload.get("entries", ())
    ]


def entry_of(text: str, shots: Sequence[Shot], earlier: Mapping[str, Shot]) -> Entry:
    """One entry, its edits gathered beside their originals."""
    known = {**earlier, **{shot.image: shot for shot in shots}}
    families: dict[str, list[Shot]] = {}
    for shot in shots:
        if shot.original in known and shot.original != shot.image:
            families.setdefault(shot.original, []).append(shot.edited_from(known[shot.original]))
    gathered = {*families, *(edit.image for edits in families.values() for edit in edits)}
    return Entry(
        text,
        [Family(known[original], edits) for original, edits in families.items()],
        [shot for shot in shots if shot.image not in gathered],
    )


def originals(run: Run, payloads: Sequence[Json]) -> dict[str, Shot]:
    """What the run logged first of the images that those of these results were edited from, by key."""
    logged = [each for payload in payloads for entry in payload["entries"] for each in entry["observations"]]
    wanted = {each["original"] for each in logged if each["original"]}
    if not wanted:
        return {}
    logs = run.observations.filter(image_id__in=wanted).order_by().values("image")
    firsts = logs.annotate(first=Min("pk")).values("first")
    return {row.image_id: shot_from(row) for row in Observation.objects.filter(pk__in=firsts)}


def lately(run: Run, experiments: int) -> QuerySet[Observation]:
    """What the newest experiments of the run logged, the last first."""
    # By way of the experiments: their index finds the newest at once, however much the run has logged.
    newest = Q(experiment__run=run, experiment__number__gt=run.experiment_count - experiments)
    return Observation.objects.filter(newest).order_by("-experiment__number", "-position")


def strongest(run: Run) -> list[Shot]:
    """The images that excited the unit most in this run, each once."""
    rows = run.observations.order_by("-activation", "pk")[: STRONGEST * 10]
    seen: dict[str, Observation] = {}
    for row in rows:
        seen.setdefault(row.image_id, row)
    return [shot_from(row) for row in list(seen.values())[:STRONGEST]]


def shot_of(observation: Json) -> Shot:
    """An observation of an event's payload."""
    names = ("title", "activation", "image", "origin", "prompt", "seed")
    known = {name: observation[name] for name in names}
    evidence = {name: observation[name] for name in ("claimed", "measured", "differs") if name in observation}
    masked, original = observation["masked"] or known["image"], observation["original"] or ""
    return Shot(**known, **evidence, masked=masked, original=original)


def shot_from(row: Observation) -> Shot:
    """An observation as the database has it."""
    return Shot(
        title=row.title,
        activation=row.activation,
        image=row.image_id,
        masked=row.masked_id or row.image_id,
        origin=row.origin,
        prompt=row.prompt,
        seed=row.seed,
        original=row.original,
        change=row.change,
        claimed=row.claimed,
        measured=row.measured,
        differs=row.differs,
    )
