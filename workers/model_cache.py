"""Keep the loaded weights of one process within a memory budget: the least recently used are unloaded first.

A plug-in that has weights makes a `Slot` for them, which is cheap, and enters it for each batch:

    self._network = settings.model_cache.slot(f"{name} {revision}", load)
    with self._network as network: ...

Entering loads the weights if needed, holds the slot for this thread, and keeps it from being unloaded meanwhile. A
thread may enter further slots inside, always in the same order.
"""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from workers.errors import MachineryError
from workers.weights import count_bytes, get_first_line, gigabytes, is_out_of_memory, release_memory

T = TypeVar("T")
Item = TypeVar("Item")
Result = TypeVar("Result")

log = logging.getLogger(__name__)

MEMORY_SHARE = 0.8
"""Share of a CUDA device's memory for weights if no budget is set; the rest is for computation."""
MAX_WAIT_SECONDS = 120.0
"""Seconds to wait until busy slots make room, before loading in addition to them."""


@dataclass(frozen=True)
class LoadedModel:
    """The facts about one slot that a page shows."""

    name: str
    bytes: int
    """Bytes of its weights."""
    used: float
    """Seconds since it was last used."""
    busy: bool


class ModelCache:
    """All slots of one process. `budget` is in bytes; 0 means no limit, or most of a CUDA device's memory."""

    def __init__(self, budget: int = 0, device: str = "cpu") -> None:
        self.budget = budget
        self.device = device
        self.loads = 0
        # Weak, so that the weights go with the last plug-in that uses them.
        self._slots: weakref.WeakSet[Slot[Any]] = weakref.WeakSet()
        self._waiting: dict[int, Slot[Any]] = {}
        self._turn = threading.Condition()

    def slot(self, name: str, load: Callable[[], T]) -> Slot[T]:
        """Return a slot for the result of `load`: a module, or an object with modules in it."""
        slot: Slot[T] = Slot(self, name, load)
        with self._turn:
            self._slots.add(slot)
        return slot

    def loaded(self) -> list[LoadedModel]:
        """List what is loaded now, the most recently used first."""
        now = time.monotonic()
        with self._turn:
            slots = [each for each in self._slots if each.loaded]
            found = [LoadedModel(each.name, each.size, now - each.used, each.busy) for each in slots]
        return sorted(found, key=lambda each: each.used)

    def limit(self) -> int:
        """Return the budget in bytes, 0 for none. Asks the CUDA device for its memory the first time, if needed."""
        # Asked late: the process may never use the device
        if not self.budget and self.device.startswith("cuda"):
            import torch

            if torch.cuda.is_available():
                self.budget = int(torch.cuda.mem_get_info(self.device)[1] * MEMORY_SHARE)
        return self.budget

    def evict(self, wanted: int | None = None, beside: Slot[Any] | None = None) -> None:
        """Unload idle slots until `wanted` bytes are free, all of them if None; the least recently used first."""
        # Kept until after the lock
        away: list[object] = []
        with self._turn:
            # Busy slots are never unloaded: a thread computes with them
            idle = sorted((each for each in self._slots if each.loaded and not each.busy), key=lambda each: each.used)
            while idle and (wanted is None or self._sum_taken(beside) + wanted > self.limit()):
                away.append(idle.pop(0).empty())
        # Outside the lock: freeing gigabytes takes a while.
        # Dropping the last references frees the weights
        if away:
            away.clear()
            release_memory()

    def enter(self, slot: Slot[T]) -> T:
        """Take the slot for this thread and load it if needed. Raises what its load raises, MachineryError."""
        with self._turn:
            self._await_turn(slot, threading.get_ident())
            slot.owner = threading.get_ident()
            # Counted, since a thread may enter the same slot again
            slot.depth += 1
        try:
            return slot.held if slot.held is not None else self._fetch(slot)
        # An interrupt must not leave the slot taken.
        except BaseException:
            self.leave(slot)
            raise

    def leave(self, slot: Slot[Any]) -> None:
        """Give the slot back."""
        with self._turn:
            # At the end of its use, so that a long one does not look old
            slot.used = time.monotonic()
            slot.depth -= 1
            if not slot.depth:
                slot.owner = None
                self._turn.notify_all()

    def _await_turn(self, slot: Slot[Any], me: int) -> None:
        """Wait until no other thread has the slot, and until it fits beside the slots that are busy."""
        # Entered again by the same thread
        if slot.owner == me:
            return
        # A thread that holds a slot does not wait for room: the thread that takes the room may be waiting for that
        # slot.
        holding = any(each.owner == me for each in self._slots)
        self._refuse_circle(slot, me)
        self._waiting[me] = slot
        try:
            # After a while it loads in addition to the busy slots: slow is better than stuck.
            if not self._turn.wait_for(lambda: not slot.busy and (holding or self._fits(slot)), MAX_WAIT_SECONDS):
                self._turn.wait_for(lambda: not slot.busy)
        finally:
            del self._waiting[me]

    def _refuse_circle(self, slot: Slot[Any], me: int) -> None:
        """Raise MachineryError instead of waiting for a thread that waits for this one (a deadlock)."""
        wanted: Slot[Any] | None = slot
        # Follow the chain: who has the slot, and what that thread waits for
        while wanted is not None and wanted.owner is not None:
            wanted = self._waiting.get(wanted.owner)
            if wanted is not None and wanted.owner == me:
                raise MachineryError(
                    f"{slot.name} and {wanted.name} wait for each other: two threads entered them in opposite order. "
                    "Nothing is lost; the step is tried again. Plug-ins must enter their slots in one order."
                )

    def _fits(self, slot: Slot[Any]) -> bool:
        """True if it is loaded, or would fit if all idle slots were unloaded; an unknown size fits."""
        limit, others = self.limit(), sum(each.size for each in self._slots if each.busy and each is not slot)
        # An unknown size may load: it is measured afterwards
        return slot.loaded or not limit or not others or others + slot.size <= limit

    def _sum_taken(self, beside: Slot[Any] | None) -> int:
        """Return the bytes of all that is loaded, or being loaded, other than this slot."""
        return sum(each.size for each in self._slots if each is not beside and (each.loaded or each.busy))

    def _fetch(self, slot: Slot[T]) -> T:
        """Load an unloaded slot, and make room: before if its size is known, and after; log if there is none."""
        # 1. Room before loading, if the size is known
        known = slot.size
        if known and self.limit():
            self.evict(known, beside=slot)
        # Without the lock, so that other slots can be used while this one loads.
        held = self._load(slot)
        size = count_bytes(held)
        # 2. Kept before the eviction below, which must count it
        with self._turn:
            slot.held, slot.size = held, size
            self.loads += 1
        if not self.limit():
            return held
        # Again: the size was unknown before the first load, or has changed.
        self.evict(slot.size, beside=slot)
        # 3. Still too much: others are busy
        with self._turn:
            others = self._sum_taken(slot)
        if others + slot.size > self.limit():
            beside = f" beside {gigabytes(others)} in use" if others else ""
            log.warning(
                "%s takes %s%s, more than the budget of %s (MAIA_MEMORY_GB).",
                *(slot.name, gigabytes(slot.size), beside, gigabytes(self.limit())),
            )
        return held

    def _load(self, slot: Slot[T]) -> T:
        """Load the slot; when memory runs out, once more with everything idle unloaded."""
        try:
            return slot.load()
        except Exception as error:
            if not is_out_of_memory(error):
                raise
        # Outside the handler: the traceback of the first attempt holds what it had loaded.
        self.evict()
        release_memory()
        try:
            return slot.load()
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            raise MachineryError(self._too_big(slot, error)) from None

    def _too_big(self, slot: Slot[Any], error: Exception) -> str:
        others = ", ".join(f"{each.name} ({gigabytes(each.bytes)})" for each in self.loaded()) or "nothing"
        size = f" ({gigabytes(slot.size)})" if slot.size else ""
        budget = gigabytes(self.limit()) if self.limit() else "not limited"
        return (
            f"{slot.name}{size} does not fit into the memory of {self.device!r}; loaded beside it: {others}; budget: "
            f"{budget}. Use a smaller model, MAIA_PRECISION=float16 or fewer MAIA_WORKER_THREADS, or lower "
            f"MAIA_MEMORY_GB if other programs need memory too. ({get_first_line(error)})"
        )


class Slot(Generic[T]):
    """A slot for one set of weights; a context manager that gives them to one thread at a time."""

    def __init__(self, cache: ModelCache, name: str, load: Callable[[], T]) -> None:
        self.name = name
        self.load = load
        self.held: T | None = None
        self.size = 0
        """Bytes at the last measurement; 0 before the first."""
        self.used = float("-inf")
        self.owner: int | None = None
        """The thread that is inside, and how many times."""
        self.depth = 0
        self._cache = cache

    @property
    def loaded(self) -> bool:
        return self.held is not None

    @property
    def busy(self) -> bool:
        return self.owner is not None

    def empty(self) -> object:
        """Drop the weights, and return them."""
        # The caller frees them outside its lock
        held, self.held = self.held, None
        return held

    def __enter__(self) -> T:
        return self._cache.enter(self)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            # The plug-in may have wrapped the error
            if error is not None and (is_out_of_memory(error) or is_out_of_memory(error.__cause__)):
                self._cache.evict()  # the next attempt finds more room
        finally:
            self._cache.leave(self)


def map_in_batches(
    items: Sequence[Item], size: int, work: Callable[[Sequence[Item]], Sequence[Result]]
) -> list[Result]:
    """Apply `work` to the items, `size` at a time; when memory runs out, half as many from there on.

    Raises MachineryError if there is no memory for a single one.
    """
    found: list[Result] = []
    done, size = 0, max(1, size)
    while done < len(items):
        batch = items[done : done + size]
        made = _attempt(work, batch)
        if made is None:  # by now the traceback is gone, and with it what it held
            release_memory()
            # Half of what was tried, rounded up, so that one is left at least
            size = (len(batch) + 1) // 2
            continue
        found.extend(made)
        done += len(batch)
    return found


def _attempt(work: Callable[[Sequence[Item]], Sequence[Result]], batch: Sequence[Item]) -> Sequence[Result] | None:
    """Return the results of a batch, None if there is not enough memory."""
    try:
        return work(batch)
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        if len(batch) == 1:
            raise MachineryError(
                f"There is no memory for a single image at a time ({get_first_line(error)}). Use a smaller model or "
                "MAIA_PRECISION=float16, or lower MAIA_MEMORY_GB, which leaves more room beside the weights."
            ) from error
        log.warning("No memory for %d at a time; going on with half as many.", len(batch))
        return None
