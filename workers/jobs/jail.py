"""State of the sandbox's layers on this machine, for `manage.py check`, the record of a run, and warnings on pages.

`workers.sandbox.jail` determines it once per process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings

from experiments.core import worker_status

if TYPE_CHECKING:
    from workers.sandbox.jail import SandboxLayer


def layers() -> tuple[SandboxLayer, ...]:
    """Return each layer with its state, the reason, and the remedy."""
    from workers.sandbox import jail

    return jail.layers()


def find_missing_layers() -> list[SandboxLayer]:
    """Return the missing required layers. Without them no program runs, unless the operator overrides that."""
    return [layer for layer in layers() if layer.required and layer.state == "missing"]


def record() -> str:
    """Return the entry for a run's versions: "5 of 5 layers", or the missing ones, and whether that was overridden."""
    from workers.sandbox import jail

    words = jail.summary(layers())
    return f"{words}, overridden" if find_missing_layers() and settings.SANDBOX_OVERRIDE else words


def warning() -> str:
    """Return the warning about the sandbox for all users; "" if all is well."""
    names = " and ".join(layer.name for layer in find_missing_layers())
    if names and settings.SANDBOX_OVERRIDE:
        return f"Programs run without the sandbox's {names}, because MAIA_SANDBOX_OVERRIDE is on."
    if names:
        return f"No program runs, because the worker's sandbox lacks {names}. manage.py check says what to do."
    if settings.SANDBOX_OVERRIDE:
        return "MAIA_SANDBOX_OVERRIDE is on: programs would run in a sandbox with holes. Unset it."
    return ""


def publish_report() -> None:
    """Publish the state for the pages. It expires after some minutes, so workers repeat it."""
    found = layers()
    worker_status.publish_sandbox(warning(), sum(layer.state == "on" for layer in found), len(found))
