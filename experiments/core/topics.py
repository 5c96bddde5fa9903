"""Tells a page when something about its topics has changed; the page then asks for its parts again.

A bell never carries data, so what a person may see is decided where it is asked for. A lost bell hides nothing: the
page also asks by itself, every half minute and whenever the bells begin anew.

To the browser: {"type": "ready"} each time bells begin to be heard, {"type": "bell", topic}, {"type": "pong"}. From
the browser: {"type": "ping"}, and nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qs

from experiments.core import access, notify, sockets
from experiments.core.sockets import NOT_YOURS, Listener

MOST_TOPICS = 10
"""Topics that one socket hears."""


class TopicConsumer(Listener):
    """One page that hears the bells of a few topics."""

    def begin(self) -> bool:
        # The topics of the address, each once
        self.topics = list(
            dict.fromkeys(
                parse_qs(self.scope["query_string"].decode("latin-1"), keep_blank_values=True).get("topic", [])
            )
        )
        return len(self.topics) <= MOST_TOPICS

    def allowed(self) -> bool:
        return access.may_hear_all(self.scope["user"], self.topics)

    def groups_heard(self) -> Sequence[str]:
        return [notify.topic_group(topic) for topic in self.topics]

    async def look(self) -> int:
        """Until the person may not hear all of it any more."""
        while await self.may_stay():
            self.heard = 0
            await asyncio.sleep(sockets.LOOK_EVERY)
        return NOT_YOURS

    async def on_joined(self) -> None:
        await self.send_message({"type": "ready"})

    async def answer(self, message: dict[str, Any]) -> None:
        await self.send_message({"type": "bell", "topic": message["topic"]})
