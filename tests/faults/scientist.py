"""A provider of chat completions that plays a short investigation, and knows which of its replies were recorded."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.support.provider import Handler, Provider

QUESTION = "Probe {sweep}: what does {{name}} respond to?"
"""The question of a sweep: with the unit's name in it, each run's is its own."""
_ASKED = re.compile(r"Probe \d+: what does \S+ respond to\?")
_PROGRAM = (
    "[HYPOTHESIS LIST]:\nHypothesis_1: it responds to {colour}\n\n[CODE]:\n```python\n"
    "def run_experiment(system, tools):\n"
    "    activations, images = system.neuron(tools.text2image(['a {colour} ball', 'a {colour} cube', 'a gray ball']))\n"
    "    words = tools.describe_images(images, ['ball', 'cube', 'control'])\n"
    "    tools.log_experiment(activations, images, ['ball', 'cube', 'control'], words)\n```"
)
REPLIES = (
    _PROGRAM.format(colour="red"),
    _PROGRAM.format(colour="blue"),
    "[DESCRIPTION]: It responds to red balls.\n[LABEL]: red balls",
)
SEEN = "A red ball on a gray floor."
TOKENS = (1000, 100)
"""Of each request: prompt and completion."""
SECONDS = 0.4
"""How long a reply takes to write."""


@dataclass
class Request:
    """What was asked for, and what came of it."""

    question: str
    number: int
    """The round's, from 1."""
    recorded: bool
    """Whether this reply stood in the database before it was asked for: then it is asked for again."""
    answered: bool = False
    at: float = field(default_factory=time.monotonic)


class Scientist(Provider):
    """A context. `is_recorded(question, round)` is to look into the database, and to wait where that is away."""

    is_recorded: Callable[[str, int], bool]

    def __init__(self) -> None:
        super().__init__(self._answer)
        self.requests: list[Request] = []
        self._adding = threading.Lock()

    def _answer(self, handler: Handler) -> None:
        messages = handler.body["messages"]
        question = _ASKED.search(" ".join(str(each["content"]) for each in messages if each["role"] != "assistant"))
        if question is None:  # the observer's: it is told nothing of the question
            _write(handler, SEEN)
            return
        number = 1 + sum(each["role"] == "assistant" for each in messages)
        request = Request(question.group(), number, self.is_recorded(question.group(), number))
        with self._adding:
            self.requests.append(request)
        _write(handler, REPLIES[min(number, len(REPLIES)) - 1])
        request.answered = True


def _write(handler: Handler, text: str) -> None:
    """In two pieces, so that something may come in between."""
    half = len(text) // 2
    handler.begin()
    handler.piece(text[:half], role="assistant")
    time.sleep(SECONDS)
    handler.piece(text[half:])
    handler.piece(None, finish="stop")
    handler.usage(*TOKENS)
    handler.end()
