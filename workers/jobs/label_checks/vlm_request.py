"""A fresh instance of a backbone asked about one thing, with what it took written down at once.

It knows nothing of any run. A reply that cannot be read is asked for again, a few times; a provider that refuses or
stays away raises, and whoever asked keeps what is there: a state, never a result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from workers.errors import ContentRefused, MissingPart
from workers.jobs.images import read_image
from workers.jobs.laboratory import laboratory
from workers.protocols import Backbone, Message, Progress, usage_of
from workers.record.limits import Usage, explain_unpriced

ATTEMPTS = 3
"""Replies to one question, the first included, until one can be read."""

Read = TypeVar("Read")
Spend = Callable[[Usage], None]
"""Writes down what a reply took; raises once an allowance is used up."""


def find_backbone(key: str, model: str, *, sees: bool, unpriced: bool) -> Backbone:
    """The backbone, if it can do what is wanted. Raises MissingPart."""
    backbone = laboratory().backbone(key, model)
    if sees and not backbone.sees:
        raise MissingPart(f"{backbone.label} cannot look at images. Choose a vision-language model.")
    if not backbone.price_known and not unpriced:
        raise MissingPart(explain_unpriced(backbone.label, "its allowance", "Allow it to go without a price"))
    return backbone


def ask(
    backbone: Backbone,
    messages: Sequence[Message],
    parse: Callable[[str], Read | None],
    spend: Spend,
    progress: Progress,
    seed: int = 0,
) -> Read | None:
    """What the reply says; None if none of `ATTEMPTS` can be read. Raises Cancelled, and what the backbone raises."""
    for attempt in range(ATTEMPTS):
        try:
            reply = backbone.reply(messages, read_image, lambda _: progress("Asking", 0, 1), seed + attempt)
        except ContentRefused as error:
            spend(usage_of(error))
            continue
        spend(reply.usage)
        if (found := parse(reply.text)) is not None:
            return found
    return None
