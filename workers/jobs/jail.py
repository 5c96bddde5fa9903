"""How the layers of the sandbox are on this machine: for `manage.py check`, the record of a run, and what pages
warn of.

What they are is found out by `workers.sandbox.jail`, once for each process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings

from experiments.core import worker_status

if TYPE_CHECKING:
    from workers.sandbox.jail import SandboxLayer


def layers() -> tuple[SandboxLayer, ...]:
    """Each layer with its state, what stands or why not, and the remedy."""
    from workers.sandbox import jail

    return jail.layers()


def missing() -> list[SandboxLayer]:
    """The required layers that are missing. No program runs then, unless the operator overrides that."""
    return [layer for layer in layers() if layer.required and layer.state == "missing"]


def record() -> str:
    """For a run's versions: "5 of 5 layers", or which are missing, and whether that was overridden."""
    from workers.sandbox import jail

    words = jail.summary(layers())
    return f"{words}, overridden" if missing() and settings.SANDBOX_OVERRIDE else words


def warning() -> str:
    """What everybody should know of the sandbox; empty if all is well."""
    names = " and ".join(layer.name for layer in missing())
    if names and settings.SANDBOX_OVERRIDE:
        return f"Programs run without the sandbox's {names}, since MAIA_SANDBOX_OVERRIDE is on."
    if names:
        return f"No program runs, since the worker's sandbox lacks {names}. manage.py check says what to do."
    if settings.SANDBOX_OVERRIDE:
        return "MAIA_SANDBOX_OVERRIDE is on: programs would run in a sandbox with holes. Unset it."
    return ""


def publish_report() -> None:
    """Tell the pages; kept for some minutes, so a worker repeats it."""
    found = layers()
    worker_status.publish_sandbox(warning(), sum(layer.state == "on" for layer in found), len(found))
