"""`manage.py up`: run all of MAIA Web on this machine, until Ctrl+C. Called by `make run`.

It prepares the state folder and the database, then keeps Redis, the web server, the worker and beat alive. It is for
one machine and one address, 127.0.0.1; on a server, each process is started by its own command (see the README).
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from celery import current_app
from channels.db import database_sync_to_async
from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser

from experiments.management.prepared import explain_database
from experiments.management.supervisor import claims, parts, welcome
from experiments.management.supervisor.console import SupervisorConsole
from experiments.management.supervisor.processes import Child, Keeper

STARTING_SECONDS = 60.0
"""Seconds after which a slow start of the web server or the worker is reported."""


class Command(BaseCommand):
    help = "Start everything on this machine and print a link to open. Ctrl+C stops it."
    requires_system_checks = []  # done below, once the state folder is the right one

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--port", type=int, default=8000, help="port on 127.0.0.1 (default: 8000)")
        parser.add_argument("--state", type=Path, help="folder of everything kept (default: MAIA_STATE, else var)")
        parser.add_argument("--no-example", action="store_true", help="ask no example query at the very first start")

    def handle(self, *_: Any, **options: Any) -> None:
        self.start(options, RunningInstallation)

    def start(self, options: dict[str, Any], make: Callable[..., RunningInstallation]) -> None:
        """Keep alive what `make` returns until it ends. Raises CommandError."""
        if options["state"] and options["state"].resolve() != settings.STATE:
            # Start this process again with the other state folder: settings are read only once
            os.environ["MAIA_STATE"] = str(options["state"].resolve())
            os.execv(sys.executable, [sys.executable, *sys.argv])  # noqa: S606 - our own command line, no shell
        # Skipped by Django because of `requires_system_checks`.
        self.check()
        console, port = SupervisorConsole(), options["port"]
        # 1. Claim folder and port; both are released when the block ends.
        with ExitStack() as held:
            held.enter_context(claims.state_folder(settings.STATE))
            claims.free_port(port)
            # 2. A private Redis, unless the settings name one.
            redis = None
            if not os.environ.get("MAIA_REDIS_URL"):
                folder = held.enter_context(parts.private_folder(settings.STATE))
                redis = parts.redis(folder)
                # Make the children use this Redis, and this process too, which has already read its settings
                url = parts.redis_address(folder)
                os.environ["MAIA_REDIS_URL"] = url
                current_app.conf.update(broker_url=url.replace("unix://", "redis+socket://"))
            # 3. The database, and the account to sign in with.
            with explain_database():
                call_command("migrate", verbosity=0, interactive=False)
                user, first = welcome.owner()
            # 4. Everything else, until Ctrl+C.
            installation = make(console, port, redis, user, example=first and not options["no_example"])
            if not asyncio.run(installation.run()):
                raise CommandError("Stopped, because a part could not be kept alive. See above.")


class RunningInstallation:
    """All parts of one installation, from start to stop."""

    def __init__(
        self, console: SupervisorConsole, port: int, redis: Child | None, user: User, *, example: bool
    ) -> None:
        self.console = console
        self.port = port
        self.user = user
        self.example = example
        self.over = asyncio.Event()
        self.healthy = True
        self.interrupted = 0.0
        others = [parts.web(port), *parts.workers(settings.WORKERS, settings.LONG_THREADS)]
        others.append(parts.make_scheduler(settings.STATE))
        self.redis = [Keeper(redis, console, self.give_up)] if redis else []
        self.others = [Keeper(child, console, self.give_up) for child in others]

    async def run(self) -> bool:
        """Keep everything alive until Ctrl+C or SIGTERM. Returns False if a dying part ended it."""
        loop = asyncio.get_running_loop()
        # SIGHUP comes when the terminal is closed.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self.interrupt)
        self.console.say("Starting. The link follows when everything answers.")
        # In a task: it waits for parts that are started below.
        greeting = asyncio.create_task(self.greet())
        greeting.add_done_callback(self.greeted)
        for keeper in [*self.redis, *self.others]:
            keeper.start()
        await self.over.wait()
        # A greeting that still waits must not outlive the parts.
        greeting.cancel()
        await self.stop()
        return self.healthy

    async def stop(self) -> None:
        """Stop all parts at once, Redis last: the others sign off over it."""
        await asyncio.gather(*(keeper.stop() for keeper in self.others))
        await asyncio.gather(*(keeper.stop() for keeper in self.redis))
        self.console.say("Stopped.")

    def interrupt(self) -> None:
        """Stop gently the first time, at once the second time."""
        now = time.monotonic()
        if not self.over.is_set():
            self.console.say("Stopping. Active runs continue at the next start. Ctrl+C once more stops at once.")
            self.interrupted = now
            self.over.set()
        elif now > self.interrupted + 1:  # the same signal may come twice: from the terminal, and passed on by make
            for keeper in [*self.others, *self.redis]:
                keeper.stopping.set()
                keeper.kill()

    def give_up(self) -> None:
        self.healthy = False
        self.over.set()

    async def greet(self) -> None:
        """Print the address once the site answers."""
        await self.until(lambda: parts.web_answers(self.port), "The web server")
        # Without a worker, the first question would seem to hang.
        await self.until(parts.worker_answers, "A worker")
        if self.example:
            await database_sync_to_async(welcome.ask_example)(self.user)
        link = await database_sync_to_async(welcome.link)(self.user, self.port)
        self.console.say(f"\n    {link}\n")
        self.console.say(f"Open this link: it signs {self.user} in, once. Ctrl+C stops everything.")
        if not self.user.has_usable_password():
            self.console.say(
                f"To sign in without a link, set a password: .venv/bin/python manage.py changepassword {self.user}"
            )

    def greeted(self, greeting: asyncio.Task[None]) -> None:
        """Stop if the greeting failed: without a link no user can sign in."""
        if not greeting.cancelled() and (error := greeting.exception()):
            self.console.say(f"No link could be made ({type(error).__name__}: {error}), so everything stops.")
            self.give_up()

    async def until(self, answers: Callable[[], bool], who: str) -> None:
        asked = 0.0
        while not await asyncio.to_thread(answers):
            await asyncio.sleep(0.2)
            asked += 0.2
            # True in one step alone, so that it is said once.
            if asked - 0.2 < STARTING_SECONDS <= asked:
                self.console.say(f"{who} does not answer yet. If nothing follows, its lines above say why.")
