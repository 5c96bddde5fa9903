"""What replies cost."""

from __future__ import annotations

import re
from collections.abc import Mapping

from workers.record.limits import Usage

_MILLION = 1_000_000
_VERSION = re.compile(r"[-@:](\d{3}|latest|preview)")
"""How the name of a version goes on after that of the model: gpt-4o-2024-08-06, gemini-2.0-flash-001, qwen:latest."""


def find_price(prices: Mapping[str, tuple[float, float]], model: str) -> tuple[float, float] | None:
    """US dollars for a million prompt and completion tokens; None if nobody has said.

    A version of a model costs what the model does, where the table does not name the version itself.
    """
    fitting = (name for name in prices if model.startswith(name) and _VERSION.match(model, len(name)))
    return prices.get(model) or prices.get(max(fitting, key=len, default=""))


def price_usage(prices: Mapping[str, tuple[float, float]], model: str, prompt: int, completion: int) -> Usage:
    """Tokens and what they cost. Discounts for what a provider had in its cache are not known here."""
    found = find_price(prices, model)
    if found is None:
        return Usage(prompt, completion, priced=False)
    return Usage(prompt, completion, (prompt * found[0] + completion * found[1]) / _MILLION)
