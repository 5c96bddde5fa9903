"""A provider's limit of images: read from its refusal, kept with the run's replies."""

from __future__ import annotations

import re
from collections.abc import Sequence

from workers.protocols import Message
from workers.record.replies import ImageLimit

_IMAGES = r"(?:images?|pictures?|photos?|media|multi-?modal)\b"
_NUMBER = r"(\d+)\b(?!\.\d|,\d|\s*(?:[kmg]i?b\b|bytes|pixels|px\b|tokens|characters|%|x\s*\d))"
_AT_MOST = (
    r"(?:at most|up to|max(?:imum)?(?: of| is)?|no more than|less than or equal to|limit(?:ed)?(?: of| is| to|:)?|only)"
)
_STATED = (
    rf"\bimages?[\\\\'\"]*\s*[:=]\s*{_NUMBER}",  # vLLM: '{"image": 12}' in `--limit-mm-per-prompt`, or image=12
    rf"{_IMAGES}[^.]{{0,20}}(?:<=?|>=?)\s*{_NUMBER}",  # Claude: 103 images > 100
    rf"{_AT_MOST}\s+{_NUMBER}\s*(?:\w+\s+){{0,2}}{_IMAGES}",
    rf"{_NUMBER}\s+{_IMAGES}[^.]{{0,20}}\b(?:max|limit|at most|allowed|per (?:prompt|request))",
    rf"{_IMAGES}.{{0,60}}?\b{_AT_MOST}\D{{0,12}}{_NUMBER}",
)
"""Patterns of the number in refusals, the clearest first."""


def read_limit(words: str, sent: int) -> int | None:
    """Return the number of images that a refusal allows; None if it names none below the number sent."""
    for pattern in _STATED:
        for found in re.finditer(pattern, words, re.IGNORECASE):
            # Other numbers in such a sentence are sizes or counts of what was sent.
            if int(found[1]) < sent:
                return int(found[1])
    return None


def find_limit(messages: Sequence[Message], host: str, model: str) -> ImageLimit | None:
    """Return the last limit that this model of this provider showed in the conversation."""
    known = (each.image_limit for each in reversed(messages) if each.image_limit)
    return next((each for each in known if (each.host, each.model) == (host, model)), None)


def explain_captions(limit: ImageLimit | None) -> str:
    """Say why images were left out, in words that follow a colon: lack of tokens, unless a limit of images was met."""
    if limit is None:
        return "the conversation outgrew the context window"
    images = f"{limit.images} image{'' if limit.images == 1 else 's'}"
    if limit.stated:
        return f"the provider takes at most {images} in a request"
    return f"the provider refused a request with more, and takes {images}"
