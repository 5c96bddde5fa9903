"""What the replies of a bias run state, and which of the run's images bear on it: those with the context, and those
without. The laboratory tests both sets, and pages draw the same.

A statement is a line that begins with Weaker or Stronger and quotes the words of titles that tell its images from the
others (`agent/prompts/bias.md`). Images are those that the run drew: neither exemplars, which were chosen by their
activation, nor edits, which are no independent images. What made the agent state it cannot test it, so that images of
prompts that came after it are taken, where there are enough.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Literal, Protocol, TypeVar

from workers.record.events import ExperimentEnded, Payload, Replied
from workers.record.origins import Origin
from workers.record.replies import Conclusion

Direction = Literal["weaker", "stronger"]

MIN_PROMPTS = 8
"""Different prompts on each side from which a statement is tested on what was drawn after it."""
MAX_STATEMENTS = 20
"""Statements of a conclusion that are read, the first."""
_LINE = re.compile(r"^\s*(?:[-*•]|\d+[.)])?\s*\**(weaker|stronger)\b(.*)$", re.IGNORECASE | re.MULTILINE)
_QUOTED = re.compile(r'["“]([^"“”]{1,80})["”]')
_NOT = re.compile(r'["”][^"“”]{0,20}\b(?:not|without|except)\b[^"“”]{0,12}(?=["“])', re.IGNORECASE)
"""Between quoted words and others that its images must not have."""


class LoggedRow(Protocol):
    """An image as a run logged it, in its events or in the database."""

    @property
    def title(self) -> str: ...
    @property
    def prompt(self) -> str: ...
    @property
    def origin(self) -> str: ...
    @property
    def measured(self) -> bool: ...


Row = TypeVar("Row", bound=LoggedRow)


@dataclass(frozen=True)
class StatedBias:
    """A line of a conclusion, as it can be read."""

    text: str
    direction: Direction
    subject: tuple[str, ...]
    """Words that all of its images have in their titles; empty where it names none."""
    context: str
    """Words that tell the images of the context from the others."""
    excluded: tuple[str, ...] = ()
    """Words that neither the images of the context nor the others may have."""
    after: int | None = None
    """The run's last experiment before it was stated, 0 for none; None where that is not known."""

    @property
    def words(self) -> tuple[frozenset[str], str, frozenset[str]]:
        """What makes it the same statement, however it is put."""
        return frozenset(self.subject), self.context, frozenset(self.excluded)

    def describes(self, row: LoggedRow) -> bool:
        """Whether an image is of its context."""
        return self._compares(row) and _says(row, self.context)

    def contrasts(self, row: LoggedRow) -> bool:
        """Whether an image is one of those that its context is compared with."""
        return self._compares(row) and not _says(row, self.context)

    def _compares(self, row: LoggedRow) -> bool:
        return all(_says(row, each) for each in self.subject) and not any(_says(row, each) for each in self.excluded)


@dataclass(frozen=True)
class Sides(Generic[Row]):
    """The images that bear on a statement."""

    inside: list[Row]
    """With its context."""
    outside: list[Row]
    fresh: bool
    """Whether all were drawn after it was stated, of prompts that were new then."""

    @property
    def prompts(self) -> tuple[int, int]:
        """How many different ones there are on each side; images of one prompt are one case."""
        return _count_prompts(self.inside), _count_prompts(self.outside)


def read_statements(text: str) -> list[StatedBias]:
    """Return the first `MAX_STATEMENTS` statements of a conclusion.

    Lines without quoted words cannot be counted again and are left out.
    """
    found = []
    for match in _LINE.finditer(text):
        parted = _NOT.search(match[2])
        end = parted.start() + 1 if parted else len(match[2])
        quoted = _quoted_in(match[2][:end])
        excluded = [each for each in _quoted_in(match[2][end:]) if each not in quoted]
        if quoted:
            direction: Direction = "weaker" if match[1].casefold() == "weaker" else "stronger"
            subject, context = tuple(quoted[:-1]), quoted[-1]
            found.append(StatedBias(match[0].strip(), direction, subject, context, tuple(excluded)))
    return found[:MAX_STATEMENTS]


def _quoted_in(text: str) -> list[str]:
    """Each once, as titles are compared with it."""
    return list(dict.fromkeys(" ".join(words.casefold().split()) for words in _QUOTED.findall(text)))


def find_stated(payloads: Iterable[Payload]) -> list[StatedBias]:
    """Every bias that the replies of a run state, each as it was first said, with or without a program."""
    found: dict[object, StatedBias] = {}
    ended = 0
    for each in payloads:
        if isinstance(each, ExperimentEnded):
            ended = each.number
        elif isinstance(each, Replied) and each.conclusion:
            add_stated(found, each.conclusion, ended)
    return list(found.values())


def add_stated(found: dict[object, StatedBias], conclusion: Conclusion, ended: int) -> None:
    """Add what a conclusion states for the first time to what was `found`. `ended` is the run's last experiment."""
    for stated in read_statements(conclusion.bias):
        found.setdefault(stated.words, replace(stated, after=ended))


def date_statements(text: str, stated: Sequence[StatedBias]) -> list[StatedBias]:
    """The statements in a conclusion, each once, with when it was first `stated`."""
    first = {each.words: each.after for each in stated}
    found = {each.words: replace(each, after=first.get(each.words)) for each in reversed(read_statements(text))}
    return list(reversed(found.values()))


def find_sides(
    stated: StatedBias, experiments: Mapping[int, Sequence[Row]], others: Sequence[StatedBias] = ()
) -> Sides[Row]:
    """The images with the context, and those without, that were drawn after it was stated; of all, if these have fewer
    than `MIN_PROMPTS` prompts on a side. `experiments` are the images of each, by its number, in order.

    Images of the contexts of `others`, which may explain a difference, are left out where enough remain.
    """
    rows = [(number, each) for number, some in experiments.items() for each in some if _counts(each)]
    if stated.after is not None:
        known = {prompt_of(each) for number, each in rows if number <= stated.after}
        later = [each for number, each in rows if number > stated.after and prompt_of(each) not in known]
        found = _part(stated, later, others, fresh=True)
        if min(found.prompts) >= MIN_PROMPTS:
            return found
    return _part(stated, [each for _, each in rows], others, fresh=False)


def prompt_of(row: LoggedRow) -> str:
    """What an image was drawn from; its title where that is not known."""
    return " ".join((row.prompt or row.title).casefold().split())


def _part(stated: StatedBias, rows: Sequence[Row], others: Sequence[StatedBias], *, fresh: bool) -> Sides[Row]:
    inside = [each for each in rows if stated.describes(each)]
    outside = [each for each in rows if stated.contrasts(each)]
    for other in others:
        if other.words != stated.words:
            kept = [[each for each in side if not other.describes(each)] for side in (inside, outside)]
            if min(map(_count_prompts, kept)) >= MIN_PROMPTS:
                inside, outside = kept
    return Sides(inside, outside, fresh)


def _count_prompts(rows: Iterable[LoggedRow]) -> int:
    return len({prompt_of(each) for each in rows})


def _counts(row: LoggedRow) -> bool:
    """Whether an image was drawn on purpose and measured."""
    return row.measured and row.origin in (Origin.GENERATED, Origin.ORIGINAL)


def _says(row: LoggedRow, words: str) -> bool:
    """Whether title or prompt have these words, whole and in this order; a plural counts as the word."""
    said = f"{row.title}\n{row.prompt}".casefold()
    return re.search(rf"(?<!\w){re.escape(words)}(?:s|es)?(?!\w)", said) is not None
