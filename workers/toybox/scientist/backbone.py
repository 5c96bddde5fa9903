"""The scripted scientist: a backbone without a language model that experiments in the toybox world.

It knows the conversation and toybox's vocabulary, but no weights, indexes or images. It reads results, ranks labels
by how well they separate high from low activations, designs the next experiment and writes it as a program. The
modules beside this one do that; this one has the protocol and the streaming.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence

from PIL.Image import Image

from workers.errors import UnknownName
from workers.protocols import Emit, LabSettings, Message, Reply
from workers.record.limits import Usage
from workers.toybox.scientist import bias, describing, spurious
from workers.toybox.scientist.reading import read_conversation
from workers.toybox.scientist.replies import PlannedReply, format_reply
from workers.toybox.scientist.two_way import answer_two_way
from workers.toybox.scientist.view import ScientistView

_PLANS: Mapping[str, Callable[[ScientistView], PlannedReply]] = {
    "bias": bias.plan_reply,
    "spurious": spurious.plan_reply,
}
"""Tasks with their own plan. Any other is treated as a description."""

_SHORTEST_SLEEP = 0.05
"""Pauses are accumulated until they reach this many seconds."""


class ScriptedScientist:
    """See `protocols.Backbone`. The same conversation and seed give the same reply. Words are counted as tokens."""

    label = "Scripted scientist (no language model)"
    sees = False
    price_known = True

    def __init__(self, words_per_second: float) -> None:
        """`words_per_second` is its writing speed; 0 writes at once."""
        self._words_per_second = words_per_second

    def reply(self, messages: Sequence[Message], load: Callable[[str], Image], emit: Emit, seed: int) -> Reply:
        """Return the next reply. Images are never looked at. Raises what `emit` raises."""
        del load
        # A question about two labels has no conversation of its own, so it is tried first
        text = answer_two_way(messages) or _reply_in_run(messages, seed)
        rest, each = 0.0, 1 / self._words_per_second if self._words_per_second > 0 else 0.0
        for word in re.findall(r"\s*\S+", text):
            emit(word)
            rest += each
            # One sleep for several words: the system cannot sleep as briefly as a single word takes
            if rest >= _SHORTEST_SLEEP:
                time.sleep(rest)
                rest = 0.0
        heard = sum(len(message.text.split()) for message in messages)
        return Reply(text, Usage(prompt_tokens=heard, completion_tokens=len(text.split())))


def _reply_in_run(messages: Sequence[Message], seed: int) -> str:
    case = read_conversation(messages)
    return format_reply(_PLANS.get(case.task, describing.plan_reply)(ScientistView(case, seed)))


def load(settings: LabSettings, model: str) -> ScriptedScientist:
    """Return the scientist with the writing speed of the settings. Raises UnknownName if a model is named."""
    if model:
        raise UnknownName(f"The scripted scientist is no language model: leave the backbone's model {model!r} out.")
    return ScriptedScientist(settings.words_per_second)
