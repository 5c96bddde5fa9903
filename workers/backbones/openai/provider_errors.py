"""The errors that may come instead of a reply, and what a provider's error means.

A setback can be corrected and asked again; what only a person can correct is `BackboneRefused`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import openai

from workers.backbones.openai.image_limits import read_limit
from workers.backbones.openai.reply_limits import LIMIT_NAMES, OF_THE_REPLY, read_reply_limit
from workers.backbones.openai.retry import parse_retry_after
from workers.errors import BackboneRefused, ContentRefused
from workers.protocols import Provider

OPENAI = "https://api.openai.com/v1"
MAX_PROBLEMS = 5
"""Maximum number of items quoted of a list."""
MIN_SECRET = 12
"""Characters of a key that is removed wherever it occurs; a shorter one may be part of a word."""
MAX_QUOTED = 300
"""Maximum characters of a provider's own words."""


class ProviderError(Exception):
    """Raised when a reply failed, but may succeed if it is asked for again."""


class TransientError(ProviderError):
    """Raised when the provider is busy, breaks or sends nonsense. `wait` is how long it asks to wait."""

    def __init__(self, what: str, wait: float | None = None) -> None:
        super().__init__(what)
        self.wait = wait


class ContextTooLong(ProviderError):
    """Raised when the conversation, or its images, exceed what the model takes.

    The message is the provider's words. `images` is its limit of images, if it says so.
    """

    def __init__(self, said: str = "", images: int | None = None) -> None:
        super().__init__(said)
        self.images = images


class ReplyTruncated(ProviderError):
    """Raised when a reply reached the limit of its tokens before its end."""


class ReplyRepeated(ProviderError):
    """Raised when a reply repeats the one before it word for word. A second repetition is accepted as meant."""


class ParameterRefused(ProviderError):
    """Raised when the provider does not know an optional parameter; the message is its name."""


class ValueRefused(ProviderError):
    """Raised when the provider does not take the value of an optional parameter; the message is its words.

    For the limit of the reply, `most` is the allowed value, if given, and `crowded` is true if the conversation leaves
    too little room.
    """

    def __init__(self, said: str, name: str, most: int | None = None, *, crowded: bool = False) -> None:
        super().__init__(said)
        self.name, self.most, self.crowded = name, most, crowded


_NO_CREDIT = r"insufficient_quota|billing_not_active|billing_hard_limit|insufficient (balance|credit)|credit balance"
_BAD_KEY = r"\bapi[ _-]?key\b"
_FILTERED = r"content_filter|content_policy|content filter|content management policy|safety system"
_TOO_LONG = (
    r"context_length|context length|context window|context size|maximum context|prompt is too long|too many tokens"
    r"|request too large|reduce the length|token count.{0,40}exceeds|too many images|at most [1-9]\d* image"
)
_PERHAPS_TOO_MUCH = (
    r"long|length|token|limit|too (many|much|large|big)|exceed|at most|maximum|image|media|multi-?modal|size"
)
"""Words of a refusal that fewer images may help against."""
_BLIND = (
    r"at most 0 image|image(s|_url| input| content)?\b.{0,60}(not support|only supported)|support image|`image_url`"
)
_WORDS_ALONE = r"(valid|be a|expected a?) ?string"
"""How a text-only server refuses a message that is not only text."""
_UNKNOWN_NAME = r"unknown|unsupported|not (support|enabl)|\bextra|unrecogni[sz]ed|not permitted"
_BAD_VALUE = r"\bvalue\b|too (large|big|high)|less than|greater than|at most|exceed|range"
_RETRIED = (408, 409, 425, 429)
SYSTEM_MESSAGE = "a system message"
"""Its name among the parameters that a provider does not take."""
TOOLS, STRICT = "tools", "strict"
_NAMES_IN_ERRORS = {
    TOOLS: r"tools?\b|tool[_ -](use|choice|call)",
    "stream_options": r"stream_options|include_usage",
    "detail": r"detail\b",
    "reasoning_details": r"reasoning_details|invalid.{0,3}signature|(thinking|reasoning).{0,40}(signature|encrypted)",
    SYSTEM_MESSAGE: r"system role|role.{0,20}system.{0,40}not support"
    r"|system (message|instruction).{0,40}not (support|enabl)",
}
"""Optional parameter -> its name in errors, if that differs."""


def host_of(provider: Provider) -> str:
    """Return the provider's host, for people: no path, no password."""
    parts = urlsplit(provider.base_url or OPENAI)
    return parts.netloc.rpartition("@")[2]


def interpret_error(
    error: Exception, provider: Provider, model: str, optional: Mapping[str, Any], images: int
) -> Exception:
    """Translate an error of the SDK: a setback, or BackboneRefused with what a person can do about it.

    `optional` are the parameters that the request could do without, with their values; `images` is how many images it
    showed.
    """
    if isinstance(error, openai.APIError):
        status, words = _status(error), f"{error.code or ''} {error.type or ''} {error.param or ''} {_words(error)}"
        wait = parse_retry_after(error.response.headers) if isinstance(error, openai.APIStatusError) else None
        # A refused parameter first: its words often name a length or an image too.
        return (
            _read_parameter(status, words, _quote(error, provider), optional)
            or _read_excess(status, words.lower(), _quote(error, provider), images, _TOO_LONG)
            or _read_refusal(status, words.lower(), error, provider, model, images)
            or TransientError(_fault(status, error, provider), wait)
        )
    return TransientError(f"sent what cannot be read ({redact(str(error), provider) or type(error).__name__})")


def redact(text: str, provider: Provider) -> str:
    """Return a provider's words on one line, shortened, without the key and anything that looks like one."""
    # Local servers get a word such as "none" or "token" as their key, which is no secret and may occur in any sentence.
    # Only a key that is long, or no plain word, is removed.
    key = re.escape(provider.key)
    if len(provider.key) >= MIN_SECRET:
        text = re.sub(key, "[key]", text)
    elif provider.key and not provider.key.isalpha():
        text = re.sub(rf"(?<!\w){key}(?!\w)", "[key]", text)
    # Other keys too: providers quote the one that they received, often masked.
    text = re.sub(r"\b(sk-|Bearer )[\w*.-]{4,}", "[key]", text)
    text = " ".join(text.split())
    return text if len(text) <= MAX_QUOTED else text[: MAX_QUOTED - 1] + "…"


def _read_parameter(status: int, words: str, said: str, optional: Mapping[str, Any]) -> ProviderError | None:
    """Return which parameter, or which value, is refused. Only words about the name itself count against the name."""
    # A router says of functions that no model is found that takes them, llama.cpp that it fails
    if status not in ((400, 404, 422, 500, 501) if TOOLS in optional else (400, 422)):
        return None
    crowded = bool(re.search(_TOO_LONG, words.lower()))
    for name, value in optional.items():
        if status not in (400, 422) and name != TOOLS:
            continue
        limits = name in LIMIT_NAMES
        if re.search(rf"\b({_NAMES_IN_ERRORS.get(name, name)})", words, re.IGNORECASE):
            if re.search(_UNKNOWN_NAME, words, re.IGNORECASE) and not re.search(_BAD_VALUE, words, re.IGNORECASE):
                return ParameterRefused(name)
            if not limits and name != SYSTEM_MESSAGE:
                # The value was refused, not the parameter.
                return ValueRefused(said, name)
        if limits and re.search(OF_THE_REPLY, words, re.IGNORECASE):
            most = read_reply_limit(words, value)
            # If the question alone is too long, no reply is short enough
            return (
                None if crowded and most is not None and most <= 0 else ValueRefused(said, name, most, crowded=crowded)
            )
    return None


def _read_excess(status: int, words: str, said: str, images: int, pattern: str) -> ContextTooLong | None:
    """Return the excess if the words say that the conversation, or its images, are more than the model takes."""
    limit = read_limit(words, images)
    # With no image allowed, fewer images do not help; a model that sees is needed.
    if limit == 0 or status in (401, 402, 403, 404):
        return None
    return ContextTooLong(said, limit) if status == 413 or re.search(pattern, words) else None


def _read_refusal(
    status: int, words: str, error: openai.APIError, provider: Provider, model: str, images: int
) -> BackboneRefused | ContextTooLong | None:
    """Return what only a person can correct, unless fewer images may help."""
    where, said = host_of(provider), _quote(error, provider)
    # Lack of credit first: some providers answer 400 or 429 for it.
    if status == 402 or re.search(_NO_CREDIT, words):
        return BackboneRefused(f"{where} has no credit left for this key{said}. Top up the account.")
    if status == 401 or (status == 400 and re.search(_BAD_KEY, words)):
        return BackboneRefused(f"{where} does not accept the key{said}. Set OPENAI_API_KEY to a valid one.")
    if status in (0, 400, 403, 422) and re.search(_FILTERED, words):
        return ContentRefused(f"The content filter of {where} stopped this question{said}. {REWORD}")
    blind = re.search(_BLIND, words) or (images and (read_limit(words, images) == 0 or re.search(_WORDS_ALONE, words)))
    if status in (400, 404, 415, 422, 500) and blind:
        return BackboneRefused(f"{model} at {where} does not look at images{said}. Choose a model that sees.")
    if status == 403:
        return BackboneRefused(f"{where} does not let this key use {model}{said}. Ask its administrator for access.")
    if status == 404:
        return BackboneRefused(
            f"{where} knows no model {model!r}{said}. Choose another (MAIA_OPENAI_MODELS), or correct OPENAI_BASE_URL: "
            "most addresses end in /v1."
        )
    if 300 <= status < 400:
        place = error.response.headers.get("location", "") if isinstance(error, openai.APIStatusError) else ""
        return BackboneRefused(
            f"{where} sends us elsewhere ({redact(place, provider)}), and the key goes nowhere but to the address that "
            "was set. Set OPENAI_BASE_URL to the one that answers."
        )
    # Last: the words are vague, and halving the images costs a request.
    if status in (400, 422) and images > 1 and (excess := _read_excess(status, words, said, images, _PERHAPS_TOO_MUCH)):
        return excess
    if 400 <= status < 500 and status not in _RETRIED:
        return BackboneRefused(
            f"{where} refused the request with status {status}{said}. Check the model and its limits."
        )
    return None


REWORD = "Reword the question, or choose another model."


def _fault(status: int, error: openai.APIError, provider: Provider) -> str:
    if isinstance(error, openai.APITimeoutError):
        return "did not answer in time"
    if isinstance(error, openai.APIConnectionError):
        cause = error.__cause__
        reason = redact(str(cause), provider) or type(cause).__name__
        return f"cannot be reached, or broke off ({reason})"
    if status in (429, 503, 529):
        return f"is busy (status {status}{_quote(error, provider)})"
    return f"failed (status {status or 'unknown'}{_quote(error, provider)})"


def _status(error: openai.APIError) -> int:
    """Return the HTTP status, or the one named by an error within a stream; 0 if there is none."""
    if isinstance(error, openai.APIStatusError):
        return error.status_code
    return int(error.code) if error.code and re.fullmatch(r"[3-5]\d\d", error.code) else 0


def _quote(error: openai.APIError, provider: Provider) -> str:
    words = redact(_words(error), provider)
    return f": “{words.rstrip('.')}”" if words else ""


def _words(error: openai.APIError) -> str:
    """Return the provider's words. Bodies differ: an object, a list with one, bare text, a web page."""
    if error.body is None:
        return ""
    text = _message(error.body)
    # A web page of a proxy says nothing about the request.
    return "" if text.lstrip()[:1] == "<" else text


def _message(body: Any) -> str:
    """Return the words in a body; those on a field begin with its name, as Mistral and FastAPI give it."""
    if isinstance(body, list):
        return "; ".join(filter(None, map(_message, body[:MAX_PROBLEMS])))
    if isinstance(body, dict):
        words = next((_message(body[name]) for name in ("error", "message", "detail", "msg") if body.get(name)), "")
        place = body.get("loc")
        return f"{'.'.join(map(str, place))}: {words}" if isinstance(place, list) and place else words
    return body if isinstance(body, str) else ""
