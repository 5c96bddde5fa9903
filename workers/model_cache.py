"""Keeps the loaded weights of one process within a memory budget: what was used longest ago is put away first.

A plug-in that has weights makes a `Place` for them, which is cheap, and enters it for each batch:

    self._network = settings.shelf.place(f"{name} {revision}", load)
    with self._network as network: ...

Entering loads what is not there, holds that place for this thread, and keeps it from being put away meanwhile. A thread
may enter further places inside, always in the same order. One condition guards the books; nothing is loaded under it.
"""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, TypeVar

from workers.errors import MachineryError
from workers.weights import first_line, free, gigabytes, out_of_memory, weight

T = TypeVar("T")
Item = TypeVar("Item")
Result = TypeVar("Result")

log = logging.getLogger(__name__)

SHARE = 0.8
"""Of a CUDA device's memory that weights may take where no budget is set; the rest is for what they compute."""
PATIENCE = 120.0
"""Seconds to wait until busy places make room, before loading beside them."""


@dataclass(frozen=True)
class Loaded:
    """What a page says of one place."""

    name: str
    bytes: int
    """Bytes of its weights."""
    used: float
    """Seconds since it was last used."""
    busy: bool


class Shelf:
    """All places of one process. `budget` is in bytes; 0 means no limit, or most of a CUDA device's memory."""

    def __init__(self, budget: int = 0, device: str = "cpu") -> None:
        self.budget = budget
        self.device = device
        self._places: weakref.WeakSet[Place[Any]] = weakref.WeakSet()
        self._waiting: dict[int, Place[Any]] = {}
        self._turn = threading.Condition()

    def place(self, name: str, load: Callable[[], T]) -> Place[T]:
        """A place for what `load` returns: a module, or an object with modules in it. It goes with its last user."""
        place: Place[T] = Place(self, name, load)
        with self._turn:
            self._places.add(place)
        return place

    def loaded(self) -> list[Loaded]:
        """What is loaded at this moment, the most recently used first."""
        now = time.monotonic()
        with self._turn:
            found = [Loaded(each.name, each.size, now - each.used, each.busy) for each in self._places if each.loaded]
        return sorted(found, key=lambda each: each.used)

    def limit(self) -> int:
        """The budget in bytes, 0 for none. Asks the CUDA device for its memory the first time, if need be."""
        if not self.budget and self.device.startswith("cuda"):
            import torch

            if torch.cuda.is_available():
                self.budget = int(torch.cuda.mem_get_info(self.device)[1] * SHARE)
        return self.budget

    def put_away(self, wanted: int | None = None, beside: Place[Any] | None = None) -> None:
        """Put idle places away until `wanted` bytes are free, all of them if None; the one used longest ago first."""
        away: list[object] = []
        with self._turn:
            idle = sorted((each for each in self._places if each.loaded and not each.busy), key=lambda each: each.used)
            while idle and (wanted is None or self._taken(beside) + wanted > self.limit()):
                away.append(idle.pop(0).empty())
        if away:
            away.clear()
            free()

    def enter(self, place: Place[T]) -> T:
        """Take the place for this thread and load it if need be. Raises what its load raises, MachineryError."""
        with self._turn:
            self._await_turn(place, threading.get_ident())
            place.owner = threading.get_ident()
            place.depth += 1
        try:
            return place.held if place.held is not None else self._fetch(place)
        except BaseException:
            self.leave(place)
            raise

    def leave(self, place: Place[Any]) -> None:
        """Give the place back."""
        with self._turn:
            place.used = time.monotonic()
            place.depth -= 1
            if not place.depth:
                place.owner = None
                self._turn.notify_all()

    def _await_turn(self, place: Place[Any], me: int) -> None:
        """Wait until nobody else has the place, and until it fits beside the places that are busy.

        A thread that holds a place already does not wait for room: whoever takes the room may wait for that place.
        """
        if place.owner == me:
            return
        holding = any(each.owner == me for each in self._places)
        self._refuse_circle(place, me)
        self._waiting[me] = place
        try:
            if not self._turn.wait_for(lambda: not place.busy and (holding or self._fits(place)), PATIENCE):
                self._turn.wait_for(lambda: not place.busy)
        finally:
            del self._waiting[me]

    def _refuse_circle(self, place: Place[Any], me: int) -> None:
        """Raise MachineryError rather than wait for a thread that waits for this one."""
        wanted: Place[Any] | None = place
        while wanted is not None and wanted.owner is not None:
            wanted = self._waiting.get(wanted.owner)
            if wanted is not None and wanted.owner == me:
                raise MachineryError(
                    f"{place.name} and {wanted.name} wait for each other: two threads entered them in opposite order. "
                    "Nothing is lost; the step is tried again. Plug-ins must enter their places in one order."
                )

    def _fits(self, place: Place[Any]) -> bool:
        """Whether it is there, or would fit if all idle places were put away; a size not known yet fits."""
        limit, others = self.limit(), sum(each.size for each in self._places if each.busy and each is not place)
        return place.loaded or not limit or not others or others + place.size <= limit

    def _taken(self, beside: Place[Any] | None) -> int:
        """Bytes of all that is loaded, or being loaded, other than this place."""
        return sum(each.size for each in self._places if each is not beside and (each.loaded or each.busy))

    def _fetch(self, place: Place[T]) -> T:
        """Load what is put away, and make room: before if its size is known, else after."""
        known = place.size
        if known and self.limit():
            self.put_away(known, beside=place)
        held = self._load(place)
        size = weight(held)
        with self._turn:
            place.held, place.size = held, size
        if self.limit():
            self._settle(place)
        return held

    def _settle(self, place: Place[Any]) -> None:
        """Put others away if they no longer fit beside this place; say so if that is not enough."""
        self.put_away(place.size, beside=place)
        with self._turn:
            others = self._taken(place)
        if others + place.size > self.limit():
            beside = f" beside {gigabytes(others)} in use" if others else ""
            log.warning(
                "%s takes %s%s, more than the budget of %s (MAIA_MEMORY_GB).",
                *(place.name, gigabytes(place.size), beside, gigabytes(self.limit())),
            )

    def _load(self, place: Place[T]) -> T:
        """What the place loads; when memory runs out, once more with everything idle put away."""
        try:
            return place.load()
        except Exception as error:
            if not out_of_memory(error):
                raise
        # Outside the handler: the traceback of the first attempt holds what it had loaded.
        self.put_away()
        free()
        try:
            return place.load()
        except Exception as error:
            if not out_of_memory(error):
                raise
            raise MachineryError(self._too_big(place, error)) from None

    def _too_big(self, place: Place[Any], error: Exception) -> str:
        others = ", ".join(f"{each.name} ({gigabytes(each.bytes)})" for each in self.loaded()) or "nothing"
        size = f" ({gigabytes(place.size)})" if place.size else ""
        budget = gigabytes(self.limit()) if self.limit() else "not limited"
        return (
            f"{place.name}{size} does not fit into the memory of {self.device!r}; loaded beside it: {others}; budget: "
            f"{budget}. Use a smaller model, MAIA_PRECISION=float16 or fewer MAIA_WORKER_THREADS, or lower "
            f"MAIA_MEMORY_GB if other programs need memory too. ({first_line(error)})"
        )


class Place(Generic[T]):
    """A place for one set of weights; a context manager that gives them to one thread at a time."""

    def __init__(self, shelf: Shelf, name: str, load: Callable[[], T]) -> None:
        self.name = name
        self.load = load
        self.held: T | None = None
        self.size = 0
        """Bytes, as last weighed; 0 before the first time."""
        self.used = float("-inf")
        self.owner: int | None = None
        """The thread that is inside, and how many times."""
        self.depth = 0
        self._shelf = shelf

    @property
    def loaded(self) -> bool:
        return self.held is not None

    @property
    def busy(self) -> bool:
        return self.owner is not None

    def empty(self) -> object:
        """Let go of the weights, which are returned."""
        held, self.held = self.held, None
        return held

    def __enter__(self) -> T:
        return self._shelf.enter(self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is not None and (out_of_memory(error) or out_of_memory(error.__cause__)):
                self._shelf.put_away()  # the next attempt finds more room
        finally:
            self._shelf.leave(self)


def in_batches(items: Sequence[Item], size: int, work: Callable[[Sequence[Item]], Sequence[Result]]) -> list[Result]:
    """What `work` makes of the items, `size` at a time; when memory runs out, half as many from there on.

    Raises MachineryError if there is no memory for a single one.
    """
    found: list[Result] = []
    done, size = 0, max(1, size)
    while done < len(items):
        batch = items[done : done + size]
        made = _attempt(work, batch)
        if made is None:  # by now the traceback is gone, and with it what it held
            free()
            size = (len(batch) + 1) // 2
            continue
        found.extend(made)
        done += len(batch)
    return found


def _attempt(work: Callable[[Sequence[Item]], Sequence[Result]], batch: Sequence[Item]) -> Sequence[Result] | None:
    """The results of a batch, None if there is no memory for so many."""
    try:
        return work(batch)
    except Exception as error:
        if not out_of_memory(error):
            raise
        if len(batch) == 1:
            raise MachineryError(
                f"There is no memory for a single image at a time ({first_line(error)}). Use a smaller model or "
                "MAIA_PRECISION=float16, or lower MAIA_MEMORY_GB, which leaves more room beside the weights."
            ) from error
        log.warning("No memory for %d at a time; going on with half as many.", len(batch))
        return None
