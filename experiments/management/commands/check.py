"""Django's own system checks, and after them how each layer of the sandbox is on this machine."""

from __future__ import annotations

from typing import Any

from django.core.management.commands import check

from workers.jobs import jail


class Command(check.Command):
    def handle(self, *app_labels: Any, **options: Any) -> None:
        super().handle(*app_labels, **options)
        if not app_labels and not options["tags"] and not options["list_tags"]:
            self.stdout.write(layers_in_words())


def layers_in_words() -> str:
    """A line for each layer, under a headline."""
    lines = [
        f"  {layer.name:14}{layer.state:10}{'' if layer.required else '(optional) '}{layer.detail}"
        for layer in jail.layers()
    ]
    return "\n".join([f"Sandbox: {jail.record()}", *lines])
