"""What the payload of an imported event may hold: nothing so large that a page, a list or the database suffers.

Types are checked before, by the worker's own classes of events. Raises ValueError naming the field.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.exchange import run_decoding
from experiments.exchange.run_decoding import HIGHEST, shorten_value

TEXT, NAME = 2_000_000, 200
"""Characters of a text, and of the name of a field."""
LIST, FIELDS, DEEP = 20_000, 200, 12
LARGEST = 1e30
"""No activation, cost or time is larger."""
MOST_LABELS, LABEL_CHARS, MOST_HYPOTHESES = 100, 10_000, 1_000
COUNTS = ("round", "number", "attempt", "heard", "run")
COLUMNS = {"backbone": 40, "backbone_model": 200}
"""Characters of what becomes a column of the run's row."""
NOT_NEGATIVE = ("seconds", "tool_seconds")

Payload = Mapping[str, Any]


def check_payload(kind: str, payload: Payload) -> None:
    """Raises ValueError, and ExchangeError for limits and options that make no sense."""
    check_value(payload, "payload")
    for name in COUNTS:
        if not 0 <= (payload.get(name) or 0) <= HIGHEST:
            raise ValueError(f"{name} is {payload[name]}, and that is out of range")
    used = [(name, payload.get(name)) for name in NOT_NEGATIVE] + list((payload.get("usage") or {}).items())
    if negative := [(name, value) for name, value in used if (value or 0) < 0]:
        raise ValueError(f"{negative[0][0]} is {shorten_value(negative[0][1])}, and that is below 0")
    # Of hypotheses and labels there is a row for each
    labels = (payload.get("conclusion") or {}).get("labels", ())
    if len(labels) > MOST_LABELS or any(len(text) > LABEL_CHARS for text in labels):
        raise ValueError(f"labels are over {MOST_LABELS}, or one has over {LABEL_CHARS:,} characters")
    if len(payload.get("hypotheses", ())) > MOST_HYPOTHESES:
        raise ValueError(f"hypotheses are over {MOST_HYPOTHESES:,}")
    for name in ("limits", "before"):
        if payload.get(name) is not None and kind in {"started", "limits"}:
            run_decoding.limits(payload[name], f"{kind}: {name}")
    if kind == "started":
        run_decoding.options(payload["system"]["options"])
    if kind == "handover":
        check_columns(payload)


def check_value(value: Any, name: str, depth: int = 0) -> None:
    """Whatever its field is called: no endless text, list or number anywhere."""
    if depth > DEEP:
        raise ValueError(f"{name} is nested too deeply")
    if isinstance(value, str) and len(value) > TEXT:
        raise ValueError(f"{name} has {len(value):,} characters, at most {TEXT:,} are possible")
    if run_decoding.is_number(value) and abs(value) > LARGEST:
        raise ValueError(f"{name} is {shorten_value(value)}, and that is too large")
    if isinstance(value, (list, tuple)):
        if len(value) > LIST:
            raise ValueError(f"{name} has {len(value):,} entries, at most {LIST:,} are possible")
        for each in value:
            check_value(each, name, depth + 1)
    if isinstance(value, Mapping):
        if len(value) > FIELDS or any(len(key) > NAME for key in value):
            raise ValueError(f"{name} has over {FIELDS} fields, or one with a name over {NAME} characters")
        for key, each in value.items():
            check_value(each, key, depth + 1)


def check_columns(payload: Payload) -> None:
    for name in COLUMNS:
        if len(payload[name]) > (most := COLUMNS[name]):
            raise ValueError(f"{name} has {len(payload[name]):,} characters, at most {most} are possible")
