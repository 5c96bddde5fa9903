"""Hears a reply out, chunk by chunk, and says what is wrong with it. Only a finished reply is a reply."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from workers.backbones.openai_chat.babble import babbles
from workers.backbones.openai_chat.patience import Patience
from workers.backbones.openai_chat.setbacks import REWORD, CutShort, Fault
from workers.errors import ContentRefused
from workers.protocols import Emit

MOST_CHARS = 400_000
"""A reply that is longer does not end."""
_LOOK_EVERY = 500
"""Characters after which the reply is searched for repetition."""


class Heard:
    """What came of one request so far."""

    def __init__(self) -> None:
        self.text = ""
        self.refusal = ""
        self.finish = ""
        """Why the provider stopped; empty while it has not."""
        self.prompt_tokens = self.completion_tokens = 0
        """As the provider counts them; 0 if it does not say."""
        self._looked = 0

    def listen(self, chunks: Iterator[Any], emit: Emit, patience: Patience) -> None:
        """Take all chunks; pass on the pieces.

        Raises Fault if the stream is silent, cut or nonsense, ContentRefused, CutShort, and what the iterator and
        `emit` raise. What comes after the end of the reply does not matter, whatever breaks there.
        """
        last = time.monotonic()
        for chunk in self._until_broken(chunks):
            if chunk is not None:
                last = time.monotonic()
            emit(self._take(chunk) if chunk is not None else "")
            silent = time.monotonic() - last
            if self.finish and silent > patience.afterwards:
                break
            if silent > patience.silence:
                raise Fault(f"sent nothing for {silent:.0f} s")
        self._judge()

    def _until_broken(self, chunks: Iterator[Any]) -> Iterator[Any]:
        try:
            yield from chunks
        except Exception:
            if not self.finish:
                raise

    def _take(self, chunk: Any) -> str:
        """What the chunk adds to the text. The SDK checks nothing, so anything may be in it."""
        try:
            self._count(chunk.usage)
            choice = chunk.choices[0] if chunk.choices else None
            delta = choice.delta if choice else None
            piece, refusal = (delta.content or "", delta.refusal or "") if delta else ("", "")
            self.finish = (choice.finish_reason if choice else None) or self.finish
            self.refusal += refusal
            piece = piece.encode("utf-8", "replace").decode()  # half characters come from half-decoded tokens
        except (AttributeError, TypeError, LookupError) as error:
            raise Fault("sent a malformed piece of a reply") from error
        self.text += piece
        self._watch()
        return piece

    def _count(self, usage: Any) -> None:
        """Some providers count as they go: the last figures are the whole. Some leave out what was thought.

        Figures that cannot be read count as none.
        """
        with suppress(AttributeError, TypeError, ValueError):
            prompt, answer, total = (
                max(0, int(getattr(usage, f"{name}_tokens") or 0)) for name in ("prompt", "completion", "total")
            )
            self.prompt_tokens, self.completion_tokens = prompt, max(answer, total - prompt)

    def _watch(self) -> None:
        if len(self.text) - self._looked >= _LOOK_EVERY:
            self._looked = len(self.text)
            if babbles(self.text):
                raise Fault("repeated itself over and over")
            if len(self.text) > MOST_CHARS:
                raise Fault(f"did not end its reply within {MOST_CHARS:,} characters")

    def _judge(self) -> None:
        if re.match(r"content_filter|safety", str(self.finish).lower()):
            raise ContentRefused(f"The content filter of the provider stopped the reply. {REWORD}")
        if not self.finish:
            raise Fault("broke off in the middle of a reply")
        if self.finish in ("length", "max_tokens"):
            raise CutShort
        if self.finish == "error":
            raise Fault("failed in the middle of a reply")
        if self.refusal and not self.text.strip():
            raise ContentRefused(f"The model refused to answer: “{self.refusal[:300]}” {REWORD}")
        if not self.text.strip():
            raise Fault("gave an empty reply")
