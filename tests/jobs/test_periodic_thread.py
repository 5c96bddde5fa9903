"""Threads of the worker that do the same thing again and again."""

from __future__ import annotations

import threading

import pytest
from django.contrib.auth.models import User
from django.db import connection

from workers.jobs.periodic_thread import PeriodicThread

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_connection_that_broke_is_opened_anew() -> None:
    """As when PostgreSQL is started again: a heartbeat goes on, or each lease of this worker would lapse."""
    turns: list[str] = []
    well = threading.Event()

    def step() -> bool:
        turns.append("begun")
        if len(turns) == 1:
            connection.ensure_connection()
            connection.connection.close()
        User.objects.count()
        well.set()
        return False

    with PeriodicThread("test", 0.01, step):
        assert well.wait(20)
    assert len(turns) > 1
