"""The limits of a run: validation, whether one is reached, and their description. No other module does this.

`agent.rules` calls it between rounds and ends the run. Callers that take limits from a person use `check`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from workers.errors import RequestError

MAX_REFLECTIONS = 10
"""Maximum number of times that a failed label is sent back to the agent."""

MAX_EXEMPLARS = 15
"""Exemplars stored for each unit (MAIA's paper, section 3.2), and so the maximum for a run. AIM uses 5."""

QUESTION_CHARS = 4_000
"""Maximum length of a question."""

NAMES = {"rounds": "rounds", "tokens": "tokens", "cost": "cost", "seconds": "seconds of work"}
_UNITS = {"rounds": "rounds", "tokens": "tokens", "cost": "US dollars", "seconds": "seconds"}


@dataclass(frozen=True)
class Usage:
    """What a reply took. Tokens are the provider's count; cost is in US dollars."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    priced: bool = True
    """True if `cost` is complete; False if a price is unknown."""
    cached_tokens: int = 0
    """Prompt tokens that the provider read from its cache."""

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.cost + other.cost,
            self.priced and other.priced,
            self.cached_tokens + other.cached_tokens,
        )


@dataclass(frozen=True)
class Limits:
    """What a run may use before it is asked for a final answer. None means no limit."""

    rounds: int | None = 25
    tokens: int | None = 1_000_000
    cost: int | float | None = 5
    """US dollars."""
    seconds: int | float | None = 3600
    """Seconds of work, without waits between rounds."""


DEFAULT_LIMITS: dict[str, int | float] = asdict(Limits())
"""The default `Limits()` as plain JSON."""


def check(limits: Limits) -> None:
    """Raise RequestError if a limit is not a positive, finite number."""
    for name, value in asdict(limits).items():
        # Written so that NaN is refused too
        if value is not None and not 0 < value < math.inf:
            raise RequestError(
                f"A limit of {value:g} {_UNITS[name]} lets a run do nothing. "
                "Give a number above 0, or leave the field empty for no limit."
            )


def explain_exceeded(limits: Limits, rounds: int, usage: Usage, seconds: float) -> str | None:
    """Return a sentence that names the first limit reached, its value and what was used; None if none is reached.

    `rounds` counts the replies so far, `usage` is what they took, `seconds` the work on the run.
    """
    # In this order: the first limit reached is the one that is named
    used = {"rounds": rounds, "tokens": usage.tokens, "cost": usage.cost, "seconds": seconds}
    for name, amount in used.items():
        limit = getattr(limits, name)
        if limit is not None and amount >= limit:
            return f"The limit of {_figure(name, limit)} is reached: {_figure(name, amount)} used."
    return None


def without_price(limits: Limits, label: str, price_known: bool) -> str:
    """Return why a limit on the cost cannot be enforced, and the remedy; "" if it can, or there is none."""
    if limits.cost is None or price_known:
        return ""
    return explain_unpriced(
        label,
        f"the limit of ${limits.cost:g} on the cost",
        "Remove that limit, or start it with “Run without a known price” (--unpriced)",
    )


def explain_unpriced(label: str, what: str, remedy: str) -> str:
    """Say why `what`, a limit or a budget, cannot be enforced without a price. `remedy` says how to do without it."""
    return (
        f"No price is known for {label}, so {what} cannot hold. {remedy}, or have an admin add the price to the file "
        "that MAIA_OPENAI_PRICES names (Settings, Models says where)."
    )


def _figure(name: str, value: float) -> str:
    number = f"{value:,.3f}".rstrip("0").rstrip(".")
    return f"{number} {_UNITS[name]}"


# --- in words, for pages: limits as plain JSON, name -> value ---


def _format_limit(name: str, value: float | None) -> str:
    """Format one limit for a page."""
    if value is None:
        return "no limit"
    return f"${value:,.2f}" if name == "cost" else f"{value:,.0f}"


def format_limits(limits: Mapping[str, Any]) -> str:
    """Format all limits on one line."""
    return ", ".join(f"{NAMES[name]} {_format_limit(name, limits.get(name))}" for name in NAMES)


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return the limits that differ: name, old value, new value."""
    return [
        (NAMES[name], _format_limit(name, before.get(name)), _format_limit(name, after.get(name)))
        for name in NAMES
        if before.get(name) != after.get(name)
    ]


def find_exhausted(limits: Mapping[str, Any], used: Mapping[str, float]) -> str:
    """Return the first exhausted limit in a few words; "" if there is none."""
    # The order of `NAMES`, as in `explain_exceeded`
    for name in NAMES:
        limit = limits.get(name)
        if limit is not None and used[name] >= limit:
            return f"{NAMES[name]}: {_format_limit(name, used[name])} used of {_format_limit(name, limit)}"
    return ""
