"""The one clock of an installation: its database's. Leases, beats and turns are told by it, since machines differ."""

from __future__ import annotations

from datetime import datetime

from django.db import connection
from django.db.models.functions import Now
from django.utils import timezone


def tell_time() -> Now | datetime:
    """This moment, for queries and updates. With SQLite all processes are on one machine: its clock is theirs."""
    return Now() if connection.vendor == "postgresql" else timezone.now()
