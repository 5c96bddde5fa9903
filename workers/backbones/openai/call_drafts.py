"""Show a function call while it is written: decode the texts among its arguments, wherever the JSON is cut."""

from __future__ import annotations

import json
import re

_BEGINS = re.compile(r'"(code|description|reasoning|bias|domain)"\s{0,9}:\s{0,9}"')
_WHOLE = re.compile(r'(?:[^"\\]|\\u[0-9a-fA-F]{4}|\\[^u])*')
"""The part of a JSON text that can be decoded: up to its end, or to an incomplete escape."""
_KEPT = 60
"""Characters looked at again with the next piece while no text has begun: the name of a field may be cut."""


class CallDraft:
    """The texts of one call so far, each after its tag. For display only: the record is read from the whole call."""

    def __init__(self) -> None:
        self._rest = ""
        self._within = ""

    def add(self, piece: str) -> str:
        """Return what the next piece of the arguments adds."""
        self._rest += piece
        shown = ""
        while True:
            if not self._within:
                found = _BEGINS.search(self._rest)
                if found is None:
                    # The name of a field may be cut between two pieces.
                    self._rest = self._rest[-_KEPT:]
                    return shown
                self._within, self._rest = found[1], self._rest[found.end() :]
                shown += f"\n\n[{found[1].upper()}]:" + ("\n```python\n" if found[1] == "code" else " ")
            whole = _WHOLE.match(self._rest)
            assert whole
            shown, self._rest = shown + _decode(whole[0]), self._rest[whole.end() :]
            if not self._rest.startswith('"'):
                return shown
            shown += "\n```" if self._within == "code" else ""
            self._within, self._rest = "", self._rest[1:]


def _decode(text: str) -> str:
    try:
        decoded: str = json.loads(f'"{text}"', strict=False)
    except ValueError:  # an escape unknown to JSON
        return text
    # Half of a surrogate pair is no text; the next piece brings the other half.
    return decoded.encode("utf-8", "replace").decode()
