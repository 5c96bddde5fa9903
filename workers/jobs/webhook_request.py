"""Send one request of a webhook to one of the IP addresses of its host, with limits on time and size."""

from __future__ import annotations

import io
import socket
import ssl
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from typing import Any

from experiments.core.errors import InvalidInput
from experiments.core.params import clean_text
from experiments.models.webhook import ANSWER_CHARS
from experiments.webhooks.addresses import AddressRefused, IpAddress, WebhookTarget, parse_target, resolve

TOTAL_TIMEOUT = 10.0
"""Maximum seconds from the first connection to the last byte, however slowly bytes arrive."""
MAX_ADDRESSES = 3
"""Maximum number of a name's IP addresses that are tried."""
MAX_BYTES = 64 << 10
"""Maximum bytes of an answer that are read."""
_TOLD_BYTES = 1_000
"""Maximum bytes of a failed answer's body that are kept for the admin."""


@dataclass(frozen=True)
class WebhookAnswer:
    """The result of a request. Without a code there was no answer, and `words` says why."""

    code: int | None
    words: str = ""

    @property
    def is_success(self) -> bool:
        return self.code is not None and 200 <= self.code < 300


class _TooLong(OSError):
    """Raised for an answer that is too long."""


class _BoundedStream(io.RawIOBase):
    """The answer from a socket, until the deadline and up to `MAX_BYTES`. `HTTPResponse` uses it as a socket."""

    def __init__(self, connection: socket.socket, deadline: float) -> None:
        self._connection, self._deadline, self._left = connection, deadline, MAX_BYTES

    def makefile(self, *_: Any) -> io.BufferedReader:
        return io.BufferedReader(self)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self._left <= 0:
            raise _TooLong("the answer is too long")
        # A receiver that sends a byte at a time must not exceed the total time
        # Each wait gets only what is left of the total.
        self._connection.settimeout(_time_left(self._deadline))
        count = self._connection.recv_into(buffer, min(len(buffer), self._left))
        self._left -= count
        return count


def _time_left(deadline: float) -> float:
    if (left := deadline - time.monotonic()) <= 0:
        raise TimeoutError
    return left


def post(address: str, headers: Mapping[str, str], body: bytes) -> WebhookAnswer:
    """Send a body and read the answer. Never raises for the receiver's behaviour."""
    deadline = time.monotonic() + TOTAL_TIMEOUT
    try:
        target = parse_target(address)  # Settings may have changed since the address was added
        with closing(_connect(target, resolve(target), deadline)) as connection:
            connection.settimeout(_time_left(deadline))
            connection.sendall(_write_head(target, headers) + body)
            return _read_answer(connection, deadline)
    except (InvalidInput, AddressRefused) as error:
        return WebhookAnswer(None, _clean(str(error)))
    except TimeoutError:
        return WebhookAnswer(None, f"No complete answer within {TOTAL_TIMEOUT:g} s.")
    except socket.gaierror:
        return WebhookAnswer(None, "There is no such host.")
    except ssl.SSLCertVerificationError as error:
        return WebhookAnswer(None, _clean(f"The certificate is not valid: {error.verify_message}."))
    except (HTTPException, OSError, ValueError) as error:
        return WebhookAnswer(None, _clean(f"{type(error).__name__}: {error}"))


def _connect(target: WebhookTarget, addresses: list[IpAddress], deadline: float) -> socket.socket:
    """Return a connection to the first IP address that accepts one, encrypted for https."""
    # Names without an address end here as well.
    problem: OSError = socket.gaierror("no address")
    for each in addresses[:MAX_ADDRESSES]:
        # By hand: a library would follow redirects, use proxies of the environment, or resolve the name again, and so
        # reach addresses that were refused.
        connection = socket.socket(socket.AF_INET if each.version == 4 else socket.AF_INET6)
        try:
            connection.settimeout(_time_left(deadline) / 2)  # Leave time for another address
            connection.connect((str(each), target.port))
            connection.settimeout(_time_left(deadline))
            return _encrypt(connection, target) if target.scheme == "https" else connection
        except OSError as error:
            connection.close()
            problem = error
    raise problem


def _encrypt(connection: socket.socket, target: WebhookTarget) -> ssl.SSLSocket:
    """Return the certificate must match the host name, whichever IP address it was resolved to."""
    return ssl.create_default_context().wrap_socket(connection, server_hostname=target.host)


def _write_head(target: WebhookTarget, headers: Mapping[str, str]) -> bytes:
    known = {"Host": target.authority, "Connection": "close", "Accept": "*/*", **headers}
    lines = [f"POST {target.path} HTTP/1.1", *(f"{name}: {value}" for name, value in known.items()), "", ""]
    return "\r\n".join(lines).encode("ascii")


def _read_answer(connection: socket.socket, deadline: float) -> WebhookAnswer:
    """Return the status, and for failures the start of the body. The body of a success is not read."""
    response = HTTPResponse(_BoundedStream(connection, deadline), method="POST")  # type: ignore[arg-type]
    response.begin()
    if 200 <= response.status < 300:
        # The body of a success tells nothing.
        return WebhookAnswer(response.status)
    if 300 <= response.status < 400:
        return WebhookAnswer(response.status, "It redirects, and redirects are not followed: add the new address.")
    try:
        told = response.read(_TOLD_BYTES)
    except (HTTPException, OSError):
        told = b""  # The status is enough
    return WebhookAnswer(response.status, _clean(told.decode("utf-8", "replace")))


def _clean(words: str) -> str:
    """Return the text on one line without control characters."""
    plain = "".join(each if each.isprintable() else " " for each in words)
    return clean_text(" ".join(plain.split()), ANSWER_CHARS)
