"""Which words of a MAIA transcript belong to which image: its title and its activation, or that it has none.

In the transcripts of 2024 the words stand before their image, in those of 2025 after it, and there each call of
`display` is a message. Which of the two it is, each message tells by itself. An image is given a number only where one
text and one image stand together; anything else is left out, and counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

ACTIVATION = re.compile(
    r"activations?(?: value| score)?\s{0,3}(?::|=|is|of)?\s{0,3}"
    r"(-?[0-9]{1,12}(?:\.[0-9]{1,12})?(?:e[+-]?[0-9]{1,2})?)",
    re.IGNORECASE,
)
LEFT_OUT = "[An image of which the transcript tells no activation is left out.]"
TITLE_CHARS = 300

Part = tuple[str, str]
"""("text", words) or ("image", key)."""


@dataclass(frozen=True)
class Block:
    """Neighbouring parts of one kind."""

    kind: str
    said: tuple[str, ...]

    @property
    def words(self) -> str:
        return "\n".join(self.said).strip() if self.kind == "text" else ""

    @property
    def names_one(self) -> bool:
        return len(ACTIVATION.findall(self.words)) == 1


def pair_images(messages: Sequence[Sequence[Part]]) -> tuple[list[dict[str, Any]], str]:
    """What the messages after a program show: their images as title, activation and image; and all other words."""
    shown: list[dict[str, Any]] = []
    texts: list[str] = []
    for parts in messages:
        row = list(blocks(parts))
        step = 1 if _words_follow(row) else -1
        taken: set[int] = set()
        for place, block in enumerate(row):
            other = place + step
            alone = block.kind == "image" and len(block.said) == 1
            if alone and 0 <= other < len(row) and (named := _named_by(row[other], step)):
                title, activation, rest = named
                shown.append({"title": title, "activation": activation, "image": block.said[0]})
                texts.append(rest)
                taken |= {place, other}
        for place, block in enumerate(row):
            if place not in taken:
                texts += [block.words] if block.kind == "text" else [LEFT_OUT] * len(block.said)
    return shown, "\n".join(filter(None, texts))


def blocks(parts: Sequence[Part]) -> Iterator[Block]:
    """Empty texts part nothing."""
    with_words = (part for part in parts if part[0] == "image" or part[1].strip())
    for kind, group in groupby(with_words, key=lambda part: part[0]):
        yield Block(kind, tuple(said for _, said in group))


def _words_follow(row: Sequence[Block]) -> bool:
    """Whether the words of an image come after it: where more images have a number that way."""
    images = [place for place, block in enumerate(row) if block.kind == "image"]
    before = sum(place > 0 and row[place - 1].names_one for place in images)
    after = sum(place + 1 < len(row) and row[place + 1].names_one for place in images)
    return after > before or (after == before and bool(row) and row[0].kind == "image")


def _named_by(block: Block, step: int) -> tuple[str, float, str] | None:
    """Title and activation that words give to an image, and the words left over; None if they give no number.

    Of several numbers it is the nearest: the last of words before an image, the first of those after it.
    """
    found = list(ACTIVATION.finditer(block.words))
    if not found:
        return None
    activation = found[0 if step > 0 else -1]
    title, rest = _split_title(block.words, activation)
    return title, float(activation.group(1)), rest


def _split_title(words: str, activation: re.Match[str]) -> tuple[str, str]:
    """The title of an image: the line that names its activation, without it, else the line above; and the others."""
    start = words.rfind("\n", 0, activation.start()) + 1
    end = words.find("\n", activation.end())
    end = len(words) if end < 0 else end
    line = f"{words[start : activation.start()]} {words[activation.end() : end]}"
    title = re.sub(r"^[\s\"'(:,;.-]+|[\s\"'(:,;.\[-]+$", "", line)
    above, _, last = words[:start].strip().rpartition("\n")
    kept = (words[:start] if title else above).strip()
    rest = "\n".join(part for part in (kept, words[end:].strip()) if part)
    return (title or last.strip(" \"':,;"))[:TITLE_CHARS], rest
