"""The maximum length of a reply: read from a provider's refusal of more tokens."""

from __future__ import annotations

import re

LIMIT_NAMES = ("max_tokens", "max_completion_tokens")
"""The parameter, by its older and its newer name."""
OF_THE_REPLY = "|".join((*LIMIT_NAMES, "in the completion", "(completion|output) tokens"))
"""How refusals name it."""
_NUMBER = r"(\d[\d,]*)"
_WINDOW = rf"(?:context (?:length|window|size)|max_model_len)\D{{0,20}}{_NUMBER}"
_TAKEN = (
    rf"{_NUMBER} (?:input|prompt) tokens",
    rf"{_NUMBER} (?:tokens )?(?:in|from) (?:the|your) (?:messages|input|prompt)",
    rf"{_NUMBER} - {_NUMBER}",
)


def read_reply_limit(words: str, asked: int) -> int | None:
    """Return the tokens that are allowed instead of those asked for; None if the words do not say.

    This is what the context window leaves beside the question, if both are named; it may be negative. Otherwise the
    largest number below the refused one.
    """
    window = re.search(_WINDOW, words, re.IGNORECASE)
    taken = next(filter(None, (re.search(pattern, words, re.IGNORECASE) for pattern in _TAKEN)), None)
    if window and taken:
        # A subtraction names the prompt's tokens last.
        return _number(window[1]) - _number(taken[taken.re.groups])
    # As in "at most 4096", "range [1, 8192]" and "200000 > 64000".
    allowed = [_number(each) for each in re.findall(rf"(?<![\w.-]){_NUMBER}(?![\w-])", words)]
    return max((each for each in allowed if 1 < each < asked), default=None)


def _number(text: str) -> int:
    return int(text.replace(",", ""))
