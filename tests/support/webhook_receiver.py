"""A receiver of webhooks on the loopback: it keeps what it was sent, and answers as a test wants."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from django.contrib.auth.models import User

from experiments.core import outbox
from experiments.models import Webhook, WebhookDelivery, WebhookEvent

Write = Callable[[bytes], None]


@dataclass
class Received:
    """One request."""

    headers: Mapping[str, str]
    body: bytes
    path: str

    @property
    def payload(self) -> dict[str, Any]:
        found = json.loads(self.body)
        assert isinstance(found, dict)
        return found


@dataclass
class Receiver:
    """`answer` is the whole answer as bytes, or a function that writes it piece by piece."""

    answer: bytes | Callable[[Write], None] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
    port: int = 0
    received: list[Received] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook?from=maia"

    @property
    def ids(self) -> list[str]:
        return [each.headers["webhook-id"] for each in self.received]


def answer_with(status: int, body: bytes = b"", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} Because", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def drip(write: Write) -> None:
    """A status line that never comes to its end, a byte at a time."""
    for _ in range(600):
        write(b"H")
        time.sleep(0.05)


@contextmanager
def receiving(port: int = 0) -> Iterator[Receiver]:
    """A receiver that listens within the block."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.received.append(
                Received({name.lower(): value for name, value in self.headers.items()}, body, self.path)
            )
            with suppress(OSError):  # the sender may have hung up
                if callable(receiver.answer):
                    receiver.answer(self._write)
                else:
                    self._write(receiver.answer)
            self.close_connection = True

        def _write(self, piece: bytes) -> None:
            self.wfile.write(piece)

        def log_message(self, *_: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: Any) -> None:
            pass

    server = Server(("127.0.0.1", port), Handler)
    receiver.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def make_webhook(admin: User, address: str, **fields: Any) -> Webhook:
    """One that is told of everything."""
    known = {"kinds": list(WebhookEvent.values), "site": "https://maia.example.org", "created_by": admin}
    return Webhook.objects.create(address=address, **(known | fields))


def make_given_up(admin: User) -> WebhookDelivery:
    """One that can be sent again."""
    delivery = outbox.announce_test(make_webhook(admin, "https://hooks.example.org/T0/secret"))
    delivery.status, delivery.code, delivery.answer, delivery.attempts = "given_up", 500, "broken", 19
    delivery.save()
    return delivery


def verify(secret: str, received: Received) -> bool:
    """Check a signature, as the page of a webhook shows it."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    names = ("webhook-id", "webhook-timestamp")
    signed = b".".join([*(received.headers[name].encode() for name in names), received.body])
    right = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    is_fresh = abs(time.time() - int(received.headers["webhook-timestamp"])) < 300
    return is_fresh and hmac.compare_digest(received.headers["webhook-signature"], f"v1,{right}")
