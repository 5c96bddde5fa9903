"""One part that a plug-in registered: its factory under a time limit, with errors that name the plug-in."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from workers.errors import MaiaError, MissingPart
from workers.plugins.deadline import find_outcome, start_call
from workers.weights import get_first_line, is_out_of_memory

Load = Callable[..., Any]


@dataclass(frozen=True)
class PluginOrigin:
    """The origin of a part."""

    name: str
    """As the setting or the entry point names it."""
    path: str
    version: str
    """The first 12 characters of the file's SHA-256; of an entry point, the version of its package."""

    def __str__(self) -> str:
        return f"the plug-in {self.path}, version {self.version}"


class RegisteredPart:
    """The factory of a part, called as the registry calls any. Safe for threads."""

    def __init__(
        self, origin: PluginOrigin, what: str, load: Load, seconds: float, extras: dict[str, Load | None]
    ) -> None:
        self.origin = origin
        self._what = what
        self._load = load
        self._seconds = seconds
        self._lock = threading.Lock()
        self._under_way: dict[tuple[Any, ...], Future[Any]] = {}
        self.missing = self._guard(extras.get("missing"))
        self.models = self._guard(extras.get("models"))
        self.prices = self._guard(extras.get("prices"))

    def __call__(self, *arguments: Any) -> Any:
        """What the plug-in's factory gives.

        Raises MissingPart if it fails or takes too long. One that takes too long is waited for again by the next call.
        """
        return self._call(self._load, arguments)

    def _guard(self, function: Load | None) -> Load | None:
        return None if function is None else lambda *arguments: self._call(function, arguments)

    def _call(self, function: Load, arguments: tuple[Any, ...]) -> Any:
        # By identity: settings and specs are the same objects at each call, and need not be hashable
        name = (function, *map(id, arguments))
        # A call that is still under way is waited for again, not started twice
        with self._lock:
            future = self._under_way.get(name) or start_call(function, *arguments)
            self._under_way[name] = future
        try:
            error = find_outcome(future, self._seconds)
        except TimeoutError:
            raise MissingPart(
                f"{self._what} of {self.origin} did not finish loading in {self._seconds:g} s. Correct the plug-in, or "
                "set MAIA_PLUGIN_SECONDS higher."
            ) from None
        # Finished: the next call starts anew, also after an error
        with self._lock:
            self._under_way.pop(name, None)
        if error is None:
            return future.result()
        # Our own errors say enough; lack of memory is handled by the cache
        if isinstance(error, MaiaError) or is_out_of_memory(error):
            raise error
        raise MissingPart(
            f"{self._what} of {self.origin} cannot be loaded: {type(error).__name__}: {get_first_line(error)}. "
            "Correct the plug-in and start the worker again."
        ) from error
