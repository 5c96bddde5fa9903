"""Somebody who watches a run by its socket."""

from __future__ import annotations

import json
from typing import Any

from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator
from channels.routing import URLRouter

from experiments.core import transcript
from experiments.models import Run
from experiments.urls import websocket_urlpatterns
from workers.record.events import Payload

PATIENCE = 60.0
"""Seconds after which a message counts as lost."""


class Viewer:
    """A browser that watches a run."""

    def __init__(self, run: Run, user: Any, after: object = 0) -> None:
        path, query = f"/ws/runs/{run.pk}/", f"after={after}".encode()
        scope = {"type": "websocket", "path": path, "query_string": query, "headers": [], "user": user}
        self.socket: Any = ApplicationCommunicator(URLRouter(websocket_urlpatterns), scope)  # type: ignore[no-untyped-call]
        self.seen: list[dict[str, Any]] = []

    async def __aenter__(self) -> Viewer:
        await self.socket.send_input({"type": "websocket.connect"})
        assert (await self.socket.receive_output(PATIENCE))["type"] == "websocket.accept"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.socket.send_input({"type": "websocket.disconnect", "code": 1001})
        await self.socket.wait(PATIENCE)

    async def say(self, text: str) -> None:
        await self.socket.send_input({"type": "websocket.receive", "text": text})

    async def next(self) -> dict[str, Any]:
        message = await self.socket.receive_output(PATIENCE)
        if message["type"] == "websocket.close":
            return {"type": "closed", "code": message.get("code", 1000)}
        data = json.loads(message["text"])
        assert isinstance(data, dict)
        self.seen.append(data)
        return data

    async def until(self, kind: str, /, **fields: Any) -> dict[str, Any]:
        """The next message of this type with these fields; what comes before is in `seen`."""
        while True:
            message = await self.next()
            if message["type"] == kind and all(message.get(name) == value for name, value in fields.items()):
                return message
            assert message["type"] != "closed", f"closed with {message['code']} before {kind} came"

    @property
    def seqs(self) -> list[int]:
        return [message["seq"] for message in self.seen if message["type"] == "event"]


async def tell(run: Run, kind: str, payload: Payload) -> None:
    await sync_to_async(transcript.append)(run.pk, kind, payload)
