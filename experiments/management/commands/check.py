"""Run Django's system checks; then report the layers of the sandbox, files of toys, and plug-ins."""

from __future__ import annotations

from typing import Any

from django.core.management.commands import check

from experiments.management.parts_check import describe_plugins, describe_toys
from experiments.management.sandbox_check import describe_layers


class Command(check.Command):
    def handle(self, *app_labels: Any, **options: Any) -> None:
        super().handle(*app_labels, **options)
        if not app_labels and not options["tags"] and not options["list_tags"]:
            self.stdout.write(describe_layers())
            for told in filter(None, (describe_toys(), describe_plugins())):
                self.stdout.write(told)
