"""Django's own system checks, and after them how each layer of the sandbox is on this machine, and files of toys."""

from __future__ import annotations

from typing import Any

from django.core.management.commands import check

from experiments.management.sandbox_check import describe_layers
from experiments.management.toys_check import describe_toys


class Command(check.Command):
    def handle(self, *app_labels: Any, **options: Any) -> None:
        super().handle(*app_labels, **options)
        if not app_labels and not options["tags"] and not options["list_tags"]:
            self.stdout.write(describe_layers())
            if toys := describe_toys():
                self.stdout.write(toys)
