"""Images as cards with title and activation: what a card shows, and which images come first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Protocol, TypeVar

from django.db.models import Q, QuerySet

from experiments.models import Exemplar, Observation, Run
from experiments.models.mapped import MAP_COLUMNS
from workers.record.experiments import ActivationMap
from workers.record.experiments import Observation as Logged
from workers.record.figures import is_same

T = TypeVar("T")

CARD_FIELDS = (
    *("title", "activation", "image", "masked", "origin", "prompt", "seed"),
    *("original", "change", "claimed", "measured", "differs", *MAP_COLUMNS),
)
"""What a card takes of an observation."""
STRONGEST = 5
"""Images that stand beside a conclusion."""
REPEATED = 10
"""Rows read for each image that is wanted: programs log the same image again and again."""


@dataclass(frozen=True)
class ImageCard:
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
    map: ActivationMap | None = None
    """Where the image drives the system; None where nobody kept it, as in old runs."""

    @classmethod
    def from_log(cls, logged: Logged) -> ImageCard:
        """An observation of an event."""
        given = ("title", "activation", "image", "origin", "prompt", "seed", "claimed", "measured", "differs", "map")
        known = {name: getattr(logged, name) for name in given}
        return cls(**known, masked=logged.masked or logged.image, original=logged.original or "")

    @classmethod
    def from_row(cls, row: Observation) -> ImageCard:
        """An observation as the database has it."""
        same = {name: getattr(row, name) for name in CARD_FIELDS if name not in {"image", "masked", *MAP_COLUMNS}}
        return cls(**same, image=row.image_id, masked=row.masked_id or row.image_id, map=row.activation_map)

    @classmethod
    def exemplar(cls, row: Exemplar) -> ImageCard:
        """An image of a dataset, which no run has logged."""
        return cls(
            f"Exemplar {row.rank}",
            row.activation,
            image=row.image_id,
            masked=row.masked_id,
            map=row.activation_map,
            origin="exemplar",
            prompt="",
            seed=None,
        )

    @property
    def direction(self) -> str:
        """Which way the edit moved it: "up", "down", or "same"."""
        change = self.change or 0.0
        if is_same(self.activation - change, self.activation):
            return "same"
        return "up" if change > 0 else "down"


@dataclass(frozen=True)
class LoggedImage:
    """An image, and the numbers of the run, the experiment and the round that logged it."""

    card: ImageCard
    run: int
    experiment: int
    round: int

    @classmethod
    def from_row(cls, row: Observation) -> LoggedImage:
        return cls(ImageCard.from_row(row), row.experiment.run_id, row.experiment.number, row.experiment.round)


@dataclass(frozen=True)
class EditedImage:
    """An image of a run, and what edits of one experiment made of it, on a page that lists images."""

    before: ImageCard
    edits: Sequence[LoggedImage]

    @property
    def cards(self) -> list[ImageCard]:
        return [each.card for each in self.edits]


class ImageSource(Protocol):
    """Where those who may not enter the site find its images."""

    def small(self, key: str) -> str: ...

    def whole(self, key: str) -> str:
        """The image in full; "" if there is none."""
        ...


# --- which images -----------------------------------------------------------------------------------


def first_of_each(ordered: Iterable[T], image: Callable[[T], str], count: int) -> list[T]:
    """The first of these, each image once."""
    found: dict[str, T] = {}
    for each in ordered:
        found.setdefault(image(each), each)
        if len(found) == count:
            break
    return list(found.values())


def gather_edits(
    listed: Sequence[LoggedImage], originals: Mapping[tuple[int, str], ImageCard]
) -> list[LoggedImage | EditedImage]:
    """Edits beside their original, which is in `originals` by run and key, where the first of them stood; the original
    does not stand alone as well."""
    found: dict[tuple[int, int, str], LoggedImage | list[LoggedImage]] = {}
    edited = {(each.run, each.card.original) for each in listed if each.card.change is not None}
    for place, each in enumerate(listed):
        original = (each.run, each.card.original)
        if each.card.change is not None and original in originals:
            group = found.setdefault((each.run, each.experiment, each.card.original), [])
            assert isinstance(group, list)
            group.append(each)
        elif (each.run, each.card.image) not in edited & originals.keys():
            found[each.run, each.experiment, f"alone {place}"] = each
    return [
        EditedImage(originals[run, key], group) if isinstance(group, list) else group
        for (run, _, key), group in found.items()
    ]


def find_originals(listed: Sequence[LoggedImage]) -> dict[tuple[int, str], ImageCard]:
    """What the edits among these were made from, as their runs logged it first, by run and key."""
    edits = [each for each in listed if each.card.original and each.card.change is not None]
    if not edits:
        return {}
    rows = Observation.objects.filter(
        run__in={each.run for each in edits}, image__in={each.card.original for each in edits}
    ).order_by("-pk")
    return {(row.run_id, row.image_id): ImageCard.from_row(row) for row in rows.only("run", *CARD_FIELDS)}


def find_strongest(rows: QuerySet[Observation], count: int = STRONGEST) -> list[ImageCard]:
    """The top activating images, each once."""
    ordered = rows.order_by("-activation", "pk")[: count * REPEATED]
    return [ImageCard.from_row(row) for row in first_of_each(ordered, attrgetter("image_id"), count)]


def newest_logged(run: Run, experiments: int) -> QuerySet[Observation]:
    """What the newest experiments of the run logged, the last first."""
    # By way of the experiments: their index finds the newest at once, however much the run has logged.
    newest = Q(experiment__run=run, experiment__number__gt=run.experiment_count - experiments)
    return Observation.objects.filter(newest).order_by("-experiment__number", "-position")
