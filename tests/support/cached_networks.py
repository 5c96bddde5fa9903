"""Networks of a known size for a cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from workers.model_cache import ModelCache, Slot

KILO = 1024


def network(kilobytes: int) -> torch.nn.Module:
    """A module of this many kilobytes."""
    return torch.nn.Linear(256 * kilobytes, 1, bias=False)


def loader(kilobytes: int) -> Callable[[], torch.nn.Module]:
    return lambda: network(kilobytes)


def used(*slots: Slot[Any]) -> None:
    for slot in slots:
        with slot:
            pass


def names(cache: ModelCache) -> list[str]:
    return [each.name for each in cache.loaded()]
