"""Match the images of a MAIA transcript with the text that names their title and activation.

In transcripts of 2024 the text comes before its image; in those of 2025 after it, with one message per call of
`display`. The order is found for each message. An image gets an activation only if it is alone between texts; other
images are left out and counted.
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
class CaptionBlock:
    """Neighbouring parts of the same kind."""

    kind: str
    said: tuple[str, ...]

    @property
    def words(self) -> str:
        return "\n".join(self.said).strip() if self.kind == "text" else ""

    @property
    def names_one(self) -> bool:
        return len(ACTIVATION.findall(self.words)) == 1


def pair_images(messages: Sequence[Sequence[Part]]) -> tuple[list[dict[str, Any]], str]:
    """Return (images with title and activation, remaining text) of the messages after a program."""
    shown: list[dict[str, Any]] = []
    texts: list[str] = []
    for parts in messages:
        # 1. Merge neighbouring parts, and find the side on which the text of an image is
        row = list(blocks(parts))
        step = 1 if _words_follow(row) else -1
        taken: set[int] = set()
        # 2. Give each single image the number of its text
        for place, block in enumerate(row):
            other = place + step
            alone = block.kind == "image" and len(block.said) == 1
            if alone and 0 <= other < len(row) and (named := _parse_caption(row[other], step)):
                title, activation, rest = named
                shown.append({"title": title, "activation": activation, "image": block.said[0]})
                texts.append(rest)
                taken |= {place, other}
        # 3. Keep the remaining text, with a note for each image that got no number
        for place, block in enumerate(row):
            if place not in taken:
                texts += [block.words] if block.kind == "text" else [LEFT_OUT] * len(block.said)
    return shown, "\n".join(filter(None, texts))


def blocks(parts: Sequence[Part]) -> Iterator[CaptionBlock]:
    """Yield blocks. An empty text does not separate two images."""
    with_words = (part for part in parts if part[0] == "image" or part[1].strip())
    for kind, group in groupby(with_words, key=lambda part: part[0]):
        yield CaptionBlock(kind, tuple(said for _, said in group))


def _words_follow(row: Sequence[CaptionBlock]) -> bool:
    """True if the text of an image comes after it: more images have a single number on that side."""
    images = [place for place, block in enumerate(row) if block.kind == "image"]
    before = sum(place > 0 and row[place - 1].names_one for place in images)
    after = sum(place + 1 < len(row) and row[place + 1].names_one for place in images)
    # A tie: a message that begins with an image has its text after it
    return after > before or (after == before and bool(row) and row[0].kind == "image")


def _parse_caption(block: CaptionBlock, step: int) -> tuple[str, float, str] | None:
    """Return (title, activation, remaining words) of an image's text; None if it has no number.

    Of several numbers the nearest counts: the last one before an image, the first one after it.
    """
    found = list(ACTIVATION.finditer(block.words))
    if not found:
        return None
    activation = found[0 if step > 0 else -1]
    title, rest = _split_title(block.words, activation)
    return title, float(activation.group(1)), rest


def _split_title(words: str, activation: re.Match[str]) -> tuple[str, str]:
    """Return (title, other words). The title is the rest of the line with the activation, or else the line above."""
    start = words.rfind("\n", 0, activation.start()) + 1
    end = words.find("\n", activation.end())
    end = len(words) if end < 0 else end
    line = f"{words[start : activation.start()]} {words[activation.end() : end]}"
    title = re.sub(r"^[\s\"'(:,;.-]+|[\s\"'(:,;.\[-]+$", "", line)
    above, _, last = words[:start].strip().rpartition("\n")
    kept = (words[:start] if title else above).strip()
    rest = "\n".join(part for part in (kept, words[end:].strip()) if part)
    return (title or last.strip(" \"':,;"))[:TITLE_CHARS], rest
