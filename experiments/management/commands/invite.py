"""Invite a user from the terminal, such as the first admin of a new installation."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser
from django.db import transaction
from django.urls import reverse

from experiments.core import audit
from experiments.core.actors import Actor
from experiments.core.audit import Verb
from experiments.management.prepared import PreparedCommand
from experiments.models import Invitation, Role
from experiments.models.invitation import NOTE_CHARS


class Command(PreparedCommand):
    help = "Print a link with which one person joins the team, in the role that you name."

    def add_arguments(self, parser: CommandParser) -> None:
        roles = [role.name.lower() for role in Role]
        parser.add_argument("--role", choices=roles, default="researcher", help="default: researcher")
        parser.add_argument("--note", default="", help="an e-mail address, or who it is for")
        parser.add_argument("--address", default=address(), metavar="URL", help="of the site; default: %(default)s")

    def handle(self, **options: Any) -> None:
        role = Role[options["role"].upper()]
        with transaction.atomic():
            # No inviter: the terminal has no user, and access to it is access to everything.
            invitation, token = Invitation.issue(None, role, options["note"][:NOTE_CHARS])
            audit.record(Actor(None), Verb.INVITATION_MADE, invitation, role=role.label)
        self.stdout.write(f"The first person to open this link within 7 days joins as {role.label.lower()}:")
        self.stdout.write(options["address"].rstrip("/") + reverse("join", args=[token]))


def address() -> str:
    """Return the address of the site, as far as the settings say."""
    if settings.CSRF_TRUSTED_ORIGINS:
        return str(settings.CSRF_TRUSTED_ORIGINS[0])
    # Patterns such as ".example.org" are no address.
    host = next((host for host in settings.ALLOWED_HOSTS if not host.startswith((".", "*"))), "127.0.0.1")
    return f"https://{host}" if settings.HTTPS else f"http://{host}:8000"
