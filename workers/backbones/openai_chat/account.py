"""What replies cost."""

from __future__ import annotations

import re
from collections.abc import Mapping

from workers.protocols import Usage

_MILLION = 1_000_000
_VERSION = re.compile(r"[-@:](\d{3}|latest|preview)")
"""How the name of a version goes on after that of the model: gpt-4o-2024-08-06, gemini-2.0-flash-001, qwen:latest."""


def price(prices: Mapping[str, tuple[float, float]], model: str) -> tuple[float, float]:
    """US dollars for a million prompt and completion tokens; (0, 0) if nobody has said.

    A version of a model costs what the model does, where the table does not name the version itself.
    """
    if model in prices:
        return prices[model]
    fitting = (name for name in prices if model.startswith(name) and _VERSION.match(model, len(name)))
    return prices.get(max(fitting, key=len, default=""), (0.0, 0.0))


def usage(prices: Mapping[str, tuple[float, float]], model: str, prompt: int, completion: int) -> Usage:
    """Tokens and what they cost. Discounts for what a provider had in its cache are not known here."""
    asked, answered = price(prices, model)
    return Usage(prompt, completion, (prompt * asked + completion * answered) / _MILLION)


def both(one: Usage, other: Usage) -> Usage:
    """The sum."""
    return Usage(
        one.prompt_tokens + other.prompt_tokens,
        one.completion_tokens + other.completion_tokens,
        one.cost + other.cost,
    )
