"""The button that stops a program which a person wrote: the program ends, and its run goes on."""

from __future__ import annotations

import time

from experiments.models import Run
from workers.errors import Cancelled
from workers.jobs.run_log import LOOK_EVERY, DatabaseRunLog
from workers.protocols import ExperimentResult


class StopButton:
    """Of one experiment; nobody can press that of an agent's."""

    def __init__(self, run: Run, number: int, run_log: DatabaseRunLog) -> None:
        round_number = run.experiments.filter(number=number).values("round")[:1]
        self.reply = run.human_replies.filter(sent__isnull=False, round=round_number).first()
        self.run_log = run_log
        self.who = ""
        """Who stopped it; empty while nobody has."""
        self.began = self.looked = time.monotonic()

    def is_pressed(self) -> bool:
        """Whether the program is to end, be it alone or with its run. Cheap to call often. Raises LeaseLost."""
        return self.run_log.is_cancelled() or self.is_stopped()

    def progress(self, what: str, done: int, total: int) -> None:
        """Show what a tool does. Raises Cancelled if it is to end."""
        self.run_log.progress(what, done, total)
        if self.is_stopped():
            raise Cancelled("A person stopped the program.")

    def is_stopped(self) -> bool:
        now = time.monotonic()
        if self.reply and not self.who and now - self.looked >= LOOK_EVERY:
            self.looked = now
            self.reply.refresh_from_db(fields=["stopped_by"])
            self.who = self.reply.stopped_by
        return bool(self.who)

    def result(self, state: bytes) -> ExperimentResult:
        """What came of a program that was stopped; `state` is what the one before left."""
        seconds = time.monotonic() - self.began
        return ExperimentResult("timeout", error=f"{self.who} stopped the program.", seconds=seconds, state=state)
