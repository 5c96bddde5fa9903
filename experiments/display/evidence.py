"""Collect the evidence for and against a label: the images that a unit's runs logged, sorted by whether they show
what the label says, and the edits that changed the activation most.

If the meaning of a label or the content of an image is unknown, the words of titles decide, and the page makes no
claim.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from operator import attrgetter
from statistics import fmean

from experiments.core.search_index.normalize import normalize
from experiments.display.image_cards import CARD_FIELDS, ImageCard, LoggedCard, list_first_distinct
from experiments.display.label_meaning import parse_label, scenes
from experiments.display.plots import Scale
from experiments.models import Observation, Run
from workers.record.figures import is_same

LOOKED_AT = 500
"""Observations of a unit that are sorted, of the newest experiments first."""
READ = (*CARD_FIELDS, "experiment__run", "experiment__number", "experiment__round")
STRIP = 6
EDITS = 4
WORD = re.compile(r"\w+")
OR = re.compile(r"\bor\b|[,;/|]", re.IGNORECASE)
activation = attrgetter("card.activation")
_image_key, _change = attrgetter("card.image"), attrgetter("change")
SMALL_WORDS = frozenset(
    WORD.findall(
        "a an and any are as at be by for from has have in into is it its kind like of on or other similar some such "
        "that the their them they this those to type various very which with "
        "image images photo picture pictures showing shows unit"
    )
)


@dataclass(frozen=True)
class Edit:
    before: LoggedCard
    after: LoggedCard

    @property
    def change(self) -> float:
        return self.after.card.activation - self.before.card.activation

    @property
    def changed(self) -> ImageCard:
        """Return the edited image, with the effect of the edit."""
        return replace(self.after.card, change=self.change)

    @property
    def moved(self) -> bool:
        """True if the edit had a visible effect."""
        return not is_same(self.before.card.activation, self.after.card.activation)


@dataclass(frozen=True)
class ImageGroup:
    """Images that show what a label says, or that do not: each with its count, strongest first."""

    images: Sequence[LoggedCard] = ()

    @property
    def count(self) -> int:
        return len(self.images)

    @property
    def activations(self) -> list[float]:
        return [each.card.activation for each in self.images]

    @property
    def mean(self) -> float | None:
        return fmean(self.activations) if self.images else None

    @property
    def strongest(self) -> Sequence[LoggedCard]:
        return list_first_distinct(self.images, _image_key, STRIP)

    @property
    def weakest(self) -> Sequence[LoggedCard]:
        """Return those that are not among the strongest, weakest first."""
        shown = {each.card.image for each in self.strongest}
        return list_first_distinct(
            [each for each in reversed(self.images) if each.card.image not in shown], _image_key, STRIP
        )


@dataclass(frozen=True)
class Evidence:
    """The evidence. Without a label, all images count as not showing it.

    `is_known`: scenes decide; otherwise the words of titles and prompts do. `unread` counts images without a scene;
    `cut` says if some images were not sorted.
    """

    showing: ImageGroup
    others: ImageGroup
    exemplars: ImageGroup
    edits: Sequence[Edit]
    scale: Scale
    cut: bool
    is_known: bool = False
    unread: int = 0

    @property
    def any(self) -> bool:
        return bool(self.showing.count or self.others.count or self.raised or self.lowered)

    @property
    def raised(self) -> list[Edit]:
        """Return the edits that raised the activation most."""
        return [
            edit for edit in sorted(self.edits, key=_change, reverse=True)[:EDITS] if edit.moved and edit.change > 0
        ]

    @property
    def lowered(self) -> list[Edit]:
        return [edit for edit in sorted(self.edits, key=_change)[:EDITS] if edit.moved and edit.change < 0]


def read_evidence(runs: Sequence[Run], label: str, exemplar_mean: float | None) -> Evidence:
    """Return the evidence of these runs; one query, and another if the label is understood."""
    # 1. All images, with their edits apart.
    everything = _list_logged(runs)
    edits = _edits_of(everything)
    # Edits are not independent of their original: they are listed apart.
    edited = {edit.after for edit in edits}
    everything.sort(key=activation, reverse=True)
    exemplars = [seen for seen in everything if seen.card.origin == "exemplar"]
    plain = [seen for seen in everything if seen.card.origin != "exemplar" and seen not in edited]
    # Whether each image shows what the label says, by key; empty if that is unknown.
    # 2. The scenes decide, if the label is understood.
    read = parse_label(label)
    drawn = scenes([seen.card.image for seen in plain]) if read else {}
    shown_by = {key: read.holds(scene) for key, scene in drawn.items()} if read else {}
    # 3. The two sides.
    showing = [seen for seen in plain if shown_by.get(seen.card.image)]
    # `is False`: an image without a scene (None) belongs to neither side.
    others = [seen for seen in plain if shown_by.get(seen.card.image) is False]
    if not shown_by:
        showing, others = split_by_label(plain, label)
    return Evidence(
        ImageGroup(showing),
        ImageGroup(others),
        ImageGroup(exemplars),
        edits,
        Scale.of([seen.card.activation for seen in everything], exemplar_mean),
        # As many as the limit: there may be more.
        len(everything) == LOOKED_AT,
        bool(shown_by),
        len(plain) - len(showing) - len(others),
    )


def _list_logged(runs: Sequence[Run]) -> list[LoggedCard]:
    """Return what these runs logged, the newest if there is much; `runs` must be newest first."""
    if not runs:
        return []
    # Skip the other runs: their images would be sorted only to be left out.
    before = accumulate((run.observation_count for run in runs), initial=0)
    # Not strict: the sums have one element more than the runs.
    asked = [run.pk for run, logged in zip(runs, before, strict=False) if logged < LOOKED_AT]
    rows = Observation.objects.filter(experiment__run__in=asked).select_related("experiment").only(*READ)
    found = map(LoggedCard.from_row, rows.order_by("-experiment_id", "position")[:LOOKED_AT])
    # Means and scales have no place for an infinity.
    return [seen for seen in found if math.isfinite(seen.card.activation)]


def _edits_of(everything: Sequence[LoggedCard]) -> list[Edit]:
    """Return the edits whose original the same run logged."""
    known = {(seen.run, seen.card.image): seen for seen in everything}
    pairs = [(known.get((seen.run, seen.card.original)), seen) for seen in everything if seen.card.original]
    # The same edit may be logged again: each pair counts once.
    edits = [Edit(before, after) for before, after in pairs if before and before.card.image != after.card.image]
    return list({(edit.before.card.image, edit.after.card.image): edit for edit in edits}.values())


def split_by_label(some: Sequence[LoggedCard], label: str) -> tuple[list[LoggedCard], list[LoggedCard]]:
    """Split images into those whose title and prompt contain the words of an alternative of the label, and the
    others.

    Each distinct text is compared once, since many images share title and prompt.
    """
    alternatives = [patterns for part in OR.split(label) if (patterns := content(part))]
    if not alternatives:
        return [], list(some)
    texts = {(seen.card.title, seen.card.prompt) for seen in some}
    telling = {text for text in texts if any(matches_words(" ".join(text), patterns) for patterns in alternatives)}
    holding = [seen for seen in some if (seen.card.title, seen.card.prompt) in telling]
    return holding, [seen for seen in some if (seen.card.title, seen.card.prompt) not in telling]


def content(label: str) -> list[re.Pattern[str]]:
    """Return patterns for the meaningful words of a label, with or without a plural s."""
    words = [stem_word(word) for word in WORD.findall(normalize(label)) if word not in SMALL_WORDS]
    # Languages that write without spaces have no word ends.
    return [re.compile(rf"\b{word}s?\b" if word.isascii() else word) for word in dict.fromkeys(words)]


def stem_word(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def matches_words(text: str, patterns: Sequence[re.Pattern[str]]) -> bool:
    """True if title and prompt contain the words; for three or more words, two thirds suffice."""
    normalized = normalize(text)
    found = sum(pattern.search(normalized) is not None for pattern in patterns)
    return found >= (len(patterns) if len(patterns) < 3 else math.ceil(len(patterns) * 2 / 3))
