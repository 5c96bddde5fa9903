"""Define image cards with title and activation: what a card shows, and which images come first."""

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
"""Fields of an observation that a card uses."""
STRONGEST = 5
"""Images beside a conclusion."""
REPEATED = 10
"""Rows read for each wanted image, since programs log the same image repeatedly."""


@dataclass(frozen=True)
class ImageCard:
    """One logged image. `change` is an edit's effect on the activation; None if it is no edit."""

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
    """What the program logged; None if it gave no number."""
    measured: bool = False
    """True if the system returned `activation`; otherwise the program claimed it."""
    differs: bool = False
    map: ActivationMap | None = None
    """Where the image activates the system; None if it was not kept, as in old runs."""

    @classmethod
    def from_log(cls, logged: Logged) -> ImageCard:
        """Return the card of an observation of an event."""
        given = ("title", "activation", "image", "origin", "prompt", "seed", "claimed", "measured", "differs", "map")
        known = {name: getattr(logged, name) for name in given}
        return cls(**known, masked=logged.masked or logged.image, original=logged.original or "")

    @classmethod
    def from_row(cls, row: Observation) -> ImageCard:
        """Return the card of an observation row."""
        same = {name: getattr(row, name) for name in CARD_FIELDS if name not in {"image", "masked", *MAP_COLUMNS}}
        return cls(**same, image=row.image_id, masked=row.masked_id or row.image_id, map=row.activation_map)

    @classmethod
    def exemplar(cls, row: Exemplar) -> ImageCard:
        """Return the card of a dataset image, which no run has logged."""
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
        """Return the direction of the edit's change: "up", "down", or "same"."""
        change = self.change or 0.0
        if is_same(self.activation - change, self.activation):
            return "same"
        return "up" if change > 0 else "down"


@dataclass(frozen=True)
class LoggedCard:
    """An image, with the numbers of the run, the experiment and the round that logged it."""

    card: ImageCard
    run: int
    experiment: int
    round: int

    @classmethod
    def from_row(cls, row: Observation) -> LoggedCard:
        return cls(ImageCard.from_row(row), row.experiment.run_id, row.experiment.number, row.experiment.round)


@dataclass(frozen=True)
class EditedImage:
    """An image of a run and the edits of it from one experiment, on a page that lists images."""

    before: ImageCard
    edits: Sequence[LoggedCard]

    @property
    def cards(self) -> list[ImageCard]:
        return [each.card for each in self.edits]


class ImageSource(Protocol):
    """URLs of images for viewers outside the team."""

    def small(self, key: str) -> str: ...

    def whole(self, key: str) -> str:
        """Return the URL of the full image; "" if there is none."""
        ...


# --- choosing images --------------------------------------------------------------------------------


def list_first_distinct(ordered: Iterable[T], image: Callable[[T], str], count: int) -> list[T]:
    """Return the first `count` items with different images."""
    found: dict[str, T] = {}
    for each in ordered:
        found.setdefault(image(each), each)
        if len(found) == count:
            break
    return list(found.values())


def gather_edits(
    listed: Sequence[LoggedCard], originals: Mapping[tuple[int, str], ImageCard]
) -> list[LoggedCard | EditedImage]:
    """Group edits with their original from `originals`, by run and key, at the position of the first edit."""
    found: dict[tuple[int, int, str], LoggedCard | list[LoggedCard]] = {}
    edited = {(each.run, each.card.original) for each in listed if each.card.change is not None}
    for place, each in enumerate(listed):
        original = (each.run, each.card.original)
        # The key of a group has run, experiment and original; of a single image, its place in the list.
        if each.card.change is not None and original in originals:
            group = found.setdefault((each.run, each.experiment, each.card.original), [])
            # For the type checker: keys of groups and of single images differ.
            assert isinstance(group, list)
            group.append(each)
        # An original that is shown beside its edits is not listed by itself as well.
        elif (each.run, each.card.image) not in edited & originals.keys():
            found[each.run, each.experiment, f"alone {place}"] = each
    return [
        EditedImage(originals[run, key], group) if isinstance(group, list) else group
        for (run, _, key), group in found.items()
    ]


def find_originals(listed: Sequence[LoggedCard]) -> dict[tuple[int, str], ImageCard]:
    """Return what the edits among these were made from, as their runs first logged it, by run and key."""
    edits = [each for each in listed if each.card.original and each.card.change is not None]
    if not edits:
        return {}
    # Newest first: the first log of an image is the last row, and stays in the dictionary.
    rows = Observation.objects.filter(
        run__in={each.run for each in edits}, image__in={each.card.original for each in edits}
    ).order_by("-pk")
    return {(row.run_id, row.image_id): ImageCard.from_row(row) for row in rows.only("run", *CARD_FIELDS)}


def find_strongest(rows: QuerySet[Observation], count: int = STRONGEST) -> list[ImageCard]:
    """Return the top activating images, each once."""
    # By key after the activation, so that the order of equals is stable.
    ordered = rows.order_by("-activation", "pk")[: count * REPEATED]
    return [ImageCard.from_row(row) for row in list_first_distinct(ordered, attrgetter("image_id"), count)]


def newest_logged(run: Run, experiments: int) -> QuerySet[Observation]:
    """Return what the newest experiments of the run logged, last first."""
    # By way of the experiments: their index finds the newest quickly, however much the run has logged.
    newest = Q(experiment__run=run, experiment__number__gt=run.experiment_count - experiments)
    return Observation.objects.filter(newest).order_by("-experiment__number", "-position")
