"""What rows a backup holds, so that two of them can be compared."""

from __future__ import annotations

import gzip
import json
import tarfile
from pathlib import Path
from typing import Any


def read_rows(path: Path) -> dict[str, list[dict[str, Any]]]:
    """Table -> its rows. JSON in columns is decoded, for PostgreSQL orders its keys; whether there are thumbnails is
    left out, for a restore has them made anew."""
    found: dict[str, list[dict[str, Any]]] = {}
    with tarfile.open(path) as tar:
        for member in tar:
            if member.name.startswith("rows/"):
                file = tar.extractfile(member)
                assert file is not None
                columns, *lines = map(json.loads, gzip.decompress(file.read()).splitlines())
                rows = [{name: _decode(value) for name, value in zip(columns, row, strict=True)} for row in lines]
                found[member.name] = [{**row, "has_thumbnails": None} for row in rows]
    return found


def _decode(value: Any) -> Any:
    try:
        return json.loads(value) if isinstance(value, str) and value[:1] in "[{" else value
    except ValueError:
        return value
