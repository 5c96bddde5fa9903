"""Read a reply chunk by chunk and check it. Only a finished reply counts."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from workers.backbones.openai.calls import CallCollector
from workers.backbones.openai.framing import DONE
from workers.backbones.openai.provider_errors import REWORD, ReplyTruncated, TransientError
from workers.backbones.openai.reasoning import ReasoningCollector, separate_thought, split_content, split_thought
from workers.backbones.openai.retry import RetryPolicy
from workers.errors import ContentRefused
from workers.protocols import Emit, StatusNote

MAX_CHARS = 400_000
"""Maximum length; a longer reply does not end."""
REPEATS = 24
"""So many repetitions of the same words in a row are no reply."""
MIN_REPEATED_CHARS = 600
"""Minimum characters of the repetition; rulers and tables repeat for less."""
MAX_QUOTED_THOUGHT = 200
"""Characters shown of a reply that came as reasoning."""
_WINDOW = 8_000
"""Characters checked at the end of the text: repetitions of up to `_WINDOW / REPEATS` are found."""
_LOOK_EVERY = 500
"""Characters between two checks for repetition."""
_MORE = 1.02
"""Factor by which a thought grows until its words are counted again: counting each time would take ever longer."""


class ReplyStream:
    """The result of one request so far."""

    def __init__(self, who: str = "The provider") -> None:
        """`who` is named in messages about silence or thinking."""
        self.who = who
        self.text = ""
        """The text as it came, with thoughts if the two are mixed."""
        self.reply = ""
        self.thought = ""
        """What came apart from the text."""
        self.called = CallCollector()
        self.refusal = ""
        self.finish = ""
        """Why the provider stopped; empty while it has not."""
        self.prompt_tokens = self.completion_tokens = 0
        """As the provider counts them; 0 if it does not say."""
        self.cached_tokens = 0
        """Tokens of the prompt that were in its cache."""
        self.returned = ReasoningCollector()
        self._looked = self._told = 0

    def listen(self, chunks: Iterator[Any], emit: Emit, policy: RetryPolicy) -> None:
        """Read all chunks and pass on the pieces.

        Raises TransientError if the stream is silent, cut or nonsense, ContentRefused, ReplyTruncated, and what the
        iterator and `emit` raise. Errors after the end of the reply are ignored.
        """
        last = time.monotonic()
        for chunk in self._until_broken(chunks):
            if chunk is not None:
                last = time.monotonic()
            # An empty piece as well, so that `emit` can raise during silence.
            for piece in self._take(chunk) if chunk is not None else ("",):
                emit(piece)
            silent = time.monotonic() - last
            if aside := self._aside(silent, policy):
                emit(aside)
            # The usage may come after the end of the reply; it is not worth a long wait.
            if self.finish and silent > policy.afterwards:
                break
            if silent > policy.silence:
                raise TransientError(f"sent nothing for {silent:.0f} s")
        self._judge()

    @property
    def is_shown(self) -> bool:
        """True if some of it was passed on."""
        return bool(self.reply) or self.called.shown

    @property
    def reasoning(self) -> str:
        """All thoughts before the reply."""
        return "\n\n".join(each for each in (self.thought.strip(), split_thought(self.text)[0]) if each)

    @property
    def written(self) -> str:
        """Everything that came, all of which is paid for."""
        return "".join([self.text, self.thought, *(each.name + each.arguments for each in self.called.calls())])

    def _aside(self, silent: float, policy: RetryPolicy) -> StatusNote | None:
        """Return what to say of a reply under way that shows no words."""
        if silent >= policy.murmur and not self.finish:
            self._told = 0  # so that the next words are reported at once
            return StatusNote(f"{self.who} has been silent, in seconds", int(silent), int(policy.silence))
        written = self._count()
        # Counting the words of a thought each time would take ever longer.
        if self.is_shown or written < self._told * _MORE:
            return None
        self._told = written
        if self.called.written:
            return StatusNote(f"{self.who} writes a function call: {self.called.written:,} characters so far")
        if words := len(self.reasoning.split()):
            return StatusNote(f"{self.who} is thinking: {words:,} words so far")
        return None

    def _until_broken(self, chunks: Iterator[Any]) -> Iterator[Any]:
        try:
            yield from chunks
        except Exception:
            # The reply is complete, so what breaks after it does no harm.
            if not self.finish:
                raise

    def _take(self, chunk: Any) -> tuple[str | None, ...]:
        """Add a chunk to the reply. The SDK checks nothing, so it may contain anything."""
        if chunk is DONE:
            self.finish = self.finish or "done"  # some servers end without a reason
            return ()
        try:
            # Some providers count as they go: the last figures are the total. Some leave out thoughts.
            with suppress(AttributeError, TypeError, ValueError):
                prompt, answer, total = (
                    max(0, int(getattr(chunk.usage, f"{name}_tokens") or 0))
                    for name in ("prompt", "completion", "total")
                )
                # Some leave thoughts out of the completion, but not of the total.
                self.prompt_tokens, self.completion_tokens = prompt, max(answer, total - prompt)
                self.cached_tokens = _read_cached_tokens(chunk.usage)
            choice = chunk.choices[0] if chunk.choices else None
            delta = choice.delta if choice else None
            thought, piece = split_content(delta.content) if delta else ("", "")
            # Later chunks, such as one with the usage, name no reason.
            self.finish = (choice.finish_reason if choice else None) or self.finish
            self.refusal += (delta.refusal or "") if delta else ""
            self.thought += thought + separate_thought(delta)
            drafted = self.called.add(delta)
            self.returned.add(delta)
            piece = piece.encode("utf-8", "replace").decode()  # half characters come from half-decoded tokens
        except (AttributeError, TypeError, LookupError) as error:
            raise TransientError("sent a malformed piece of a reply") from error
        self.text += piece
        self._watch()
        # The new part of the reply; all of it again if its beginning turns out to be a thought.
        before, self.reply = self.reply, split_thought(self.text)[1]
        if self.reply.startswith(before):
            return self.reply[len(before) :], drafted
        return None, self.reply, drafted

    def _count(self) -> int:
        return len(self.text) + len(self.thought) + self.called.written

    def _watch(self) -> None:
        written = self._count()
        if written - self._looked >= _LOOK_EVERY:
            self._looked = written
            if is_repetitive(self.text) or is_repetitive(self.thought):
                raise TransientError("repeated itself over and over")
            if written > MAX_CHARS:
                raise TransientError(f"did not end its reply within {MAX_CHARS:,} characters")

    def _judge(self) -> None:
        # First: a filtered reply is not merely cut.
        if re.match(r"content_filter|safety", str(self.finish).lower()):
            raise ContentRefused(f"The content filter of the provider stopped the reply. {REWORD}")
        if not self.finish:
            raise TransientError("broke off in the middle of a reply")
        if self.finish in ("length", "max_tokens"):
            raise ReplyTruncated
        if self.finish == "error":
            raise TransientError("failed in the middle of a reply")
        # A refusal beside an answer is only a remark.
        if self.refusal and not self.reply.strip():
            raise ContentRefused(f"The model refused to answer: “{self.refusal[:300]}” {REWORD}")
        if not self.reply.strip() and not self.called.calls():
            raise TransientError(self._explain_empty())

    def _explain_empty(self) -> str:
        """Explain a reply without words; one that came as reasoning is quoted from its beginning."""
        thought = " ".join(self.reasoning.split())
        if not thought:
            return "gave an empty reply"
        shown = thought if len(thought) <= MAX_QUOTED_THOUGHT else thought[: MAX_QUOTED_THOUGHT - 1] + "…"
        return (
            f"sent all of its reply as reasoning and no words of a reply (“{shown}”): "
            "the reasoning parser of the server does not fit the model, or the model stopped after it had thought"
        )


def _read_cached_tokens(usage: Any) -> int:
    """Return the tokens from the provider's cache: from OpenAI's field or DeepSeek's; 0 if neither is there."""
    details = getattr(usage, "prompt_tokens_details", None)
    found = (getattr(details, "cached_tokens", None), getattr(usage, "prompt_cache_hit_tokens", None))
    return next((each for each in found if isinstance(each, int) and each > 0), 0)


def is_repetitive(text: str) -> bool:
    """True if the text ends in the same words or lines, `REPEATS` times in a row, over enough characters."""
    tail = text[: -_WINDOW - 1 : -1]
    # The border of each beginning of the reversed tail (Knuth, Morris, Pratt): a beginning of length n with a border
    # of length b repeats itself every n - b characters.
    borders = [0] * len(tail)
    border = 0
    for index in range(1, len(tail)):
        while border and tail[index] != tail[border]:
            border = borders[border - 1]
        border += tail[index] == tail[border]
        borders[index] = border
        length = index + 1
        if length >= MIN_REPEATED_CHARS and length >= REPEATS * (length - border):
            return True
    return False
