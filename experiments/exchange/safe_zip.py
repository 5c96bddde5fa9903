"""Read untrusted files within limits: archives, JSON and lines.

Nothing is unpacked to disk, and no name in an archive is used as a path. Every problem is an `ExchangeError` that names
the member and the reason.
"""

from __future__ import annotations

import hashlib
import io
import json
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, NoReturn

from experiments.core.request_limits import UPLOAD
from workers.errors import RequestError

UNPACKED = 4 << 30
"""Maximum bytes of an unpacked archive."""
RATIO = 200
"""Maximum compression ratio of a member."""
MEMBERS = 100_000
DIRECTORY = 32 << 20
"""Maximum bytes of an archive's table of contents."""
LINE = 32 << 20
"""Maximum bytes of a line, and of a small JSON file."""
IMAGE = 64 << 20
"""Maximum bytes of an image file."""
PIXELS = 4 << 30
"""Maximum pixels of all images of a run: an image of one colour is small as a file but slow to decode."""
DIGITS = 18
CHUNK = 1 << 16
MANIFEST = "manifest.json"
BUNDLE = "bundle/"
"""The folder of a dataset that holds full runs."""
INSPECT_FILES = frozenset({"header.json", "summaries.json", "reductions.json"})
INSPECT_FOLDERS = ("samples/", "_journal/")
"""Files of an Inspect AI log beside our bundle. They are ignored."""
DESKTOP_FILES = frozenset({".DS_Store", "Thumbs.db", "desktop.ini"})
"""Files that desktops add to folders. They are ignored."""


class ExchangeError(RequestError):
    """Raised when a file is refused. Names the member and the reason; nothing was saved."""


class Guarded(io.BufferedReader):
    """A file whose reads are limited, because zipfile reads the table of contents of an archive at once."""

    def read(self, size: int | None = -1, /) -> bytes:
        most = DIRECTORY + 1
        data = super().read(most if size is None or size < 0 else min(size, most))
        if len(data) > DIRECTORY:
            raise ExchangeError("The archive's table of contents is over 32 MB: export fewer runs at a time.")
        return data


class Archive:
    """A zip archive with safe names. With `proven`, its members must match its manifest."""

    def __init__(self, packed: zipfile.ZipFile, *, proven: bool = True) -> None:
        self.packed = packed
        listed = packed.infolist()
        if len(listed) > MEMBERS:
            raise ExchangeError(
                f"The archive has {len(listed):,} members, at most {MEMBERS:,} are possible: export fewer runs."
            )
        self.members = _find_members(listed)
        self._is_log = any(info.filename == "header.json" for info in listed)
        self.unpacked = 0
        self.hashes: dict[str, str] | None = None
        if proven:
            self.members = _full_runs_in(self.members)
            self.hashes = self._read_manifest()

    def _read_manifest(self) -> dict[str, str]:
        """Return SHA-256 by member. Raises ExchangeError if the manifest and the archive differ."""
        if MANIFEST not in self.members:
            raise ExchangeError(_describe_no_runs(self.members, self._is_log))
        manifest = parse_json(b"".join(self.chunks(MANIFEST, LINE)), MANIFEST)
        hashes = manifest.get("files") if isinstance(manifest, dict) else None
        if not isinstance(hashes, dict):
            raise ExchangeError(f"{MANIFEST} has no field files.")
        if absent := sorted(set(hashes) - set(self.members)):
            raise ExchangeError(f"{absent[0]!r} is in {MANIFEST} and not in the archive.")
        if more := sorted(set(self.members) - set(hashes) - {MANIFEST}):
            raise ExchangeError(f"{more[0]!r} is in the archive and not in {MANIFEST}. Take it out, or export again.")
        return hashes

    def folders(self) -> list[str]:
        """Return the folders of runs, "" or "run-12/", by number. Raises ExchangeError if there are none."""
        found = [name.removesuffix("run.json") for name in self.members if f"/{name}".endswith("/run.json")]
        if not found:
            raise ExchangeError("The archive has no run.json: there is no run in it.")
        # By length first, so that run-9 comes before run-12
        return sorted(found, key=lambda name: (len(name), name))

    def chunks(self, name: str, most: int = UNPACKED) -> Iterator[bytes]:
        """Yield the bytes of a member, up to `most`. Raises ExchangeError, also if its hash differs from the
        manifest."""
        info = self.members.get(name)
        if info is None:
            raise ExchangeError(f"{name!r} is missing in the archive.")
        digest, size = hashlib.sha256(), 0
        try:
            with self.packed.open(info) as member:
                while chunk := member.read(CHUNK):
                    size += len(chunk)
                    self.bound(info, size, len(chunk), most)
                    digest.update(chunk)
                    yield chunk
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError) as error:
            raise ExchangeError(f"{name!r} is damaged ({error}). Send the file again.") from None
        # Only known at the end: callers must not save anything before the last chunk
        if self.hashes is not None and self.hashes.get(name) != digest.hexdigest():
            raise ExchangeError(
                f"{name!r} is not what {MANIFEST} says: its SHA-256 is {digest.hexdigest()[:12]}…. Something changed "
                "it, such as a program that turns line ends: send the archive as it was exported."
            )

    def bound(self, info: zipfile.ZipInfo, size: int, more: int, most: int) -> None:
        self.unpacked += more
        if size > most:
            raise ExchangeError(f"{info.filename!r} is larger than {most >> 20:,} MB.")
        # Small members may well compress this much; a bomb needs size
        if size > 1 << 20 and size > RATIO * max(info.compress_size, 1):
            raise ExchangeError(
                f"{info.filename!r} is over {RATIO} times as large as what it was packed into: a zip bomb."
            )
        if self.unpacked > 3 * UNPACKED:  # Every member is read up to three times
            raise ExchangeError(f"The archive holds more than {UNPACKED >> 30} GB: export fewer runs at a time.")

    def bytes(self, name: str, most: int) -> bytes:
        return b"".join(self.chunks(name, most))

    def json(self, name: str) -> dict[str, Any]:
        """Return the object of a JSON member. Raises ExchangeError if it is none."""
        found = parse_json(self.bytes(name, LINE), name)
        if not isinstance(found, dict):
            raise ExchangeError(f"{name!r} is no JSON object.")
        return found

    def lines(self, name: str, most: int = UNPACKED) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield (location, object) of each line of a member in JSON Lines, up to `most` bytes. Raises ExchangeError."""
        rest, number = b"", 0
        for chunk in self.chunks(name, most):
            *whole, rest = (rest + chunk).split(b"\n")
            if len(rest) > LINE:
                raise ExchangeError(f"{name}, line {number + 1} is longer than {LINE >> 20} MB.")
            for line in whole:
                number += 1
                place = f"{name}, line {number}"
                found = parse_json(line, place)
                if not isinstance(found, dict):
                    raise ExchangeError(f"{place} is no JSON object.")
                yield place, found
        if rest:
            raise ExchangeError(f"{name} ends in the middle of line {number + 1}.")


@contextmanager
def open_archive(path: Path, *, proven: bool = True) -> Iterator[Archive]:
    """Open an archive; use `proven=False` for archives that other programs write. Raises ExchangeError."""
    check_size(path)
    with Guarded(io.FileIO(path)) as file:
        try:
            packed = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
            raise ExchangeError(
                f"This is not a complete zip archive ({error}); it may be cut off. Send it again."
            ) from None
        with packed:
            yield Archive(packed, proven=proven)


def check_size(path: Path) -> None:
    if (size := path.stat().st_size) > UPLOAD:
        raise ExchangeError(f"The file has {size >> 20:,} MB, at most {UPLOAD >> 20:,} MB are possible.")
    if not size:
        raise ExchangeError("The file is empty.")


def _find_members(listed: Iterable[zipfile.ZipInfo]) -> dict[str, zipfile.ZipInfo]:
    """Return files by name, undoing a manual unpack and repack: no folders, no desktop files, no single outer folder.
    The manifest checks the rest. Raises ExchangeError for an unsafe name."""
    members: dict[str, zipfile.ZipInfo] = {}
    for info in listed:
        name = _check_member(info)
        if info.is_dir() or name.startswith("__MACOSX/") or PurePosixPath(name).name in DESKTOP_FILES:
            continue
        if members.setdefault(name, info) is not info:
            raise ExchangeError(f"{name!r} is in the archive twice.")
    # People repack a folder with the folder itself
    outer = {name.partition("/")[0] for name in members}
    if MANIFEST not in members and len(outer) == 1 and not outer & members.keys():
        members = {name.partition("/")[2]: info for name, info in members.items()}
    return {name: info for name, info in members.items() if not _is_of_inspect(name)}


def _is_of_inspect(name: str) -> bool:
    return name in INSPECT_FILES or name.startswith(INSPECT_FOLDERS)


def _describe_no_runs(members: dict[str, zipfile.ZipInfo], is_log: bool) -> str:
    """Describe why an archive without a manifest cannot be imported as runs."""
    if is_log:
        return (
            "This Inspect log has no runs of MAIA Web. Logs of evaluations are only for viewing, and Inspect drops our "
            "runs when it rewrites a log. Export the runs as an Inspect log, and import that."
        )
    if "README.md" in members:
        why = "it is a dataset without full runs. Export it with them, or import its labels."
        return f"The archive has no {MANIFEST}: {why}"
    return f"The archive has no {MANIFEST}: it is not a complete bundle of MAIA Web."


def _full_runs_in(members: dict[str, zipfile.ZipInfo]) -> dict[str, zipfile.ZipInfo]:
    """Return the members of the full runs of a dataset, without their folder; of a bundle, all members."""
    if f"{BUNDLE}{MANIFEST}" not in members:
        return members
    return {name.removeprefix(BUNDLE): info for name, info in members.items() if name.startswith(BUNDLE)}


def _check_member(info: zipfile.ZipInfo) -> str:
    """Return the name of a regular file or folder inside the archive. Raises ExchangeError."""
    # Some Windows programs separate folders by backslashes
    name = info.orig_filename.replace("\\", "/")
    path = PurePosixPath(name)
    if "\x00" in name or not name or len(name) > 300:
        raise ExchangeError(f"{name[:80]!r} is no name for a member of an archive.")
    if path.is_absolute() or ":" in name:
        raise ExchangeError(f"{name!r} is an absolute path.")
    if ".." in path.parts:
        raise ExchangeError(f"{name!r} is a path outside the archive.")
    # Zips from systems other than Unix have no file type
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind not in {0, stat.S_IFREG, stat.S_IFDIR}:
        what = "symbolic link" if kind == stat.S_IFLNK else "special file"
        raise ExchangeError(f"{name!r} is a {what}.")
    if info.flag_bits & 0x1:
        raise ExchangeError(f"{name!r} is encrypted: unpack the archive with its password, and pack it without one.")
    if info.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
        raise ExchangeError(f"{name!r} uses an unsupported compression. Use deflate.")
    return name


def check_pixels(pixels: int) -> None:
    """Raise ExchangeError if the images of a run have too many pixels in total."""
    if pixels > PIXELS:
        raise ExchangeError(f"The images of the run are over {PIXELS:,} pixels in all. Leave some out, or reduce them.")


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")


def parse_json(data: bytes, where: str, constant: Callable[[str], Any] = _no_number) -> Any:
    """Parse untrusted JSON; very large numbers are refused. `constant` converts NaN and infinities. Raises
    ExchangeError."""
    try:
        return json.loads(data.decode("utf-8"), parse_constant=constant, parse_float=finite, parse_int=_parse_integer)
    # Before ValueError, of which it is a subclass.
    except UnicodeDecodeError:
        raise ExchangeError(f"{where} is not in UTF-8.") from None
    except RecursionError:
        raise ExchangeError(f"{where} is nested too deeply.") from None
    except ValueError as error:
        raise ExchangeError(f"{where} is no JSON: {error}.") from None


def finite(text: str) -> float:
    # "1e999" would become infinity
    if abs(number := float(text)) > 1e300:
        _no_number(text[:40])
    return number


def _parse_integer(text: str) -> int:
    # Long numbers take quadratic time to parse, and no column holds them
    if len(text) > DIGITS:
        raise ValueError(f"the number {text[:30]}… is too large")
    return int(text)


def text_lines(path: Path, longest: int) -> Iterator[str]:
    """Yield the lines of a text file in UTF-8, or in UTF-16 with a byte order mark. Raises ExchangeError."""
    with path.open("rb") as file:
        encoding = "utf-16" if file.read(2) in {b"\xff\xfe", b"\xfe\xff"} else "utf-8-sig"
    with path.open(encoding=encoding, newline="") as reader:
        try:
            # One character more tells that the line is too long, without reading all of it.
            while line := reader.readline(longest + 1):
                if len(line) > longest:
                    raise ExchangeError(f"A line has over {longest:,} characters.")
                yield line
        except UnicodeError:
            raise ExchangeError("The file is not in UTF-8. Save it as “CSV UTF-8” and send it again.") from None
