"""A provider of chat completions on loopback: a real HTTP server that streams, stalls, breaks and refuses as told."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

Answer = Callable[["Handler"], None]


class Provider:
    """A context. Gives the answers in turn, the last one for ever; keeps what it was asked.

    `asked` holds the bodies of the requests, `headers` theirs; `hung_up` is set once a client closes a stalled stream.
    """

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.asked: list[dict] = []
        self.headers: list[dict[str, str]] = []
        self.stalled, self.hung_up, self.over = threading.Event(), threading.Event(), threading.Event()
        self.lock = threading.Lock()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"provider": self}))
        self.server.daemon_threads = True
        self.host = f"127.0.0.1:{self.server.server_port}"
        self.url = f"http://{self.host}/v1"
        self.public_url = f"http://0.0.0.0:{self.server.server_port}/v1"
        """The same server at an address that is in no private network, so that its replies have a price."""

    def __enter__(self) -> Provider:
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()
        return self

    def __exit__(self, *error) -> None:
        self.over.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def next_answer(self) -> Answer:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    provider: Provider
    body: dict
    """Of the request at hand."""

    def do_POST(self) -> None:
        self.body = body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.provider.lock:
            self.provider.asked.append({"path": self.path, **body})
            self.provider.headers.append({name.lower(): value for name, value in self.headers.items()})
            answer = self.provider.next_answer()
        try:
            answer(self)
        except (BrokenPipeError, ConnectionResetError):
            self.provider.hung_up.set()
            self.close_connection = True

    def log_message(self, *args) -> None:
        """Nothing on the terminal."""

    def begin(self, kind="text/event-stream") -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def raw(self, text: str | bytes) -> None:
        data = text.encode() if isinstance(text, str) else text
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def event(self, data) -> None:
        self.raw(f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n")

    def piece(self, text=None, finish=None, **delta) -> None:
        choice = {"index": 0, "delta": {"content": text, **delta}, "finish_reason": finish}
        self.event({"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]})

    def usage(self, prompt, completion, **more) -> None:
        usage = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion} | more
        self.event({"id": "1", "object": "chat.completion.chunk", "created": 1, "choices": [], "usage": usage})

    def end(self) -> None:
        self.event("[DONE]")
        self.raw(b"")

    def cut(self) -> None:
        """Close the stream without the mark of its end."""
        self.raw(b"")

    def stall(self) -> None:
        """Say nothing until the client hangs up or the test is over."""
        self.provider.stalled.set()
        self.connection.settimeout(0.02)
        while not self.provider.over.is_set():
            try:
                if not self.connection.recv(1):
                    raise BrokenPipeError
            except socket.timeout:  # noqa: UP041
                continue
        self.close_connection = True

    def drop(self) -> None:
        """Break the connection off."""
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)


# --- answers ------------------------------------------------------------------------------------------


def says(*pieces, finish="stop", usage=(100, 10)) -> Answer:
    """A whole reply. Without `usage` if that is None."""

    def answer(handler: Handler) -> None:
        handler.begin()
        handler.piece("", role="assistant")
        for piece in pieces:
            handler.piece(piece)
        handler.piece(None, finish=finish)
        if usage:
            handler.usage(*usage)
        handler.end()

    return answer


def streams(*events, then: Callable[[Handler], None] = Handler.end) -> Answer:
    """Events as they are: text, or objects that become JSON; `then` the end."""

    def answer(handler: Handler) -> None:
        handler.begin()
        for event in events:
            handler.event(event)
        then(handler)

    return answer


def calls(*called: tuple[str, object], words=None, step=40) -> Answer:
    """A reply that calls functions by name with their arguments, `step` characters at a time; text goes as it is."""

    def answer(handler: Handler) -> None:
        handler.begin()
        handler.piece(words, role="assistant")
        for index, (name, given) in enumerate(called):
            arguments = given if isinstance(given, str) else json.dumps(given)
            function = {"name": name, "arguments": ""}
            handler.piece(
                tool_calls=[{"index": index, "id": f"call_{index}", "type": "function", "function": function}]
            )
            for place in range(0, len(arguments), step):
                part = {"arguments": arguments[place : place + step]}
                handler.piece(tool_calls=[{"index": index, "function": part}])
        handler.piece(None, finish="tool_calls")
        handler.usage(100, 10)
        handler.end()

    return answer


def starts(*pieces, then: Callable[[Handler], None]) -> Answer:
    """Some pieces of a reply and no finish: then it stalls, drops or ends."""

    def answer(handler: Handler) -> None:
        handler.begin()
        for piece in pieces:
            handler.piece(piece)
        then(handler)

    return answer


def sends(body, kind="application/json") -> Answer:
    """One whole body with status 200; objects become JSON."""

    def answer(handler: Handler) -> None:
        handler.begin(kind)
        handler.raw(body if isinstance(body, str | bytes) else json.dumps(body))
        handler.raw(b"")

    return answer


def refuses(status, message="no", *, headers=None, body=None, **error) -> Answer:
    """An error as OpenAI writes it; `body` replaces it."""

    def answer(handler: Handler) -> None:
        content = body if body is not None else json.dumps({"error": {"message": message, **error}})
        handler.send_response(status)
        for name, value in (headers or {}).items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(content.encode())))
        handler.end_headers()
        handler.wfile.write(content.encode())

    return answer


def unless(answer: Answer, otherwise: Answer, check: Callable[[dict], bool]) -> Answer:
    """`answer`, but `otherwise` where the check of the request fails."""

    def either(handler: Handler) -> None:
        (answer if check(handler.provider.asked[-1]) else otherwise)(handler)

    return either


def page(handler: Handler) -> None:
    handler.begin("text/html")
    handler.raw("<html>Welcome</html>")
    handler.raw(b"")


def prices(folder: Path, model: str, prompt: float, completion: float) -> Path:
    """A file of prices with one model, in US dollars for a million tokens."""
    path = folder / "prices.toml"
    path.write_text(f'[models]\n"{model}" = {{ prompt = {prompt}, completion = {completion} }}\n')
    return path
