"""Separate what a model thought from what it replied. Some providers take thoughts back with the reply; nothing here
reads those."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from workers.backbones.openai.encoding import count_text_tokens
from workers.backbones.openai.provider_errors import host_of
from workers.protocols import Message, Provider
from workers.record.replies import ReasoningItems

OPENS, CLOSES = "<think>", "</think>"
_CLOSING_LINE = re.compile(r"(?:^|\n)[ \t]*</think>[ \t]*(?:\n|$)")
_FIELDS = ("reasoning_content", "reasoning")
"""Names of separately sent thoughts: DeepSeek and vLLM, OpenRouter and Ollama."""
RETURNED_FIELDS = ("reasoning_details", "reasoning_content")
"""Fields of an assistant's message that carry thoughts back."""
MAX_ITEM_CHARS = 64_000
"""Maximum size for one reply. Larger thoughts are dropped whole: half of them would be refused."""
RETURNED_SHARE = 0.25
"""Share of the context window that thoughts may take."""
_STEP = 4
"""Number of replies that lose their thoughts at once when these take more, so that caches stay valid."""


def split_thought(text: str) -> tuple[str, str]:
    """Split a text so far into thought and reply.

    The thought precedes the reply, between its marks.
    """
    begun = text.lstrip()
    if begun.startswith(OPENS):
        thought, _, reply = begun.removeprefix(OPENS).partition(CLOSES)
        return thought.strip(), reply.lstrip()
    if begun and OPENS.startswith(begun):  # an incomplete mark
        return "", ""
    # Some servers drop the first mark; the second is then alone on its line.
    if CLOSES in text and (end := _CLOSING_LINE.search(text)) and OPENS not in text[: end.start()]:
        return text[: end.start()].strip(), text[end.end() :].lstrip()
    return "", text


def separate_thought(delta: Any) -> str:
    """Return the thought in a piece of a stream that is separate from the reply."""
    found = (getattr(delta, name, None) for name in _FIELDS)
    return next((each for each in found if isinstance(each, str) and each), "")


def split_content(content: Any) -> tuple[str, Any]:
    """Return thought and words of a piece whose content is a list of both, as Mistral sends them."""
    if not isinstance(content, list):
        # Words come as text, from some servers as a list of parts.
        return "", content or ""
    thought = "".join(_text(part.get("thinking")) for part in content if part.get("type") == "thinking")
    return thought, "".join(_text(part) for part in content if part.get("type") == "text")


def _text(part: Any) -> str:
    if isinstance(part, list):
        return "".join(map(_text, part))
    return str(part.get("text") or "") if isinstance(part, dict) else str(part or "")


class ReasoningCollector:
    """Collects from a stream the thoughts that its provider takes back."""

    def __init__(self) -> None:
        self.details: list[dict[str, Any]] = []
        self.content = False
        """True if thoughts came as `reasoning_content`."""
        self._chars = 0

    def add(self, delta: Any) -> None:
        self.content |= bool(getattr(delta, "reasoning_content", None))
        items = getattr(delta, "reasoning_details", None)
        for item in items if isinstance(items, list) else ():
            if isinstance(item, dict) and self._chars <= MAX_ITEM_CHARS:
                self._chars += sum(len(value) for value in item.values() if isinstance(value, str))
                self._add_item(item)

    def _add_item(self, item: dict[str, Any]) -> None:
        """Add an item, or extend the last one."""
        # Texts and summaries come in pieces, and are signed at their end.
        last = self.details[-1] if self.details else {}
        words = {"reasoning.text": "text", "reasoning.summary": "summary"}.get(str(item.get("type")))
        same = all(last.get(name) == item.get(name) for name in ("type", "index"))
        if words is None or not same or last.get("signature"):
            self.details.append(dict(item))
            return
        joined = f"{last.get(words) or ''}{item.get(words) or ''}"
        last.update({name: value for name, value in item.items() if value is not None} | {words: joined})

    def items(self, provider: Provider, model: str, thought: str) -> ReasoningItems | None:
        """Return what is kept with the reply; None if the provider takes nothing back, or there is too much."""
        fields: dict[str, Any] = {}
        if _accepts_reasoning(provider) and self.details:
            fields = {"reasoning_details": self.details}
        elif provider.return_reasoning == "yes" and self.content and thought:
            fields = {"reasoning_content": thought}
        stored = json.dumps(fields)
        # Dropped whole: half of the thoughts would be refused.
        return ReasoningItems(host_of(provider), model, stored) if fields and len(stored) <= MAX_ITEM_CHARS else None


def keep_returnable(messages: Sequence[Message], provider: Provider, model: str) -> list[Message]:
    """Return the conversation with only those thoughts that this model of this provider takes back, and that fit."""
    room, kept = int(provider.context_tokens * RETURNED_SHARE), list[int]()
    own = [number for number, each in enumerate(messages) if _is_own(each, provider, model)]
    for place in reversed(range(len(own))):
        # From the latest back: recent thoughts matter most.
        room -= count_items(messages[own[place]])
        if room < 0:
            # In steps, so that the conversation's beginning stays the same for some rounds.
            kept = own[place + 1 + -(place + 1) % _STEP :]
            break
    else:
        kept = own
    return [each if number in kept else replace(each, reasoning_items=None) for number, each in enumerate(messages)]


def count_items(message: Message) -> int:
    """Estimate the tokens of the thoughts that are sent back with a message."""
    return count_text_tokens(message.reasoning_items.fields) if message.reasoning_items else 0


def read_items(message: Message) -> dict[str, Any]:
    """Return the fields of a chat message that carry thoughts back."""
    # The record may come from a file, and hold something else.
    try:
        found = json.loads(message.reasoning_items.fields) if message.reasoning_items else {}
    except (ValueError, RecursionError):
        return {}
    return {name: found[name] for name in RETURNED_FIELDS if name in found} if isinstance(found, dict) else {}


def _accepts_reasoning(provider: Provider) -> bool:
    at_openrouter = re.fullmatch(r"(.+\.)?openrouter\.ai(:\d+)?", host_of(provider))
    return provider.return_reasoning == "yes" or (provider.return_reasoning == "auto" and bool(at_openrouter))


def _is_own(message: Message, provider: Provider, model: str) -> bool:
    items = message.reasoning_items
    if items is None or not _accepts_reasoning(provider):
        return False
    return (items.host, items.model) == (host_of(provider), model)
