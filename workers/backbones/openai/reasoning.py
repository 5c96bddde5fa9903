"""Tells what a model thought from what it replies: models that reason write both, in forms of their own."""

from __future__ import annotations

import re
from typing import Any

OPENS, CLOSES = "<think>", "</think>"
_CLOSING_LINE = re.compile(r"(?:^|\n)[ \t]*</think>[ \t]*(?:\n|$)")
_FIELDS = ("reasoning_content", "reasoning")
"""What servers call the thoughts that they send apart: DeepSeek and vLLM, OpenRouter and Ollama."""


def split_thought(text: str) -> tuple[str, str]:
    """Thought and reply of a text, as far as it has come.

    The thought stands before the reply, between its marks. Some servers swallow the first mark; the second then stands
    on a line of its own.
    """
    begun = text.lstrip()
    if begun.startswith(OPENS):
        thought, _, reply = begun.removeprefix(OPENS).partition(CLOSES)
        return thought.strip(), reply.lstrip()
    if begun and OPENS.startswith(begun):  # a mark under way
        return "", ""
    if CLOSES in text and (end := _CLOSING_LINE.search(text)) and OPENS not in text[: end.start()]:
        return text[: end.start()].strip(), text[end.end() :].lstrip()
    return "", text


def separate_thought(delta: Any) -> str:
    """The thought in a piece of a stream that stands beside the words of the reply."""
    found = (getattr(delta, name, None) for name in _FIELDS)
    return next((each for each in found if isinstance(each, str) and each), "")


def split_content(content: Any) -> tuple[str, Any]:
    """Thought and words of a piece whose content is a list of both, as Mistral sends them."""
    if not isinstance(content, list):
        return "", content or ""
    thought = "".join(_text(part.get("thinking")) for part in content if part.get("type") == "thinking")
    return thought, "".join(_text(part) for part in content if part.get("type") == "text")


def _text(part: Any) -> str:
    if isinstance(part, list):
        return "".join(map(_text, part))
    return str(part.get("text") or "") if isinstance(part, dict) else str(part or "")
