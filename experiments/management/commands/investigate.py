"""Run the agent in the foreground: same agent, same rows, no Redis and no worker."""

from __future__ import annotations

import json
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from experiments.management.supervisor import welcome
from experiments.models import Run
from experiments.models.run import LIMITS
from workers import registry
from workers.errors import MaiaError


class Command(BaseCommand):
    help = "Ask a question about one unit and watch the agent answer it in the terminal."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--model", default="toybox", help="default: toybox")
        parser.add_argument("--layer", help="for example layer4")
        parser.add_argument("--unit", type=int, help="number of the unit, from 0")
        parser.add_argument("--task", choices=registry.TASKS, default="describe")
        parser.add_argument("--backbone", choices=registry.BACKBONES, default="scripted")
        parser.add_argument("--question", help="default: what the unit responds to")
        parser.add_argument("--seed", type=int, default=0)
        parser.add_argument("--max-rounds", type=int, default=LIMITS["rounds"], metavar="N")
        parser.add_argument("--json", action="store_true", help="print one JSON object instead of the transcript")
        parser.add_argument("--resume", type=int, metavar="RUN", help="go on with a run that was paused")

    def handle(self, **options: Any) -> None:
        from workers.jobs import foreground
        from workers.jobs.console import Console

        console = Console(sys.stderr if options["json"] else sys.stdout)
        try:
            run = resumed(options["resume"]) if options["resume"] else asked(options)
            ended = foreground.investigate(run, console)
        except MaiaError as error:
            raise CommandError(str(error)) from error
        except KeyboardInterrupt:
            console.line("")
            raise CommandError(f"Paused. Go on with: manage.py investigate --resume {run.pk}", returncode=130) from None
        if options["json"]:
            self.stdout.write(json.dumps(summary(ended), ensure_ascii=False))


def asked(options: dict[str, Any]) -> Run:
    """A new run as the options say. Raises RequestError, and saves nothing, if it cannot be done."""
    from workers.jobs import foreground

    if not options["layer"] or options["unit"] is None:
        raise CommandError("Say which unit: --layer layer4 --unit 7 (manage.py investigate --help lists the rest).")
    where = f"unit {options['unit']} of {options['layer']} in {options['model']}"
    run = Run(
        owner=welcome.owner()[0],
        question=options["question"] if options["question"] is not None else f"What does {where} respond to?",
        limits=LIMITS | {"rounds": options["max_rounds"]},
        **{name: options[name] for name in ("model", "layer", "unit", "task", "backbone", "seed")},
    )
    foreground.check(run)
    run.save()
    return run


def resumed(run_id: int) -> Run:
    run = Run.objects.filter(pk=run_id).first()
    if run is None:
        raise CommandError(f"There is no run {run_id}.")
    return run


def summary(run: Run) -> dict[str, Any]:
    return {
        "run": run.pk,
        "status": run.status,
        "reason": run.reason,
        "rounds": run.rounds,
        "experiments": run.experiment_count,
        "observations": run.observation_count,
        "description": run.conclusion.get("description", ""),
        "labels": run.labels,
        "seconds": round(run.seconds, 3),
    }
