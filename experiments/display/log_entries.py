"""Arrange what an experiment logged: its images in grids, edits beside their originals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from django.db.models import Min

from experiments.display.functions.samples import shorten
from experiments.display.image_cards import ImageCard
from experiments.models import Observation, Run
from workers.record.events import ExperimentEnded
from workers.record.functions import Sample

MAX_SAMPLES = 12
"""Inputs of a function that are shown unfolded."""
MAX_UNFOLDED, UNFOLDED_OF_MANY = 15, 10
"""Up to the first number, the images of an entry are shown in the program's order; of more, the second number is
unfolded."""

HEADING = 80
"""Maximum characters of an entry's text that becomes the heading of its images."""

ORDINARY = "Random ordinary images of the dataset, which the program did not log"


@dataclass(frozen=True)
class EditGroup:
    """An image and the edits of it."""

    before: ImageCard
    edits: Sequence[ImageCard]


@dataclass(frozen=True)
class LogEntry:
    """The result of one call of `tools.log_experiment`.

    `shown` are images that are neither edits nor edited here; of many, the strongest, with the others in `folded`.
    """

    text: str
    edit_groups: Sequence[EditGroup]
    shown: Sequence[ImageCard]
    folded: Sequence[ImageCard]
    samples: Sequence[Sample] = ()
    """Of a function: inputs and outputs."""

    @property
    def first_samples(self) -> Sequence[Sample]:
        return self.samples[:MAX_SAMPLES]

    @property
    def further_samples(self) -> Sequence[Sample]:
        return self.samples[MAX_SAMPLES:]

    @property
    def hypotheses(self) -> Sequence[str]:
        """Return the hypotheses that predicted outputs of a function: the same for all samples of an entry."""
        return [shorten(name) for name in self.samples[0].predictions] if self.samples else []

    @property
    def singles(self) -> Sequence[ImageCard]:
        return [*self.shown, *self.folded]

    @property
    def single_edits(self) -> Sequence[EditGroup]:
        return [group for group in self.edit_groups if len(group.edits) == 1]

    @property
    def several_edits(self) -> Sequence[EditGroup]:
        return [group for group in self.edit_groups if len(group.edits) > 1]

    @property
    def edits(self) -> int:
        return sum(len(group.edits) for group in self.edit_groups)

    @property
    def heading(self) -> str:
        """Return the text, if it is short enough to be the heading of its images."""
        fits = len(self.text) <= HEADING and "\n" not in self.text.strip()
        return self.text if fits and (self.shown or self.edit_groups or self.samples) else ""

    @property
    def mean(self) -> float | None:
        return fmean(card.activation for card in self.singles) if self.shown else None


def entries(result: ExperimentEnded, earlier: Mapping[str, ImageCard]) -> list[LogEntry]:
    """Return the entries of a result, then its unlogged images, with edits beside their original."""
    found = []
    # An original that is shown beside its edits is not listed by itself as well, even in another entry.
    beside = {each.original for each in result.observations if each.original in earlier and each.original != each.image}
    for entry in result.entries:
        # 1. Edits by their original.
        cards = [ImageCard.from_log(logged) for logged in entry.observations]
        # An original in the edit's own entry was measured with it: it goes before one logged earlier.
        known = {**earlier, **{card.image: card for card in cards}}
        edits: dict[str, list[ImageCard]] = {}
        for card in cards:
            if card.original in known and card.original != card.image:
                change = card.activation - known[card.original].activation
                edits.setdefault(card.original, []).append(replace(card, change=change))
        # 2. The rest, without what is shown among the edits.
        gathered = {*edits, *(edit.image for group in edits.values() for edit in group)}
        groups = [EditGroup(known[original], group) for original, group in edits.items()]
        singles = [card for card in cards if card.image not in gathered | beside]
        # 3. Of many, the strongest first: the others are folded.
        if len(singles) > MAX_UNFOLDED:
            singles.sort(key=lambda card: -card.activation)
        place = UNFOLDED_OF_MANY if len(singles) > MAX_UNFOLDED else len(singles)
        found.append(LogEntry(entry.text, groups, singles[:place], singles[place:], entry.samples))
    if result.ordinary_images:
        found.append(LogEntry(ORDINARY, (), [ImageCard.from_log(each) for each in result.ordinary_images], ()))
    return found


def originals(run: Run, results: Sequence[ExperimentEnded]) -> dict[str, ImageCard]:
    """Return the run's first log of the images that the edits of these results were made from, by key."""
    wanted = {each.original for result in results for each in result.observations if each.original}
    if not wanted:
        return {}
    # The first log, also if a later experiment measured the image again.
    logs = run.observations.filter(image_id__in=wanted).order_by().values("image")
    firsts = logs.annotate(first=Min("pk")).values("first")
    return {row.image_id: ImageCard.from_row(row) for row in Observation.objects.filter(pk__in=firsts)}
