"""One process of an installation, in a group of its own: started, killed and stopped as a whole."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from tests import ROOT


class Part:
    """What it says goes to the file `log`. `answers` tells whether it is there for others."""

    def __init__(
        self,
        name: str,
        command: list[str],
        environment: Mapping[str, str],
        log: Path,
        answers: Callable[[], bool] = lambda: True,
    ) -> None:
        self.name, self.command, self.environment, self.log = name, command, dict(environment), log
        self._answers = answers
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, wait: float = 0.0) -> None:
        """Start it unless it runs, and wait up to so many seconds until it answers."""
        if self.process is None or self.process.poll() is not None:
            with self.log.open("ab") as said:
                self.process = subprocess.Popen(
                    self.command,
                    cwd=ROOT,
                    env=self.environment,
                    stdin=subprocess.DEVNULL,
                    stdout=said,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
        until = time.monotonic() + wait
        while wait and not self._answers():
            assert self.process.poll() is None, f"{self.name} ended by itself:\n{self.said()}"
            assert time.monotonic() < until, f"{self.name} does not answer:\n{self.said()}"
            time.sleep(0.1)

    def has_ended(self) -> bool:
        return self.process is not None and self.process.poll() is not None

    def said(self, characters: int = 4000) -> str:
        return self.log.read_text(errors="replace")[-characters:]

    def kill(self, *, whole: bool = True) -> None:
        """With SIGKILL: the process and its children, or the process alone."""
        if self.process:
            if whole:
                self._signal(signal.SIGKILL)
            self.process.kill()
            self.process.wait()

    def stop(self) -> None:
        """Let it stand still."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._signal(signal.SIGCONT)

    def end(self) -> None:
        """As an operator ends it."""
        self.go_on()
        self._signal(signal.SIGTERM)
        if self.process:
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(20)
        self.kill()

    def _signal(self, number: signal.Signals) -> None:
        if self.process:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)
