"""Read configs of untrusted files: JSON of bounded size, with values of the right types. Raises RequestError."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from workers.errors import RequestError
from workers.sparse.published.reading import MAX_BYTES, check_size, read_bytes

_MAX_CONFIG_BYTES = 1 << 20


class PublishedConfig:
    """The values that a published auto-encoder says of itself."""

    def __init__(self, path: Path, values: object) -> None:
        if not isinstance(values, dict):
            raise RequestError(f"{path} holds no JSON object. Download the file again.")
        self.path = path
        self._values: dict[str, Any] = values

    def __contains__(self, key: str) -> bool:
        # null means the same as a missing key.
        return self._values.get(key) is not None

    def read_part(self, key: str) -> PublishedConfig:
        """Return the object at a key; an empty one if there is none."""
        found = self._values.get(key)
        return PublishedConfig(self.path, {} if found is None else found)

    def read_text(self, key: str, default: str = "") -> str:
        found = self._values.get(key)
        if found is not None and not isinstance(found, str):
            raise self._explain(key, found, "a text")
        return default if found is None else found

    def read_count(self, key: str) -> int | None:
        """Return a whole number from 1 on; None if the key is missing."""
        found = self._values.get(key)
        # Python counts true and false as whole numbers.
        if found is not None and (not isinstance(found, int) or isinstance(found, bool) or found < 1):
            raise self._explain(key, found, "a whole number from 1 on")
        return found

    def read_flag(self, key: str, default: bool) -> bool:
        found = self._values.get(key)
        if found is not None and not isinstance(found, bool):
            raise self._explain(key, found, "true or false")
        return default if found is None else found

    def refuse(self, key: str, known: str) -> RequestError:
        """Return the error for a value that is not among those that are known."""
        return self._explain(key, self._values.get(key), known)

    def _explain(self, key: str, found: object, wanted: str) -> RequestError:
        return RequestError(
            # Quoted as JSON and cut: the file is untrusted.
            f"{self.path} has {key} = {json.dumps(found)[:80]}; only {wanted} can be read. Choose another "
            "auto-encoder, or correct the file."
        )


def read_config(path: Path) -> PublishedConfig:
    """Read a JSON file of at most 1 MiB."""
    check_size(path, _MAX_CONFIG_BYTES)
    return parse_config(path, read_bytes(path))


def parse_config(path: Path, text: bytes) -> PublishedConfig:
    """Parse the JSON text of a file."""
    try:
        return PublishedConfig(path, json.loads(text))
    # Deep nesting ends Python's recursion.
    except (ValueError, RecursionError) as error:
        raise RequestError(f"{path} holds no JSON that can be read ({error}). Download the file again.") from error


def read_line(path: Path) -> bytes:
    """Read the first line of a file, with its end; at most 1 MiB."""
    check_size(path, MAX_BYTES)
    try:
        with path.open("rb") as file:
            # At most so much: a file without a line break would be read whole.
            line = file.readline(_MAX_CONFIG_BYTES)
    except OSError as error:
        raise RequestError(f"{path} cannot be read: {error.strerror}.") from error
    if not line.endswith(b"\n"):
        raise RequestError(f"{path} begins with no line of under 1 MiB. Download the file again.")
    return line


def starts_with_json(path: Path) -> bool:
    """True if a file begins with a JSON object, as those of saev do."""
    try:
        with path.open("rb") as file:
            return file.read(1) == b"{"
    except OSError as error:
        raise RequestError(f"{path} cannot be read: {error.strerror}.") from error
