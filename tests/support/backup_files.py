"""Backups taken apart and put together again, as whoever means harm would; and the empty installation they go to."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from pathlib import Path

from django.core.management import call_command
from django.db import connection

Members = dict[str, bytes]
RUNS = "rows/experiments_run.jsonl.gz"


def ignore(what: str, done: int, total: int) -> None:
    """Nobody watches."""


def members(path: Path) -> Members:
    with tarfile.open(path) as tar:
        return {each.name: tar.extractfile(each).read() for each in tar}  # type: ignore[union-attr]


def pack(path: Path, parts: Members, *, kind: bytes = tarfile.REGTYPE) -> Path:
    """A backup of these members; `kind` is what the last of them is."""
    with tarfile.open(path, "w") as tar:
        for place, (name, data) in enumerate(parts.items(), 1):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            if place == len(parts) and kind != tarfile.REGTYPE:
                member.type, member.linkname, member.size = kind, "/etc/passwd", 0
            tar.addfile(member, io.BytesIO(data))
    return path


def empty() -> None:
    """An installation that was just made."""
    call_command("flush", verbosity=0, interactive=False)
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            for table in ("experiments_trigrams", "experiments_ngrams"):
                cursor.execute(f"INSERT INTO {table} ({table}) VALUES ('delete-all')")


def with_runs(backup: Path, *lines: bytes) -> Path:
    """The same backup with other rows of runs, and hashes that are right."""
    parts = members(backup)
    columns = gzip.decompress(parts[RUNS]).splitlines()[0]
    return sealed(backup, {**parts, RUNS: gzip.compress(b"\n".join([columns, *lines]) + b"\n")})


def sealed(backup: Path, parts: Members) -> Path:
    """A backup of these members, whose manifest says so."""
    images, manifest = hashlib.sha256(), json.loads(parts.pop("manifest.json"))
    for name, data in parts.items():
        if name.startswith("images/"):
            images.update(data)
        else:
            manifest["hashes"][name] = hashlib.sha256(data).hexdigest()
    manifest["hashes"]["images"] = images.hexdigest()
    return pack(backup.with_name("wrong.maia"), {**parts, "manifest.json": json.dumps(manifest).encode()})
