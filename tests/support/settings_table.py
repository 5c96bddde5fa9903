"""The settings that the code reads, and those that the README lists."""

from __future__ import annotations

import ast
import re

from tests import ROOT

OPERATIONS = (ROOT / "docker/README.md").read_text()


def settings_in_code() -> dict[str, str | None]:
    """Variable -> its default as the table writes it, None where there is none or it is computed."""
    found: dict[str, str | None] = {}
    for call in ast.walk(ast.parse((ROOT / "maia_web/settings.py").read_text())):
        if not isinstance(call, ast.Call) or not call.args or not isinstance(call.args[0], ast.Constant):
            continue
        name = call.args[0].value
        if isinstance(name, str) and name.startswith(("MAIA_", "OPENAI_", "OTEL_")):
            given = [*call.args[1:2], *(word.value for word in call.keywords if word.arg == "default")]
            found[name] = in_words(given[0]) if given else None
    return found


def in_words(default: ast.expr) -> str | None:
    if not isinstance(default, ast.Constant):
        return None
    if isinstance(default.value, bool):
        return "yes" if default.value else "no"
    return str(default.value)


def settings_in_table() -> dict[str, str]:
    return dict(re.findall(r"^\| `((?:MAIA|OPENAI|OTEL)_\w+)` \| (.*?) \|", OPERATIONS, flags=re.MULTILINE))
