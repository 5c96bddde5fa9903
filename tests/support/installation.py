"""A whole installation as processes of its own: `manage.py up` with its own state folder and port."""

from __future__ import annotations

import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import psutil

from tests import ROOT

T = TypeVar("T")
LINK = re.compile(r"http://127\.0\.0\.1:\d+(?:/maia)?/enter/\S+")


def free_port() -> int:
    """A port of loopback that nobody has at this moment."""
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Installation:
    """What runs, what it says, and what its database holds."""

    command = "up"

    def __init__(self, state: Path, *options: str, **environment: str) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.state = state
        self.lines: list[str] = []
        own = {name: value for name, value in os.environ.items() if not name.startswith("MAIA_")}
        quick = {"MAIA_DATASET_IMAGES": "200"}
        self.environment = own | quick | environment | {"MAIA_STATE": str(state)}
        command = [sys.executable, "manage.py", self.command, "--port", str(self.port), *options]
        self.process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self.lines.append(line.rstrip())

    def said(self) -> str:
        return "\n".join(self.lines)

    def link(self) -> str:
        """The one-time link, once it is printed."""
        return self.until(lambda: next(iter(LINK.findall(self.said())), None), "no link was printed", 90)

    def until(self, look: Callable[[], T | None], otherwise: str, seconds: float = 60) -> T:
        """What `look` finds, as soon as it finds something."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if found := look():
                return found
            assert self.process.poll() is None, f"it stopped by itself:\n{self.said()}"
            time.sleep(0.05)
        raise AssertionError(f"{otherwise}; it said:\n{self.said()}")

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.state / "maia.sqlite3", timeout=20)) as database:
            return database.execute(query, values).fetchall()

    def change(self, query: str, *values: Any) -> None:
        with closing(sqlite3.connect(self.state / "maia.sqlite3", timeout=20)) as database, database:
            database.execute(query, values)

    def manage(self, *words: str) -> str:
        """What a command of this installation prints."""
        command = [sys.executable, "manage.py", *words]
        return subprocess.run(
            command, cwd=ROOT, env=self.environment, check=True, capture_output=True, text=True
        ).stdout

    def child(self, *words: str) -> psutil.Process:
        """The process under the supervisor whose command line has all these words."""

        def look() -> psutil.Process | None:
            for each in psutil.Process(self.process.pid).children(recursive=True):
                try:
                    line = " ".join(each.cmdline())
                except psutil.Error:
                    continue
                if all(word in line for word in words):
                    return each
            return None

        return self.until(look, f"no process {words}")

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.reader.join(5)
        assert self.process.stdout
        self.process.stdout.close()


@contextmanager
def installed(state: Path, *options: str, **environment: str) -> Iterator[Installation]:
    """An installation for the length of a block."""
    installation = Installation(state, *options, **environment)
    try:
        yield installation
    finally:
        installation.stop()
