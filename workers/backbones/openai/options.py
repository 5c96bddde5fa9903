"""The optional parameters of a request, by the names under which a provider may refuse them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from hashlib import sha256
from typing import Any

from workers.backbones.openai.messages import replace_system_role
from workers.backbones.openai.provider_errors import OPENAI, STRICT, SYSTEM_MESSAGE, TOOLS, host_of
from workers.backbones.openai.reasoning import RETURNED_FIELDS
from workers.protocols import Message, Provider
from workers.record.replies import FunctionSchema

CACHE_MARKS, IMAGE_DETAIL = "cache_control", "detail"
MAX_CACHE_MARKS = 4
"""Claude's maximum. From each mark it looks back only about twenty parts, fewer than one experiment has."""
_CALLS_FUNCTIONS = re.compile(r"gpt-5|o\d")
"""OpenAI's models that are known to prefer function calls to tags."""


def needs_functions(provider: Provider, model: str, *, called: bool) -> bool:
    """True if functions are offered. `auto`: once the model has called one unasked, and to those known to prefer it."""
    if provider.tools != "auto":
        return provider.tools == "yes"
    return called or (_is_openai(provider) and bool(_CALLS_FUNCTIONS.match(model)))


def offer(functions: Sequence[FunctionSchema], refused: Collection[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parameter that offers functions, and what in it is optional too: that their schemas are enforced."""
    # Calls of earlier rounds are sent as text, not as calls with an id and a result: every provider takes that, and a
    # run may change its provider.
    if not functions or TOOLS in refused:
        return {}, {}
    strict = {} if STRICT in refused else {STRICT: True}
    tools: list[dict[str, Any]] = [
        {"type": "function", "function": {"name": it.name, "description": it.description, "parameters": it.parameters}}
        for it in functions
    ]
    return {TOOLS: [each | {"function": each["function"] | strict} for each in tools]}, strict


def list_parameters(provider: Provider, model: str, messages: Sequence[Message], seed: int) -> dict[str, Any]:
    """List the parameters that the settings or the provider's cache ask for."""
    wished = {"reasoning_effort": provider.reasoning_effort}
    if _cache_hint(provider, model) == "key":
        # The beginning of a conversation and its seed are those of one run, and of its forks
        # Only a beginning that is the same for all rounds finds the same cache.
        beginning = "\n\n".join([model, str(seed), *(each.text for each in messages[:2])])
        wished["prompt_cache_key"] = sha256(beginning.encode("utf-8", "replace")).hexdigest()[:32]
    return {name: value for name, value in wished.items() if value}


def adapt_messages(
    messages: list[dict[str, Any]], provider: Provider, model: str, refused: Collection[str]
) -> tuple[list[dict[str, Any]], Mapping[str, Any]]:
    """Return the messages with the additions that this provider may want, and which of them are optional, by name."""
    optional: dict[str, Any] = {}
    if SYSTEM_MESSAGE in refused:
        messages = replace_system_role(messages)
    else:
        optional[SYSTEM_MESSAGE] = ""
    for name in RETURNED_FIELDS:
        if name in refused:
            # A field that was refused is removed from earlier replies as well.
            messages = [{key: value for key, value in each.items() if key != name} for each in messages]
        elif any(name in each for each in messages):
            optional[name] = ""
    if provider.image_detail and IMAGE_DETAIL not in refused:
        messages = _set_detail(messages, provider.image_detail)
        optional[IMAGE_DETAIL] = provider.image_detail
    if _cache_hint(provider, model) == "marks" and CACHE_MARKS not in refused:
        messages = _mark(messages)
        optional[CACHE_MARKS] = ""
    return messages, optional


def _cache_hint(provider: Provider, model: str) -> str:
    if provider.cache != "auto":
        return provider.cache
    if _is_openai(provider):
        return "key"
    # By the model's name, since Claude is offered by many hosts.
    return "marks" if re.search(r"(^|[/.])claude", model) else "none"


def _is_openai(provider: Provider) -> bool:
    return host_of(provider) == host_of(Provider(base_url=OPENAI))


def _set_detail(messages: Sequence[dict[str, Any]], detail: str) -> list[dict[str, Any]]:
    def image(part: dict[str, Any]) -> dict[str, Any]:
        return part | {"image_url": part["image_url"] | {"detail": detail}} if "image_url" in part else part

    return [
        each if isinstance(each["content"], str) else each | {"content": [image(part) for part in each["content"]]}
        for each in messages
    ]


def _mark(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Mark the ends of the parts that a provider should cache."""
    # The instructions, which all runs share, and the last turns, where the next request begins to differ and earlier
    # ones did.
    turns = [number for number, each in enumerate(messages) if each["role"] == "user"]
    chosen = {number for number, each in enumerate(messages) if each["role"] == "system"}
    # The system message takes one of the marks.
    chosen |= set(turns[len(chosen) - MAX_CACHE_MARKS :])
    return [_mark_end(each) if number in chosen else each for number, each in enumerate(messages)]


def _mark_end(message: dict[str, Any]) -> dict[str, Any]:
    content = message["content"]
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return message | {"content": [*parts[:-1], parts[-1] | {CACHE_MARKS: {"type": "ephemeral"}}]}
