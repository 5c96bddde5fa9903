"""The backbone that speaks to a provider, and what it is asked."""

from __future__ import annotations

from workers.backbones.openai.backbone import OpenAIChat
from workers.backbones.openai.retry import RetryPolicy
from workers.protocols import Message
from workers.protocols import Provider as Settings

HASTY = RetryPolicy(first=0.01, most=0.02, afterwards=0.3)
KEY = "sk-test-0123456789abcdef"
TASK = (Message("system", ("You experiment.",)), Message("user", ("What drives it?",)))


def backbone(server, policy=HASTY, model="gpt-4o", **changes):
    return OpenAIChat(Settings(**{"key": KEY, "base_url": server.url, "attempts": 3} | changes), model, policy)


def ask(server, messages=TASK, emit=lambda piece: None, seed=7, images=None, **changes):
    return backbone(server, **changes).reply(messages, (images or {}).__getitem__, emit, seed)
