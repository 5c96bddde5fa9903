"""What the conclusion of a bias run states, and which of the run's images bear on it: those with the context, and those
without. The laboratory tests both sets, and pages draw the same.

A statement is a line that begins with Weaker or Stronger and quotes the words of titles that tell its images from the
others (`agent/prompts/bias.md`). Images are those that the run drew: neither exemplars, which were chosen by their
activation, nor edits, which are no independent images.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

from workers.record.origins import Origin

Direction = Literal["weaker", "stronger"]

LEAST = 8
"""Images on each side that the last experiments must have before the earlier ones, in which a suspicion may have come
about, are left out."""
_LINE = re.compile(r"^\s*(?:[-*•]|\d+[.)])?\s*\**(weaker|stronger)\b(.*)$", re.IGNORECASE | re.MULTILINE)
_QUOTED = re.compile(r'["“]([^"“”]{1,80})["”]')


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


def read_statements(text: str) -> list[StatedBias]:
    """The statements in a conclusion, in order; lines without quoted words cannot be counted again and are left out."""
    found = []
    for match in _LINE.finditer(text):
        quoted = [" ".join(words.casefold().split()) for words in _QUOTED.findall(match[2])]
        if quoted:
            direction: Direction = "weaker" if match[1].casefold() == "weaker" else "stronger"
            found.append(StatedBias(match[0].strip(), direction, tuple(quoted[:-1]), quoted[-1]))
    return found


def find_sides(stated: StatedBias, experiments: Sequence[Sequence[Row]]) -> tuple[list[Row], list[Row]]:
    """The images with the context, and those without, of the last experiments that together have `LEAST` on both sides;
    of all, if there are too few. `experiments` are the images of each, in order."""
    inside: list[Row] = []
    outside: list[Row] = []
    for rows in reversed(experiments):
        shown = [each for each in rows if _counts(each) and all(_says(each, word) for word in stated.subject)]
        inside = [each for each in shown if _says(each, stated.context)] + inside
        outside = [each for each in shown if not _says(each, stated.context)] + outside
        if min(len(inside), len(outside)) >= LEAST:
            break
    return inside, outside


def _counts(row: LoggedRow) -> bool:
    """Whether an image was drawn on purpose and measured."""
    return row.measured and row.origin in (Origin.GENERATED, Origin.ORIGINAL)


def _says(row: LoggedRow, words: str) -> bool:
    """Whether title or prompt have these words, whole and in this order; a plural counts as the word."""
    said = f"{row.title}\n{row.prompt}".casefold()
    return re.search(rf"(?<!\w){re.escape(words)}(?:s|es)?(?!\w)", said) is not None
