"""Format the form as the equivalent command on the terminal, and as the body of a request to the API."""

from __future__ import annotations

import shlex
from contextlib import suppress
from typing import Any

from experiments.core import compatibility
from experiments.core.params import parse_number
from experiments.runs.asking.form import COMMAND_DEFAULTS
from workers.record.limits import DEFAULT_LIMITS

_TICKS = ("ablation", "unpriced")


def command_line(values: dict[str, Any]) -> str:
    """Return the command that asks the same on the terminal, without values that are its defaults."""
    words = ["python", "manage.py", "investigate"]
    # 1. The system.
    named = ("circuit",) if values.get("circuit") else ("model", "layer", "unit")
    for name in named:
        words += [f"--{name}", str(values.get(name) or "0")]
    model = str(values.get("model") or compatibility.TOYBOX)
    # For other models the command may choose another dataset or toolset, so both are named.
    by_itself = compatibility.has_functions(model) or compatibility.is_toybox(model)
    for name, default in COMMAND_DEFAULTS.items():
        value = str(values.get(name) or default)
        if value != default or (not by_itself and name in ("dataset", "toolset")):
            words += [f"--{name.replace('_', '-')}", value]
    for name, limit in DEFAULT_LIMITS.items():
        value = values.get(name, limit)
        if str(value) != str(limit):
            words += [f"--max-{name}", "none" if value in {None, ""} else str(value)]
    words += [f"--{name}" for name in _TICKS if values.get(name)]
    question = " ".join(str(values.get("question") or "").split())
    if question:
        words += ["--question", question]
    # Quoted for a shell: a question may hold any character.
    return shlex.join(words)


def request_body(values: dict[str, Any]) -> dict[str, Any]:
    """Return the body of an API request that asks the same, without default values."""
    body: dict[str, Any] = {"question": str(values.get("question") or "")}
    if values.get("circuit"):
        body["circuit"] = parse_number(str(values["circuit"]))
    else:
        body |= {name: str(values.get(name) or "") for name in ("model", "layer")}
    # On one line, as the request is shown.
    body["question"] = " ".join(body["question"].split())
    if "circuit" not in body:
        unit = str(values.get("unit") or "0")
        known = parse_number(unit)
        body["unit"] = unit if known is None else known
    for name, default in COMMAND_DEFAULTS.items():
        value = str(values.get(name) or default)
        if value != default:
            body[name] = read_number(value) if name in {"seed", "exemplars", "reflections"} else value
    body |= {name: True for name in _TICKS if values.get(name)}
    given = {name: values.get(name, usual) for name, usual in DEFAULT_LIMITS.items()}
    limits = {name: read_number(value) for name, value in given.items() if str(value) != str(DEFAULT_LIMITS[name])}
    return body | ({"limits": limits} if limits else {})


def read_number(written: Any) -> int | float | str | None:
    """Return the value as in JSON: null for empty. Text that is not a number stays text, so that the API reports it."""
    text = str(written if written is not None else "").strip()
    for kind in (int, float):
        with suppress(ValueError):
            # JSON has neither infinity nor NaN.
            if abs(number := kind(text)) < float("inf"):
                return number
    return text or None
