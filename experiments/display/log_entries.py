"""What an experiment logged laid out: its images in grids, edits beside what they were made from."""

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

SAMPLES_SHOWN = 12
"""Inputs of a function that stand unfolded."""
FEW, SHOWN = 15, 10
"""Up to so many images of one entry all stand in the order of the program; of more, so many stand unfolded."""

HEADING = 80
"""Characters up to which the text of an entry is the heading of its images."""

ORDINARY = "Random ordinary images of the dataset, which the program did not log"


@dataclass(frozen=True)
class EditGroup:
    """An image and what was made of it by edits."""

    before: ImageCard
    edits: Sequence[ImageCard]


@dataclass(frozen=True)
class LogEntry:
    """What one call of `tools.log_experiment` left. Images that are neither edits nor edited here are `shown`; where
    they are many, the strongest are, and the others `folded`."""

    text: str
    edit_groups: Sequence[EditGroup]
    shown: Sequence[ImageCard]
    folded: Sequence[ImageCard]
    samples: Sequence[Sample] = ()
    """Of a function: inputs and outputs."""

    @property
    def first_samples(self) -> Sequence[Sample]:
        return self.samples[:SAMPLES_SHOWN]

    @property
    def further_samples(self) -> Sequence[Sample]:
        return self.samples[SAMPLES_SHOWN:]

    @property
    def hypotheses(self) -> Sequence[str]:
        """Those that said beforehand what a function gives: the same for all samples of an entry."""
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
        """The text, if it is short enough to stand above its images."""
        fits = len(self.text) <= HEADING and "\n" not in self.text.strip()
        return self.text if fits and (self.shown or self.edit_groups or self.samples) else ""

    @property
    def mean(self) -> float | None:
        return fmean(card.activation for card in self.singles) if self.shown else None


def entries(result: ExperimentEnded, earlier: Mapping[str, ImageCard]) -> list[LogEntry]:
    """The entries of a result, then the ordinary images that came with it. An edit finds its original in its own entry,
    or among what was logged `earlier`; the original does not stand alone as well, be it in another entry."""
    found = []
    beside = {each.original for each in result.observations if each.original in earlier and each.original != each.image}
    for entry in result.entries:
        cards = [ImageCard.from_log(logged) for logged in entry.observations]
        known = {**earlier, **{card.image: card for card in cards}}
        edits: dict[str, list[ImageCard]] = {}
        for card in cards:
            if card.original in known and card.original != card.image:
                change = card.activation - known[card.original].activation
                edits.setdefault(card.original, []).append(replace(card, change=change))
        gathered = {*edits, *(edit.image for group in edits.values() for edit in group)}
        groups = [EditGroup(known[original], group) for original, group in edits.items()]
        singles = [card for card in cards if card.image not in gathered | beside]
        if len(singles) > FEW:
            singles.sort(key=lambda card: -card.activation)
        place = SHOWN if len(singles) > FEW else len(singles)
        found.append(LogEntry(entry.text, groups, singles[:place], singles[place:], entry.samples))
    if result.ordinary_images:
        found.append(LogEntry(ORDINARY, (), [ImageCard.from_log(each) for each in result.ordinary_images], ()))
    return found


def originals(run: Run, results: Sequence[ExperimentEnded]) -> dict[str, ImageCard]:
    """What the run logged first of the images that those of these results were edited from, by key."""
    wanted = {each.original for result in results for each in result.observations if each.original}
    if not wanted:
        return {}
    logs = run.observations.filter(image_id__in=wanted).order_by().values("image")
    firsts = logs.annotate(first=Min("pk")).values("first")
    return {row.image_id: ImageCard.from_row(row) for row in Observation.objects.filter(pk__in=firsts)}
