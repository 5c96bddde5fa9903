"""The limits of a run in words: what each may be, and what changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.models.run import LIMITS

NAMES = {"rounds": "rounds", "tokens": "tokens", "cost": "cost", "seconds": "seconds of work"}


def written(name: str, value: float | None) -> str:
    """One limit as a page says it."""
    if value is None:
        return "no limit"
    return f"${value:,.2f}" if name == "cost" else f"{value:,.0f}"


def in_words(limits: Mapping[str, Any]) -> str:
    """All of them in a line."""
    return ", ".join(f"{NAMES[name]} {written(name, limits.get(name))}" for name in LIMITS)


def changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Those that differ: name, what held before, what holds now."""
    return [
        (NAMES[name], written(name, before.get(name)), written(name, after.get(name)))
        for name in LIMITS
        if before.get(name) != after.get(name)
    ]


def reached(limits: Mapping[str, Any], used: Mapping[str, float]) -> str:
    """The first limit that is used up, in a few words; "" if there is room."""
    for name in LIMITS:
        limit = limits.get(name)
        if limit is not None and used[name] >= limit:
            return f"{NAMES[name]}: {written(name, used[name])} used of {written(name, limit)}"
    return ""
