"""The MCP server over stdio, for a client that starts it on the machine of the installation."""

from __future__ import annotations

import os
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.http import Http404
from ninja.errors import AuthenticationError

from experiments.mcp import entry
from experiments.mcp.entry import Asker

VARIABLE = "MAIA_TOKEN"


class Command(BaseCommand):
    help = (
        "Serve the MCP tools over stdio, as the person of a token. The token is read from the environment variable "
        f"{VARIABLE}, so that no list of processes and no history of commands shows it. Runs need a worker, as by "
        "`manage.py up`. Over HTTP the same tools are at /mcp."
    )

    def handle(self, **_: Any) -> None:
        # Removed from the environment, so that no child process inherits it.
        asker = Asker(os.environ.pop(VARIABLE, "").strip())
        if not asker.token:
            raise CommandError(f"Set {VARIABLE} to a token of yours: the page Settings, Tokens makes one.")
        try:
            # Checked at once: a client would else report the failure only at its first tool.
            entry.identify(asker)
        except AuthenticationError:
            raise CommandError(f"The token in {VARIABLE} is unknown, revoked or expired. Make another.") from None
        except Http404:
            raise CommandError(f"The person of the token in {VARIABLE} is no member of the team.") from None
        # Imported late: the SDK takes over a second, and a bad token needs none of it.
        from experiments.mcp.server import make_server

        entry.asker.set(asker)
        # A person has started it by hand, and would see nothing at all.
        if sys.stdin.isatty():
            self.stderr.write("Waiting for an MCP client on standard input. Ctrl+C stops.")
        make_server().run("stdio")
