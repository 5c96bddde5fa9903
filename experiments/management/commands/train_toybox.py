"""Train the networks of toybox again, and print their figures."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from workers import registry


class Command(BaseCommand):
    help = "Train the built-in networks again, with the committed recipe; Ctrl+C stops it, the same command continues."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--only", choices=("net", "eyes", "describer"), help="train this network alone")
        parser.add_argument("--into", help="folder for weights and figures (default: the committed ones)")
        parser.add_argument("--scenes", help="training scenes (default: the recipe's)")
        parser.add_argument("--epochs", help="passes over the scenes (default: the recipe's)")
        parser.add_argument("--threads", help="processor cores to use (default: 2)")

    def handle(self, **options: Any) -> None:
        names = ("only", "into", "scenes", "epochs", "threads")
        given = [part for name in names if options[name] is not None for part in (f"--{name}", options[name])]
        registry.load(registry.TRAINERS, "toybox")([*given, "--state", str(settings.STATE)])
