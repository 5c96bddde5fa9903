"""Report the sandbox of this machine to operators: a system check, and a line for each layer."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage, Tags, register


@register(Tags.security)
def sandbox_is_whole(**_: Any) -> list[CheckMessage]:
    """Warn, but do not stop: pages work without the sandbox, and programs are refused when they would run."""
    from workers.jobs import jail

    found: list[CheckMessage] = [
        checks.Warning(
            f"The sandbox of this machine lacks its layer {layer.name}: {layer.detail}.",
            hint=f"{layer.remedy} Until then no program runs here, unless MAIA_SANDBOX_OVERRIDE is yes.",
            id="maia.W002",
        )
        for layer in jail.find_missing_layers()
    ]
    if settings.SANDBOX_OVERRIDE:
        words = "MAIA_SANDBOX_OVERRIDE is on: programs run even in a sandbox with holes."
        found.append(checks.Warning(words, hint="Unset it as soon as no layer is missing.", id="maia.W003"))
    return found


def describe_layers() -> str:
    """Return a line for each layer, under a headline."""
    from workers.jobs import jail

    lines = [
        f"  {layer.name:14}{layer.state:10}{'' if layer.required else '(optional) '}{layer.detail}"
        for layer in jail.layers()
    ]
    return "\n".join([f"Sandbox: {jail.record()}", *lines])
