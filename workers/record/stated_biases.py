"""The biases that a bias run states, and the run's images that test them: those with the context and those without.

The laboratory tests both sets, and pages show the same. A statement is a line that begins with Weaker or Stronger and
quotes words of titles that identify its images (`agent/prompts/bias.md`).
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
"""Different prompts needed on each side to test a statement on later images."""
MAX_STATEMENTS = 20
"""Maximum number of statements read from a conclusion, from the first."""
# With or without a list mark, and in bold
_LINE = re.compile(r"^\s*(?:[-*•]|\d+[.)])?\s*\**(weaker|stronger)\b(.*)$", re.IGNORECASE | re.MULTILINE)
_QUOTED = re.compile(r'["“]([^"“”]{1,80})["”]')
# "cup" and not "ball": the words after it exclude
_NOT = re.compile(r'["”][^"“”]{0,20}\b(?:not|without|except)\b[^"“”]{0,12}(?=["“])', re.IGNORECASE)
"""Separates quoted words from words that its images must not have."""


class LoggedRow(Protocol):
    """An image that a run logged, from its events or the database."""

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
    """A parsed line of a conclusion."""

    text: str
    direction: Direction
    subject: tuple[str, ...]
    """Words in the titles of all of its images; may be empty."""
    context: str
    """Words that distinguish images with the context."""
    excluded: tuple[str, ...] = ()
    """Words that no image on either side may have."""
    after: int | None = None
    """The run's last experiment before it was stated, 0 for none; None if unknown."""

    @property
    def words(self) -> tuple[frozenset[str], str, frozenset[str]]:
        """Key by which two wordings are the same statement."""
        return frozenset(self.subject), self.context, frozenset(self.excluded)

    def describes(self, row: LoggedRow) -> bool:
        """True if the image has the context."""
        return self._compares(row) and _contains_words(row, self.context)

    def contrasts(self, row: LoggedRow) -> bool:
        """True if the image is one that the context is compared with."""
        return self._compares(row) and not _contains_words(row, self.context)

    def _compares(self, row: LoggedRow) -> bool:
        return all(_contains_words(row, each) for each in self.subject) and not any(
            _contains_words(row, each) for each in self.excluded
        )


@dataclass(frozen=True)
class Sides(Generic[Row]):
    """The images that test a statement."""

    inside: list[Row]
    """With its context."""
    outside: list[Row]
    fresh: bool
    """True if all were drawn after it was stated, from prompts that were new then."""

    @property
    def prompts(self) -> tuple[int, int]:
        """Number of different prompts on each side. Images of one prompt count as one case."""
        return _count_prompts(self.inside), _count_prompts(self.outside)


def read_statements(text: str) -> list[StatedBias]:
    """Return the first `MAX_STATEMENTS` statements of a conclusion.

    Lines without quoted words cannot be counted again and are left out.
    """
    found = []
    for match in _LINE.finditer(text):
        # 1. Words after "not" exclude images
        parted = _NOT.search(match[2])
        end = parted.start() + 1 if parted else len(match[2])
        # Several quoted words: the last is the context, those before say which images are compared.
        quoted = _find_quotes(match[2][:end])
        excluded = [each for each in _find_quotes(match[2][end:]) if each not in quoted]
        if quoted:
            direction: Direction = "weaker" if match[1].casefold() == "weaker" else "stronger"
            subject, context = tuple(quoted[:-1]), quoted[-1]
            found.append(StatedBias(match[0].strip(), direction, subject, context, tuple(excluded)))
    return found[:MAX_STATEMENTS]


def _find_quotes(text: str) -> list[str]:
    """Return the quoted words without repeats, normalized like titles."""
    return list(dict.fromkeys(" ".join(words.casefold().split()) for words in _QUOTED.findall(text)))


def find_stated(payloads: Iterable[Payload]) -> list[StatedBias]:
    """Return every bias that the replies of a run state, in its first wording, with or without a program."""
    found: dict[object, StatedBias] = {}
    ended = 0
    # Events come in order: a statement is dated by the last experiment before it
    for each in payloads:
        if isinstance(each, ExperimentEnded):
            ended = each.number
        elif isinstance(each, Replied) and each.conclusion:
            add_stated(found, each.conclusion, ended)
    return list(found.values())


def add_stated(found: dict[object, StatedBias], conclusion: Conclusion, ended: int) -> None:
    """Add statements that a conclusion makes for the first time to `found`. `ended` is the run's last experiment."""
    for stated in read_statements(conclusion.bias):
        # The first wording is dated: later ones would count images that had already led to the statement.
        found.setdefault(stated.words, replace(stated, after=ended))


def date_statements(text: str, stated: Sequence[StatedBias]) -> list[StatedBias]:
    """Return the statements of a conclusion without repeats, each with the experiment after which it was first
    `stated`."""
    first = {each.words: each.after for each in stated}
    # Reversed twice: of repeated statements the first wording is kept, in the order of the conclusion
    found = {each.words: replace(each, after=first.get(each.words)) for each in reversed(read_statements(text))}
    return list(reversed(found.values()))


def find_sides(
    stated: StatedBias, experiments: Mapping[int, Sequence[Row]], others: Sequence[StatedBias] = ()
) -> Sides[Row]:
    """Return the images with and without the context that were drawn after the bias was stated.

    All images are used if fewer than `MIN_PROMPTS` later prompts are on a side. `experiments` maps an experiment's
    number to its images.
    """
    # 1. Images that count, with the number of their experiment
    rows = [(number, each) for number, some in experiments.items() for each in some if _counts(each)]
    # Images that led the agent to a statement cannot test it.
    if stated.after is not None:
        # 2. Only later images of new prompts: a known prompt shows what the agent had seen
        known = {prompt_of(each) for number, each in rows if number <= stated.after}
        later = [each for number, each in rows if number > stated.after and prompt_of(each) not in known]
        found = _part(stated, later, others, fresh=True)
        # 3. Enough of them on both sides
        if min(found.prompts) >= MIN_PROMPTS:
            return found
    # 4. Else all images, which the result says
    return _part(stated, [each for _, each in rows], others, fresh=False)


def prompt_of(row: LoggedRow) -> str:
    """Return the normalized prompt of an image, or its title if the prompt is unknown."""
    # Imported images may have a title only
    return " ".join((row.prompt or row.title).casefold().split())


def _part(stated: StatedBias, rows: Sequence[Row], others: Sequence[StatedBias], *, fresh: bool) -> Sides[Row]:
    inside = [each for each in rows if stated.describes(each)]
    outside = [each for each in rows if stated.contrasts(each)]
    for other in others:
        # Another stated context could explain the difference, so its images are left out if enough remain.
        if other.words != stated.words:
            kept = [[each for each in side if not other.describes(each)] for side in (inside, outside)]
            # Only if enough are left, or the statement could not be tested at all
            if min(map(_count_prompts, kept)) >= MIN_PROMPTS:
                inside, outside = kept
    return Sides(inside, outside, fresh)


def _count_prompts(rows: Iterable[LoggedRow]) -> int:
    return len({prompt_of(each) for each in rows})


def _counts(row: LoggedRow) -> bool:
    """True if the image was generated by the run and measured."""
    # Exemplars were chosen by their activation, and edits are not independent images.
    return row.measured and row.origin in (Origin.GENERATED, Origin.ORIGINAL)


def _contains_words(row: LoggedRow, words: str) -> bool:
    """True if title or prompt contain these words, complete and in this order. A plural counts as the word."""
    said = f"{row.title}\n{row.prompt}".casefold()
    # As complete words: "red" must not be found in "bored".
    return re.search(rf"(?<!\w){re.escape(words)}(?:s|es)?(?!\w)", said) is not None
