"""Ask one question about many units from the terminal: start, watch and control a sweep whose runs workers execute."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.http import QueryDict

from experiments.core.actors import Actor
from experiments.core.errors import ActionRefused
from experiments.core.system_names import SystemNameMasker
from experiments.management import options as choices
from experiments.management.prepared import PreparedCommand
from experiments.management.supervisor import welcome
from experiments.models import Sweep
from experiments.sweeps import actions, lists, summaries
from experiments.sweeps.fields import PRIORITIES
from experiments.sweeps.forecast import predict
from experiments.sweeps.form import NewSweep
from experiments.sweeps.selection import SelectionKind
from experiments.sweeps.unit_list import MAX_CHARS
from workers.record import tasks

LOOK_EVERY = 2.0
"""Seconds between two checks of `watch`."""
_ACTS: Mapping[str, Callable[[Actor, int], Any]] = {"pause": actions.pause, "stop": actions.stop}
_BUDGET = {"cost": "cost_limit", "tokens": "token_limit", "seconds": "seconds_limit"}


class Command(PreparedCommand):
    help = "One question of many units. `sweep start --help` says how units are chosen."

    def add_arguments(self, parser: CommandParser) -> None:
        parts = parser.add_subparsers(dest="act", required=True, metavar="ACT")
        start = parts.add_parser("start", help="choose units and agents, see what that takes, start")
        _add_choice(start)
        start.add_argument("--agent", nargs="+", default=["scripted"], metavar="B[:M]", help="as openai:gpt-4o")
        start.add_argument("--toolset", nargs="+", default=[], metavar="T", help="default: what suits the model")
        start.add_argument("--task", choices=tasks.TASKS, default=tasks.DEFAULT_TASK)
        start.add_argument(
            "--question", default="", help="with {unit}, {name}, {layer}, {model}; default: the task's own"
        )
        start.add_argument("--name", default="")
        start.add_argument("--dataset", default="")
        start.add_argument("--rounds", type=int, metavar="N", help="of each run, at most")
        start.add_argument("--priority", choices=PRIORITIES, default="normal")
        start.add_argument("--ablation", action="store_true", help="programs may ablate the unit in its model")
        start.add_argument("--unpriced", action="store_true", help="though no price of a backbone is known")
        start.add_argument("--dry-run", action="store_true", help="say what it takes and start nothing")
        _add_budget(start)
        parts.add_parser("list", help="all sweeps, the newest first")
        for act, help_text in (
            ("show", "how far it is, failures by reason, labels by likeness"),
            ("watch", "the same again and again, until it stands still"),
            ("pause", "rounds under way end, no further one begins"),
            ("stop", "runs that have not ended are stopped; what is concluded stays"),
        ):
            parts.add_parser(act, help=help_text).add_argument("sweep", type=int)
        resume = parts.add_parser("resume", help="resume, with a larger budget if one was used up")
        resume.add_argument("sweep", type=int)
        _add_budget(resume)
        retry = parts.add_parser("retry", help="resume failed runs")
        retry.add_argument("sweep", type=int)
        retry.add_argument("--stopped", action="store_true", help="those that were stopped, instead")
        for each in parts.choices.values():
            each.add_argument("--json", action="store_true", help="one line of JSON")

    def handle(self, **options: Any) -> None:
        act = options["act"]
        # On the terminal, the owner of the installation acts.
        by = Actor(welcome.owner()[0])
        try:
            match act:
                case "start":
                    self._start(by, options)
                case "list":
                    for row in lists.sweeps_from({}).rows:
                        self.stdout.write(f"{row.pk:>5}  {row.name}. {summaries.describe_progress(row)}")
                case "resume":
                    budget = {column: options[name] for name, column in _BUDGET.items() if options[name] is not None}
                    actions.resume(by, _find(options["sweep"]).pk, budget)
                    self._show(options)
                case "retry":
                    count = actions.retry(by, _find(options["sweep"]).pk, "stopped" if options["stopped"] else "failed")
                    self.stderr.write(f"{count:,} runs continue.")
                    self._show(options)
                case "watch":
                    self._watch(options)
                # show, pause and stop: the last two act first.
                case _:
                    if act in _ACTS:
                        _ACTS[act](by, _find(options["sweep"]).pk)
                    self._show(options)
        except ActionRefused as refusal:
            raise CommandError(str(refusal)) from refusal

    def _start(self, actor: Actor, options: dict[str, Any]) -> None:
        # The page's own form, so that both check the same and draw the same units.
        form = NewSweep(_build_form_data(options), SystemNameMasker(actor.person))
        if not form.is_valid():
            raise CommandError("\n".join(form.problems))
        self.stderr.write(summaries.describe_forecast(predict(form.draft())))
        if options["dry_run"]:
            return
        sweep = actions.begin(actor, form.draft())
        self.stderr.write(
            f"Sweep {sweep.pk} is started: workers play its runs while `manage.py up` or a worker runs. Watch it with "
            f"`manage.py sweep watch {sweep.pk}`."
        )
        self.stdout.write(json.dumps({"sweep": sweep.pk}) if options["json"] else str(sweep.pk))

    def _show(self, options: dict[str, Any]) -> None:
        row = _find(options["sweep"])
        if options["json"]:
            self.stdout.write(json.dumps(_encode_sweep(row), ensure_ascii=False))
            return
        self.stdout.write(f"{row.name}. {summaries.describe_progress(row)}")
        for failure in lists.list_failures(row):
            named = ", ".join(str(run) for run in failure.runs)
            self.stdout.write(f"  {failure.count:,} failed: {failure.reason} (runs {named})")
        for group in lists.group_runs(lists.read_runs(row, SystemNameMasker(None)))[:20]:
            self.stdout.write(f"  {len(group.members):>6,}  {group.label}")

    def _watch(self, options: dict[str, Any]) -> None:
        said = ""
        while True:
            row = _find(options["sweep"])
            if (line := summaries.describe_progress(row)) != said:
                self.stderr.write(line)
                said = line
            # A sweep that is paused or waits needs a person: there is nothing left to watch.
            if not lists.state_of(row).live:
                break
            time.sleep(LOOK_EVERY)
        self._show(options)


def _add_choice(parser: CommandParser) -> None:
    parser.add_argument("--model", default="toybox")
    parser.add_argument("--layers", nargs="+", default=[], metavar="LAYER")
    parser.add_argument("--sample", type=int, metavar="N", help="so many units of the layers, drawn by the seed")
    parser.add_argument("--state", default="", help="units in a state of the unit map: new, dead, band-low, …")
    parser.add_argument("--words", default="", help="units whose name or label has these words")
    parser.add_argument("--unlabelled", action="store_true", help="units without a good label")
    parser.add_argument("--below", type=float, metavar="R", help="with --unlabelled: a good label's check reaches it")
    parser.add_argument("--units", metavar="FILE", help="CSV with model, layer, unit; - for standard input")
    parser.add_argument("--seed", type=choices.seed, default=0)


def _add_budget(parser: CommandParser) -> None:
    parser.add_argument("--cost", type=float, metavar="USD", help="budget of the whole")
    parser.add_argument("--tokens", type=int, metavar="N", help="tokens of the whole")
    parser.add_argument("--seconds", type=float, metavar="S", help="seconds of work of the whole, all runs together")


def _build_form_data(options: dict[str, Any]) -> QueryDict:
    """Fill in the page's form from the options."""
    typed = QueryDict(mutable=True)
    same = ("model", "state", "words", "sample", "below", "seed", "task", "question", "name", "dataset", "priority")
    given = {name: options[name] for name in (*same, "rounds")}
    given |= {f"budget_{name}": options[name] for name in _BUDGET}
    # Forms read text; what is left out gets the form's own default.
    typed.update({name: str(value) for name, value in given.items() if value is not None})
    for name, field in (("layers", "layer"), ("agent", "agent"), ("toolset", "toolset")):
        typed.setlist(field, options[name])
    typed["choose"] = _choice_of(options)
    if options["units"]:
        typed["units"] = _read_list(options["units"])
    for name in ("ablation", "unpriced"):
        if options[name]:
            # What browsers send for a ticked box.
            typed[name] = "on"
    return typed


def _choice_of(options: dict[str, Any]) -> str:
    """Return the way of choosing units that the options name. Raises CommandError for two at once."""
    meant = {
        SelectionKind.SAMPLE: options["sample"] is not None,
        SelectionKind.FILTER: bool(options["state"] or options["words"]),
        SelectionKind.UNLABELLED: options["unlabelled"],
        SelectionKind.LIST: bool(options["units"]),
    }
    found = [choice for choice, is_meant in meant.items() if is_meant]
    if len(found) > 1:
        raise CommandError("Choose units in one way: --sample, --state and --words, --unlabelled, or --units.")
    return (found or [SelectionKind.LAYERS])[0].value


def _read_list(path: str) -> str:
    try:
        # One character more than allowed lets the form say that the list is too long.
        text = sys.stdin.read(MAX_CHARS + 1) if path == "-" else Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"The list {path} cannot be read: {error}. It is CSV in UTF-8.") from error
    return text


def _find(pk: int) -> Any:
    row = lists.with_progress(Sweep.objects.all()).filter(pk=pk).first()
    if row is None:
        raise CommandError(f"There is no sweep {pk}: `manage.py sweep list` names them.")
    return row


def _encode_sweep(row: Any) -> dict[str, Any]:
    counts = ("planned", "created_runs", "done_runs", "failed_runs", "stopped_runs", "active_runs", "checked_runs")
    took = ("cost", "tokens", "seconds", "status", "reason", "name")
    return {
        "sweep": row.pk,
        **{name: getattr(row, name) for name in (*counts, *took)},
        "left": lists.count_left(row),
        "failures": [{"reason": each.reason, "count": each.count} for each in lists.list_failures(row)],
        "labels": [
            {"label": each.label, "runs": len(each.members)}
            for each in lists.group_runs(lists.read_runs(row, SystemNameMasker(None)))
        ],
    }
