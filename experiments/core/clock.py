"""Read the time of the database. Leases, heartbeats and queue order use it, since the clocks of machines differ."""

from __future__ import annotations

from datetime import datetime

from django.db import connection
from django.db.models.functions import Now
from django.utils import timezone


def database_now() -> Now | datetime:
    """Return the current time, for queries and updates."""
    # PostgreSQL serves several machines, whose clocks differ; with SQLite all processes are on one.
    return Now() if connection.vendor == "postgresql" else timezone.now()
