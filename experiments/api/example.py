"""Build example requests: with curl and the token in a shell variable, and with the Python client."""

from __future__ import annotations

import json
import shlex
from typing import Any

TOKEN = "$MAIA_TOKEN"  # noqa: S105 - a variable of the shell


def curl(address: str, method: str = "GET", body: Any = None) -> str:
    """Return the command that sends this request."""
    words = ["curl", *([] if method == "GET" or body is not None else ["-X", method])]
    words += ["-X", method] if body is not None and method != "POST" else []
    line = f'{shlex.join(words)} -H "Authorization: Bearer {TOKEN}"'
    if body is not None:
        line += f" --json {shlex.quote(json.dumps(body, ensure_ascii=False))}"
    return f"{line} {shlex.quote(address)}"


def build_python(site: str) -> str:
    """Return five lines that do the main job with `static/client/maia_client.py`."""
    return f"""from maia_client import Maia
maia = Maia({json.dumps(site)}, token="maia_…")
run = maia.ask("What does unit 7 respond to?", model="toybox", layer="layer4", unit=7).wait()
print(run.description, run.labels, run.check()["pearson"])
run.observations().to_csv("observations.csv")
"""
