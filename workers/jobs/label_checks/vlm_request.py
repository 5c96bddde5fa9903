"""Ask a backbone one question in a new conversation, and record the cost at once.

An unreadable reply is asked for again a few times. If the provider refuses or is down, an exception is raised, and the
caller keeps what it has.
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
"""Maximum number of replies to one question until one can be read."""

Read = TypeVar("Read")
Spend = Callable[[Usage], None]
"""Record the usage of a reply. Raises if an allowance is used up."""


def find_backbone(key: str, model: str, *, sees: bool, unpriced: bool) -> Backbone:
    """Return the backbone if it fits. Raises MissingPart if it lacks vision or a known price."""
    backbone = laboratory().backbone(key, model)
    if sees and not backbone.sees:
        raise MissingPart(f"{backbone.label} cannot look at images. Choose a vision-language model.")
    if not backbone.price_known and not unpriced:
        raise MissingPart(explain_unpriced(backbone.label, "its allowance", "Allow a backbone without a price"))
    return backbone


def ask(
    backbone: Backbone,
    messages: Sequence[Message],
    parse: Callable[[str], Read | None],
    spend: Spend,
    progress: Progress,
    seed: int = 0,
) -> Read | None:
    """Return the parsed reply; None if none of `ATTEMPTS` can be read. Raises Cancelled, and the errors of the
    backbone."""
    for attempt in range(ATTEMPTS):
        try:
            # Another seed for each attempt, or the same unreadable reply may come back
            reply = backbone.reply(messages, read_image, lambda _: progress("Asking", 0, 1), seed + attempt)
        except ContentRefused as error:
            # A refused reply costs money too.
            spend(usage_of(error))
            continue
        spend(reply.usage)
        if (found := parse(reply.text)) is not None:
            return found
    return None
