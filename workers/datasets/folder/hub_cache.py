"""Read the cache of the Hugging Face hub as folders: what `hf download --repo-type dataset OWNER/NAME` leaves.

A repository is `datasets--OWNER--NAME` with `refs` (branch -> revision), `snapshots` (a folder of links for each
revision) and `blobs`, where the files themselves lie. Used by `dataset`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_KINDS = ("datasets", "models", "spaces")
_MAIN = "main"


def find_snapshot(folder: Path) -> Path:
    """Return a repository's snapshot: that of its branch main, else the newest. Any other folder is returned as it
    is."""
    snapshots = folder / "snapshots"
    if not _is_repository(folder) or not snapshots.is_dir():
        return folder
    with suppress(OSError, ValueError):
        named = snapshots / (folder / "refs" / _MAIN).read_text().strip()
        # The file may hold anything, such as a path that leads out of the snapshots.
        if named.parent == snapshots and named.is_dir():
            return named
    there = [each for each in snapshots.iterdir() if each.is_dir()]
    # By name where two were written at the same time, so that the choice is stable.
    return max(there, key=lambda each: (each.stat().st_mtime_ns, each.name), default=folder)


def find_blobs(folder: Path) -> Path | None:
    """Return where the files of a snapshot, or of a folder in one, lie; None for a folder that is in no snapshot."""
    found = _find_repository(folder)
    return found / "blobs" if found else None


def repository_name(folder: Path) -> str:
    """Return OWNER/NAME of a snapshot, with the folder in it if there is one; "" for a folder that is in no
    snapshot."""
    found = _find_repository(folder)
    if not found:
        return ""
    # The first two parts are `snapshots` and the revision.
    inside = folder.relative_to(found).parts[2:]
    return "/".join((*found.name.split("--")[1:], *inside))


def _find_repository(folder: Path) -> Path | None:
    pairs: Iterator[tuple[Path, Path]] = zip(folder.parents, folder.parents[1:], strict=False)
    return next((above for near, above in pairs if near.name == "snapshots" and _is_repository(above)), None)


def _is_repository(folder: Path) -> bool:
    kind, *names = folder.name.split("--")
    return kind in _KINDS and any(names) and (folder / "blobs").is_dir()
