"""What pages know of the sandbox: the warning of its layers that a worker told last. Nothing is probed here."""

from __future__ import annotations

from django.conf import settings

from experiments.core import notify

_TOPIC = "sandbox"


def publish(warning: str, on: int, of: int) -> None:
    """Called by a worker, again and again: how many of its layers are on, and what everybody should know of it, ""
    where all is well. Kept for some minutes."""
    notify.keep_report(_TOPIC, warning, on, of)


def banner() -> str:
    """The warning that every page shows; what this process knows by itself where no worker has told."""
    told = notify.read_report(_TOPIC)
    if told is not None:
        return str(told["what"])
    return "MAIA_SANDBOX_OVERRIDE is on: programs may run in a sandbox with holes." if settings.SANDBOX_OVERRIDE else ""
