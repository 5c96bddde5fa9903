"""Tells what of a prompt no text encoder of a pipeline reads, because it is too long."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def find_unread(pipeline: Any, words: str, calls: Mapping[str, int | float]) -> str:
    """A remark that names the end of the words that was cut; "" if all of them are read.

    Of several text encoders the one that reads furthest counts.
    """
    remarks = []
    for name, part in pipeline.components.items():
        if name.startswith("tokenizer") and part is not None:
            limit = min(part.model_max_length, int(calls.get("max_sequence_length", part.model_max_length)))
            remarks.append(_beyond(part, words, limit))
    if not remarks or "" in remarks:
        return ""
    return min(remarks, key=len)


def _beyond(tokenizer: Any, words: str, limit: int) -> str:
    tokens = tokenizer(words, verbose=False).input_ids
    if len(tokens) <= limit:
        return ""
    unread = tokenizer.decode(tokens[limit - 1 : -1]).strip()
    return f"only the first {limit} tokens were read; cut: {unread!r}"
