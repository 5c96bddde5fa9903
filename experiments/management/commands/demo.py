"""`manage.py demo`: an installation in which a small team has worked for a week. Called by `make demo`.

Like `up` with a separate state folder, which fills while it runs: real runs on toybox, reviews, comments, an
evaluation. Ctrl+C stops it; the next start continues, and once the week is complete it changes nothing more.
"""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from experiments.core import notify
from experiments.core.errors import ActionRefused
from experiments.management.commands import up
from experiments.management.demo import filling
from workers.errors import Cancelled, MaiaError

FOLDER = "demo"
"""Folder in the default state folder, if MAIA_STATE is not set."""


class Command(up.Command):
    help = "Start everything on a state folder of its own, filled with a small team's week. Ctrl+C stops it."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--small", action="store_true", help="one of each kind, for a quick look")
        parser.add_argument("--once", action="store_true", help="stop as soon as the week is there")
        into = "fill an installation that holds other runs too"
        parser.add_argument("--into-filled", action="store_true", help=into)

    def handle(self, *_: Any, **options: Any) -> None:
        if not options["state"] and "MAIA_STATE" not in os.environ:
            # Beside a real installation, never in it.
            options["state"] = settings.STATE / FOLDER
        installations: list[DemoInstallation] = []

        def make(*parts: Any, example: bool) -> DemoInstallation:
            # The demo fills itself: no example is asked.
            del example
            if not options["into_filled"]:
                refuse_other_things(settings.STATE)
            made = DemoInstallation(*parts, small=options["small"], once=options["once"])
            installations.append(made)
            return made

        # `start` returns when all parts have ended; the installation then says whether filling failed.
        self.start(options | {"no_example": True}, make)
        if problem := installations[0].problem:
            raise CommandError(problem)


def refuse_other_things(state: Path) -> None:
    """Raise CommandError for an installation with runs that the demo did not make."""
    if filling.holds_other_things(state):
        raise CommandError(
            f"{state} holds runs that no demo made, and a demo would stand among them. Name another folder with "
            "--state, or say --into-filled."
        )


class DemoInstallation(up.RunningInstallation):
    """An installation that fills itself once its site answers."""

    def __init__(self, *parts: Any, small: bool, once: bool) -> None:
        super().__init__(*parts, example=False)
        self.small = small
        self.once = once
        self.stopping = threading.Event()
        self.problem = ""
        """Why filling the week failed, once known."""

    async def greet(self) -> None:
        await super().greet()
        notify.muted.set()  # this process has no Redis: pages catch up from the database
        # In a thread: it waits for workers and uses the database synchronously.
        await asyncio.to_thread(self.fill)
        if self.once:
            self.over.set()

    async def stop(self) -> None:
        self.stopping.set()
        await super().stop()

    def fill(self) -> None:
        self.console.say("Creating a small team's week now; its pages fill meanwhile. The next start continues.")
        try:
            filling.fill(settings.STATE, self.user, self.console.say, self.stopping, small=self.small)
            self.console.say("The week is there.")
        except Cancelled:
            # Ctrl+C is no failure, unless the command was to end with a whole week.
            self.problem = "The week is not complete: the next start continues." if self.once else ""
        except (MaiaError, ActionRefused) as error:
            self.problem = f"The week could not be filled: {error}"
            self.console.say(self.problem)
