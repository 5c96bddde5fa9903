"""Run Django's system checks; then report the layers of the sandbox, files of toys, and plug-ins."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.commands import check

from experiments.management.sandbox_check import describe_layers


class Command(check.Command):
    def handle(self, *app_labels: Any, **options: Any) -> None:
        super().handle(*app_labels, **options)
        # Only for a check of everything; with options, Django's output stays as it is.
        if not app_labels and not options["tags"] and not options["list_tags"]:
            self.stdout.write(describe_layers())
            for told in filter(None, (_describe_toys(), _describe_plugins())):
                self.stdout.write(told)


def _describe_toys() -> str:
    """Return a headline, and a line for each file that is left out; "" if no folder is named."""
    if not settings.LAB_GAME_MODELS:
        return ""
    from workers.jobs import catalogue

    extras, problems = catalogue.describe_engine()
    headline = f"Game engine: {extras or 'no file adds a toy to it.'}"
    return "\n".join([headline, *(f"  left out: {problem}" for problem in problems)])


def _describe_plugins() -> str:
    """Return a line for each plug-in that the settings or installed packages name; "" if there is none."""
    from importlib.metadata import entry_points

    if not settings.PLUGINS and not entry_points(group="maia_web.plugins"):
        return ""
    from workers.jobs import catalogue

    lines = [
        f"  left out: {each.problem}"
        if each.problem
        else f"  {each.path}, version {each.version}: {', '.join(each.keys)}"
        for each in catalogue.list_plugins()
    ]
    return "\n".join(["Plug-ins:", *lines])
