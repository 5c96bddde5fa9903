"""The limits of a run: whether they make sense, and whether one is reached. The only place that compares them.

It ends nothing; `loop` asks between rounds. `check` is for whoever takes limits from a person.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields

from workers.errors import RequestError
from workers.record.events import Event, Limits, Replied


def check(limits: Limits) -> None:
    """Raises RequestError if a limit is not a positive, finite number."""
    for each in fields(limits):
        value = getattr(limits, each.name)
        if value is not None and not 0 < value < math.inf:
            raise RequestError(
                f"A limit of {value:g} {_UNITS[each.name]} lets a run do nothing. "
                "Give a number above 0, or leave the field empty for no limit."
            )


def exceeded(limits: Limits, events: Sequence[Event], seconds: float) -> str | None:
    """A sentence that names the first limit reached, its value and what was used; None if none is.

    `seconds` is the work on the run so far.
    """
    for name, used in _used(events, seconds).items():
        limit = getattr(limits, name)
        if limit is not None and used >= limit:
            return f"The limit of {_figure(name, limit)} is reached: {_figure(name, used)} used."
    return None


def without_price(limits: Limits, label: str, price_known: bool) -> str:
    """Why a limit of the cost cannot hold, with what to do about it; "" if it can, or there is none."""
    if limits.cost is None or price_known:
        return ""
    return (
        f"No price is known for {label}, so the limit of ${limits.cost:g} on the cost cannot hold. Run it without that "
        "limit, or have an admin add the price: Settings, Models says where."
    )


def _used(events: Sequence[Event], seconds: float) -> dict[str, float]:
    usages = [usage for event in events if (usage := getattr(event.payload, "usage", None))]
    return {
        "rounds": sum(isinstance(event.payload, Replied) for event in events),
        "tokens": sum(usage.prompt_tokens + usage.completion_tokens for usage in usages),
        "cost": sum(usage.cost for usage in usages),
        "seconds": seconds,
    }


_UNITS = {"rounds": "rounds", "tokens": "tokens", "cost": "US dollars", "seconds": "seconds"}


def _figure(name: str, value: float) -> str:
    number = f"{value:,.3f}".rstrip("0").rstrip(".")
    return f"{number} {_UNITS[name]}"
