"""Collect the functions that a model calls, in pieces or whole, offered or not."""

from __future__ import annotations

import json
from typing import Any

from workers.backbones.openai.call_drafts import CallDraft
from workers.backbones.openai.provider_errors import TransientError
from workers.record.replies import FunctionCall

MAX_CALLS = 16


class CallCollector:
    """The calls of one reply so far."""

    def __init__(self) -> None:
        self._calls: list[dict[str, Any]] = []
        self.written = 0
        """Characters of their arguments."""
        self._draft = CallDraft()
        self.shown = False
        """True if part of the first call could be shown already."""

    def add(self, delta: Any) -> str:
        """Add the call pieces of a stream's chunk; return what can be shown of the first. Raises TransientError for too
        many."""
        shown = ""
        older = getattr(delta, "function_call", None)
        # The older field has one call and no index.
        for piece in getattr(delta, "tool_calls", None) or ([{"index": 0, "function": older}] if older else ()):
            function = _field(piece, "function") or {}
            index, name = _field(piece, "index"), str(_field(piece, "id") or "")
            # A piece continues the latest call of its index, unless it brings an id: some servers number all calls 0,
            # and some do not number them.
            call = next((each for each in reversed(self._calls) if each["index"] == index), None)
            if call is None or (name and call["id"] and name != call["id"]):
                if len(self._calls) >= MAX_CALLS:
                    raise TransientError(f"called more than {MAX_CALLS} functions in one reply")
                call = {"index": index, "id": name, "name": "", "arguments": []}
                self._calls.append(call)
            call["id"] = call["id"] or name
            call["name"] = call["name"] or str(_field(function, "name") or "")
            words = _field(function, "arguments") or ""
            # Some servers send the arguments as an object, not as text.
            call["arguments"].append(words if isinstance(words, str) else json.dumps(words))
            self.written += len(call["arguments"][-1])
            shown += self._draft.add(call["arguments"][-1]) if call is self._calls[0] else ""
        self.shown = self.shown or bool(shown)
        return shown

    def calls(self) -> tuple[FunctionCall, ...]:
        """Return the calls that have arguments, in order."""
        gathered = (FunctionCall(it["name"], "".join(it["arguments"]), it["id"]) for it in self._calls)
        # A name without arguments is a call that never began.
        return tuple(each for each in gathered if each.arguments.strip())


def _field(value: Any, name: str) -> Any:
    """Return a field of an object of the SDK, or of a plain dict."""
    return value.get(name) if isinstance(value, dict) else getattr(value, name, None)
