"""An agent during whose replies something happens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.support.tiny_run import Seeing
from workers.protocols import Reply


class Meanwhile(Seeing):
    """While reply n is written, something happens."""

    def __init__(self, *replies: Any, **happening: Callable[[], object]) -> None:
        super().__init__(*replies, sentences=("A red square.", "Nothing.") * len(replies))
        self.happening = {int(name.removeprefix("in_")): do for name, do in happening.items()}
        self.told: dict[int, list[str]] = {}

    def reply(self, messages: Any, load: Any, emit: Any, seed: int) -> Reply:
        reply = super().reply(messages, load, emit, seed)
        if messages is self.heard:
            number = self.asked[-1]
            self.told[number] = [each.text for each in messages]
            self.happening.pop(number, lambda: None)()
        return reply
