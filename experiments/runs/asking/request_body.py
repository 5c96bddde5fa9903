"""What the New query form says as the body of a request to the API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.core.params import parse_number
from experiments.runs.asking.form import COMMAND_DEFAULTS
from workers.record.limits import USUAL


def request_body(values: Mapping[str, Any]) -> dict[str, Any]:
    """The body that asks what the New query form says; what is the default is left out."""
    unit = str(values.get("unit") or "0")
    body: dict[str, Any] = {name: str(values.get(name) or "") for name in ("question", "model", "layer")}
    body["question"] = " ".join(body["question"].split())
    known = parse_number(unit)
    body["unit"] = unit if known is None else known
    for name, default in COMMAND_DEFAULTS.items():
        value = str(values.get(name) or default)
        if value != default:
            body[name] = number(value) if name == "seed" else value
    changed = {
        name: number(values[name]) for name, usual in USUAL.items() if str(values.get(name, usual)) != str(usual)
    }
    body |= {"unpriced": True} if values.get("unpriced") else {}
    return body | ({"limits": changed} if changed else {})


def number(written: Any) -> int | float | str | None:
    """As JSON has it: empty is null, and what is no number stays, for the API to say so."""
    text = str(written if written is not None else "").strip()
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        pass
    try:
        value = float(text)
    except ValueError:
        return text
    return value if abs(value) < float("inf") else text
