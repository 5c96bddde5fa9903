"""Ask for one reply until it comes: with less of the conversation, other parameters or some patience, as needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from workers.backbones.openai import pricing
from workers.backbones.openai.connection import Connection
from workers.backbones.openai.encoding import EncodedImage, count_text_tokens
from workers.backbones.openai.image_limits import explain_captions, find_limit
from workers.backbones.openai.image_selection import Room
from workers.backbones.openai.messages import ChatMessages, build_messages
from workers.backbones.openai.options import adapt_messages, list_parameters, needs_functions, offer
from workers.backbones.openai.provider_errors import (
    ContextTooLong,
    ParameterRefused,
    ProviderError,
    ReplyRepeated,
    ReplyTruncated,
    TransientError,
    ValueRefused,
    host_of,
    interpret_error,
)
from workers.backbones.openai.reasoning import keep_returnable
from workers.backbones.openai.reply_limits import LIMIT_NAMES
from workers.backbones.openai.retry import RetryPolicy, wait
from workers.backbones.openai.stream import ReplyStream
from workers.errors import BackboneRefused, BackboneUnavailable, MaiaError
from workers.protocols import Emit, Message, Provider, Reply, StatusNote
from workers.record.limits import Usage
from workers.record.replies import ImageLimit

MAX_REPLY = 8_192
"""Tokens of the context window kept free for the reply, if the window is large."""
_SEEDS = 2**31
"""Some servers take no larger seed."""


@dataclass
class Learnt:
    """What refusals of a provider showed, for all replies of this process."""

    unwanted: set[str] = field(default_factory=set)
    """Optional parameters that it does not take."""
    refused: set[str] = field(default_factory=set)
    """Parameters whose value it refused in one reply. If refused in a second, they are dropped."""
    calls: bool = False
    """True if the model has called a function."""
    images: ImageLimit | None = None
    """The limit as it stated it. A limit found by trying depends on the conversation, and is kept only there."""


class ReplyRequest:
    """One reply under way."""

    def __init__(
        self,
        provider: Provider,
        model: str,
        policy: RetryPolicy,
        learnt: Learnt,
        messages: Sequence[Message],
        pictures: Mapping[str, EncodedImage],
    ) -> None:
        """New knowledge of the provider is added to `learnt`.

        Raises BackboneRefused if the words alone exceed the context window.
        """
        self.provider, self.model, self.policy, self.learnt = provider, model, policy, learnt
        self.unwanted, self.omitted = learnt.unwanted, set[str]()
        """Parameters that the provider does not know; and those whose value it refused, for this reply alone."""
        self.messages, self.pictures = keep_returnable(messages, provider, model), pictures
        # A quarter of a small window, or the conversation would have no room.
        self.room = min(MAX_REPLY, provider.context_tokens // 4)
        # The lowest of what is known: it is certainly taken.
        known = [each for each in (find_limit(messages, host_of(provider), model), learnt.images) if each]
        self.image_limit = min(known, key=lambda each: each.images, default=None)
        self.said = self._build()
        wanted = bool(messages) and needs_functions(provider, model, called=learnt.calls)
        self.functions = messages[-1].functions if wanted else ()
        self.offered = False
        """True if the latest request offered them."""
        self.limit = 0
        """Maximum tokens of the reply; 0 leaves it to the provider."""
        self.written = 0
        """Tokens of a reply that was cut."""
        self.crowded = False
        """True if it was cut because the conversation leaves too little of the context window."""
        self.failures = 0
        self.insisted = False
        """True if the model has repeated its words twice in a row."""
        self.spent = Usage()
        self.provider_errors: list[str] = []
        """Problems on the way, for people."""
        if self.said.tokens > provider.context_tokens - self.room and not self.said.images:
            raise self._wordy()

    def answer(self, emit: Emit, seed: int) -> Reply:
        """Return the reply. Raises BackboneRefused, BackboneUnavailable, and what `emit` raises; each with what was
        spent.
        """
        try:
            with Connection(self.provider, self.policy.connect) as line:
                while True:
                    emit("")  # a cancelled request stops here
                    heard = ReplyStream(host_of(self.provider))
                    setback = self._ask(line, heard, emit, seed)
                    if setback is None:
                        return self._finish(heard)
                    # Viewers must not keep a reply that is asked for again.
                    if heard.is_shown:
                        emit(None)
                    self._adapt(setback, heard, emit)
        except MaiaError as error:
            error.spent = self.spent
            raise

    def _build(self) -> ChatMessages:
        images = self.image_limit.images if self.image_limit else None
        return build_messages(self.messages, self.pictures, Room(self.provider.context_tokens - self.room, images))

    def _finish(self, heard: ReplyStream) -> Reply:
        """Finish the reply. What was learnt on the way is confirmed by now."""
        # A limit found by halving is of this conversation alone.
        if self.image_limit and self.image_limit.stated:
            self.learnt.images = self.image_limit
        calls = heard.called.calls()
        self.learnt.calls |= bool(calls)
        reason = explain_captions(self.image_limit if self.said.limited else None)
        return Reply(
            heard.reply,
            self.spent,
            self.said.captions,
            captions_reason=reason if self.said.captions else "",
            image_limit=self.image_limit,
            provider_errors=tuple(self.provider_errors),
            reasoning=heard.reasoning,
            calls=calls,
            offered=self.offered,
            reasoning_items=heard.returned.items(self.provider, self.model, heard.thought),
        )

    def _ask(self, line: Connection, heard: ReplyStream, emit: Emit, seed: int) -> ProviderError | None:
        """Ask once. Raises BackboneRefused, and what `emit` raises."""
        refused = self.unwanted | self.omitted
        tools, enforced = offer(self.functions, refused)
        self.offered = bool(tools)
        # Optional parameters, without those that this provider does not take.
        wished: dict[str, Any] = tools | {
            # Another seed for each attempt, or the same failure may come back.
            "seed": (seed + self.failures + self.insisted) % _SEEDS,
            "stream_options": {"include_usage": True},
        }
        # OpenAI's own models want the new name; some other servers know only the old one.
        names = [name for name in LIMIT_NAMES if name not in self.unwanted]
        if self.limit and names:
            wished[names[0 if self.provider.base_url else -1]] = self.limit
        wished |= list_parameters(self.provider, self.model, self.messages, seed)
        optional = {name: value for name, value in wished.items() if name not in refused}
        said, within = adapt_messages(self.said.messages, self.provider, self.model, refused)
        body = {"model": self.model, "messages": said, **optional}
        try:
            with closing(self._translate(line.chunks(body), {**enforced, **optional, **within})) as chunks:
                heard.listen(chunks, emit, self.policy)
        except ProviderError as setback:
            return setback
        finally:
            # Everything streamed was paid for. It is estimated for providers that do not report it.
            if heard.written or heard.finish or heard.prompt_tokens:
                prompt = heard.prompt_tokens or self.said.tokens
                completion = heard.completion_tokens or count_text_tokens(heard.written)
                price = pricing.price_of(self.provider, self.model)
                self.spent += pricing.price_usage(price, prompt, completion, heard.cached_tokens)
        before = next((each.text.strip() for each in reversed(self.messages) if each.role == "assistant"), "")
        # A reply that calls a function may have no words, so it is no repetition.
        repeated = heard.reply.strip() == before and not heard.called.calls()
        return ReplyRepeated() if repeated and not self.insisted else None

    def _adapt(self, setback: ProviderError, heard: ReplyStream, emit: Emit) -> None:
        """Correct a setback. Raises BackboneRefused or BackboneUnavailable if nothing can be done."""
        match setback:
            case ParameterRefused(args=(name,)):
                self.unwanted.add(name)
                self.provider_errors.append(f"{host_of(self.provider)} does not take {name!r}: asked again without it.")
            case ReplyRepeated():
                self.insisted = True
                self.provider_errors.append("The reply was the one before it, word for word: asked once more.")
            case ContextTooLong():
                self._show_fewer(f"{host_of(self.provider)} refused {self._images()}{setback}", setback.images)
            case ValueRefused():
                self._lower(setback)
            case ReplyTruncated():
                self._lengthen(heard)
            case TransientError():
                self.failures += 1
                self._rest(setback, emit)

    def _lengthen(self, heard: ReplyStream) -> None:
        """Ask again for a reply that was cut: with room for twice as much, or with fewer images."""
        self.written = heard.completion_tokens or count_text_tokens(heard.written)
        if self.crowded:
            self._clear_window()
        elif self.limit:
            raise self._endless()
        else:
            # At least twice what was written, or the next one is cut again.
            self.limit = max(self.room, 2 * self.written)
            words = f"The reply ran into its limit of tokens: asked again with room for {self.limit:,}."
            self.provider_errors.append(words)

    def _lower(self, setback: ValueRefused) -> None:
        """Ask for less than what was refused. That says nothing of the parameter's name."""
        where = host_of(self.provider)
        if setback.name not in LIMIT_NAMES:
            self.omitted.add(setback.name)
            if setback.name in self.learnt.refused:
                self.unwanted.add(setback.name)
            # A value may be refused for this conversation alone; only a second refusal is taken for the parameter.
            self.learnt.refused.add(setback.name)
            self.provider_errors.append(f"{where} refused {setback.name!r}{setback}: asked again without it.")
            return
        self.crowded = setback.crowded
        # Without a figure, halving finds a size that is taken within a few requests.
        most = self.limit // 2 if setback.most is None else setback.most
        if most > self.written:
            refused, self.limit = self.limit, most
            words = f"{where} refused room for a reply of {refused:,} tokens{setback}: asked again with {most:,}."
            self.provider_errors.append(words)
        elif self.crowded:
            self._clear_window()
        else:
            raise self._endless()

    def _clear_window(self) -> None:
        """Leave images out to make room for the reply, whose length is left to the provider again."""
        if not self.said.images:
            raise self._endless()
        # 0 leaves the length to the provider.
        self.limit = 0
        self._show_fewer(f"{host_of(self.provider)} has too little room for the reply beside {self._images()}")

    def _show_fewer(self, why: str, images: int | None = None) -> None:
        """Ask with as many images as the provider says, or with half."""
        if not self.said.images:
            raise self._wordy()
        most = self.said.images // 2 if images is None else images
        self.image_limit = ImageLimit(host_of(self.provider), self.model, most, images is not None)
        self.said = self._build()
        self.provider_errors.append(f"{why}: asked again with {self.said.images or 'none'}.")

    def _images(self) -> str:
        return f"{self.said.images} image{'' if self.said.images == 1 else 's'}"

    def _rest(self, fault: TransientError, emit: Emit) -> None:
        where, attempts = host_of(self.provider), max(1, self.provider.attempts)
        # Enough attempts: the run then waits for a person.
        if self.failures >= attempts:
            raise BackboneUnavailable(
                f"{where} {fault}; it was asked {self.failures} {'time' if self.failures == 1 else 'times'}. "
                "Try again later, or check that OPENAI_BASE_URL is right and its server is well."
            )
        # A provider that asks for a longer pause than we wait is better retried later, by a person.
        seconds = self.policy.pause(self.failures, fault.wait)
        if seconds > self.policy.longest:
            raise BackboneUnavailable(
                f"{where} {fault} and wants to be left alone for {seconds:.0f} s. Try again then, or use another key."
            )
        self.provider_errors.append(f"{where} {fault}: asked again after {seconds:.0f} s.")
        emit(StatusNote(f"{where} {fault}; request {self.failures + 1} of {attempts} follows"))
        wait(seconds, emit)

    def _endless(self) -> BackboneRefused:
        return BackboneRefused(
            f"{self.model} wrote until its limit of tokens and did not come to an end. "
            "Choose a model that may write more, or give its server a larger context."
        )

    def _wordy(self) -> BackboneRefused:
        return BackboneRefused(
            f"The conversation has about {self.said.tokens:,} tokens without any image, more than {self.model} takes "
            f"with its reply (MAIA_OPENAI_CONTEXT_TOKENS={self.provider.context_tokens}). Fork the run from an earlier "
            "round, or choose a model with a larger context window."
        )

    def _translate(self, chunks: Any, optional: Mapping[str, Any]) -> Any:
        """Yield the chunks; translate errors of the SDK."""
        with closing(chunks):
            try:
                yield from chunks
            except MaiaError:
                raise
            except Exception as error:  # noqa: BLE001  any failure of the connection is the provider's
                # Not chained: the SDK's errors hold the request, and with it the key.
                raise interpret_error(error, self.provider, self.model, optional, self.said.images) from None
