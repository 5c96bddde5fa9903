"""Manage sparse auto-encoders: train one on a layer, add a published one, measure one, list them."""

from __future__ import annotations

import json
from argparse import SUPPRESS
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from django.core.management.base import CommandError, CommandParser

from experiments.core import compatibility
from experiments.management import options as choices
from experiments.management.prepared import FetchingCommand, ProgressLine
from experiments.management.sparse_report import format_report
from workers.record.sparse import BATCHTOPK, KINDS, RECIPE
from workers.record.sparse_report import read_report

TRUTH_SOURCES = {"independent": "drawn one by one", "scenes": "as they stand in scenes of toybox"}
TRUTH_FIGURES = {
    "recovered": "concepts that a latent follows (r of 0.9 or more)",
    "recovered_by_neurons": "concepts that a neuron follows",
    "correlation": "mean r of the best latent",
    "cosine": "mean cosine of direction and nearest decoder row",
    "cosine_untrained": "the same before training: random rows",
    "unexplained": "fraction of variance unexplained",
    "active": "latents active at a position",
    "present": "concepts present at a position",
}
TRUTH_GOALS = {"recovered": 0.9, "cosine": 0.95}
TELL_EVERY = 30.0
"""Seconds between two lines of progress in a file."""


class Command(FetchingCommand):
    help = (
        "Train a sparse auto-encoder on the activations of a layer, add a published one, measure one, list all, or see "
        "how many known concepts one finds again."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--json", action="store_true", help="print JSON instead")
        actions = parser.add_subparsers(dest="action", metavar="train | add | list | report | truth", required=True)
        actions.add_parser("list", help="those that were trained or added, and how well they explain their layers")
        report = actions.add_parser("report", help="measure one on images held out of training; Ctrl+C stops")
        report.add_argument("name", help="manage.py sae list says which there are")
        # Of both parsers: without a default, what was said to the first one stays
        report.add_argument("--json", action="store_true", default=SUPPRESS, help="print JSON instead")
        truth = actions.add_parser("truth", help="how many concepts one finds again that lie over fewer neurons")
        truth.add_argument("--seeds", type=partial(choices.positive, int), default=3, metavar="N", help="default: 3")
        truth.add_argument("--json", action="store_true", default=SUPPRESS, help="print JSON instead")
        _ask_trial(truth)
        train = actions.add_parser("train", help="train one; Ctrl+C stops it, the same command continues")
        count = partial(choices.positive, int)
        _add_source(train)
        train.add_argument("--latents", type=count, required=True, metavar="N", help="as 4 to 32 times the units")
        train.add_argument(
            "--k", type=count, required=True, nargs="+", metavar="K", help="active at a position; one or several"
        )
        train.add_argument("--kind", choices=KINDS, default="topk", help="default: topk")
        train.add_argument("--name", default="", help="of its file; default: from model, layer and recipe")
        length = train.add_mutually_exclusive_group()
        length.add_argument("--steps", type=count, default=0, help="default: 5,000, of 4,096 positions each")
        length.add_argument("--images", type=count, default=0, metavar="N", help="show so many images instead")
        train.add_argument("--seed", type=choices.seed, default=0, help="default: 0")
        add = actions.add_parser("add", help="add one that others published, from its files; nothing is fetched")
        add.add_argument(
            "path", type=Path, metavar="FOLDER", help="its folder, or file with weights: see workers/sparse/published"
        )
        _add_source(add)
        add.add_argument("--json", action="store_true", default=SUPPRESS, help="print JSON instead")
        add.add_argument("--name", default="", help="of its file; default: from model, layer and format")

    def handle(self, **options: Any) -> None:
        if options["action"] == "train":
            self._train(options)
        elif options["action"] == "add":
            found = _add_one(options)
            self.stdout.write(json.dumps(found) if options["json"] else describe(found))
        elif options["action"] == "truth":
            found = _find_superposed(options)
            self.stdout.write(json.dumps(found) if options["json"] else _describe_truth(found))
        elif options["action"] == "report":
            found = _measure_one(options["name"])
            # Only of those trained here are the training images known.
            trained = not any(card["name"] == options["name"] and card["source"] for card in _list_all())
            words = format_report(read_report(found), trained)
            self.stdout.write(json.dumps(found) if options["json"] else words)
        else:
            cards = _list_all()
            none = "None was trained yet. manage.py sae train makes one; manage.py sae add takes a published one."
            self.stdout.write(json.dumps(cards) if options["json"] else "\n".join(map(describe, cards)) or none)

    def _train(self, options: dict[str, Any]) -> None:
        """Train one for each k, reported as soon as it is trained."""
        if len(options["k"]) > 1 and options["name"]:
            raise CommandError("Leave --name out for several k: each auto-encoder has a name of its own.")
        # Each k once, in the order of the command.
        for k in dict.fromkeys(options["k"]):
            found = _train_one({**options, "k": k})
            self.stdout.write(json.dumps(found) if options["json"] else describe(found))


def _add_source(parser: CommandParser) -> None:
    """Add the options for layer and images."""
    parser.add_argument("--model", default="toybox", help="default: toybox; manage.py models lists what there is")
    parser.add_argument("--layer", required=True, help="for example layer4; manage.py models MODEL lists them")
    parser.add_argument("--dataset", default="", metavar="D", help="key, name or path; default: the model's own")


def _add_one(options: dict[str, Any]) -> dict[str, Any]:
    """Add an auto-encoder and return its card. Raises RequestError, CommandError at Ctrl+C."""
    from workers.jobs import sparse

    dataset = options["dataset"] or compatibility.find_own_dataset(options["model"])
    path = options["path"].expanduser()
    line = ProgressLine(piped=TELL_EVERY)
    with line.until_ctrl_c("Nothing is kept; the same command begins again."):
        return sparse.add(path, options["model"], options["layer"], dataset, options["name"], line)


def _train_one(options: dict[str, Any]) -> dict[str, Any]:
    """Train an auto-encoder and return its card. Raises RequestError, CommandError at Ctrl+C; finished work is kept."""
    from workers.jobs import sparse

    dataset = options["dataset"] or compatibility.find_own_dataset(options["model"])
    recipe = {name: options[name] for name in RECIPE}
    line = ProgressLine(piped=TELL_EVERY)
    with line.until_ctrl_c("What is done is kept; the same command continues."):
        return sparse.train(options["model"], options["layer"], dataset, recipe, options["name"], line)


def _ask_trial(parser: CommandParser) -> None:
    """Add the options of the trial. Their names are those of `superposition.Superposition`."""
    count = partial(choices.positive, int)
    parser.add_argument("--kind", choices=KINDS, default=BATCHTOPK, help=f"default: {BATCHTOPK}")
    parser.add_argument("--latents", type=count, default=256, metavar="N", help="default: 256, for 200 concepts")
    parser.add_argument("--neurons", type=count, default=64, metavar="N", help="default: 64")
    parser.add_argument("--k", type=count, default=3, metavar="K", help="active latents at a position; default: 3")
    parser.add_argument("--steps", type=count, default=16_000, help="default: 16,000, of 512 positions each")
    parser.add_argument("--noise", type=partial(choices.positive, float), default=0.02, help="sd; default: 0.02")


def _find_superposed(options: dict[str, Any]) -> dict[str, Any]:
    """Return the results for each seed. Raises CommandError at Ctrl+C."""
    from workers.jobs import sparse

    if options["k"] > options["latents"]:
        raise CommandError(f"--k {options['k']} is more than --latents {options['latents']}: give a smaller k.")
    wish = {name: options[name] for name in ("kind", "latents", "neurons", "k", "steps", "noise")}
    line = ProgressLine(piped=TELL_EVERY)
    with line.until_ctrl_c("Nothing is kept; the same command begins again."):
        return sparse.find_superposed(range(options["seeds"]), wish, line)


def _describe_truth(found: dict[str, Any]) -> str:
    """Format a table for each way of drawing concepts: a column for each seed, then the mean and the goal."""
    trial = found["trial"]
    lines = [
        f"{trial['kind']}, {trial['latents']:,} latents, k {trial['k']}, over {trial['neurons']} neurons that hold "
        f"{trial['concepts']} concepts; noise {trial['noise']:g}; {trial['steps']:,} steps",
    ]
    for source, words in TRUTH_SOURCES.items():
        lines += ["", f"Concepts {words}; a column a seed, then the mean", ""]
        for name, label in TRUTH_FIGURES.items():
            values = [each[name] for each in found["sources"][source]]
            goal = f"  goal {TRUTH_GOALS[name]:g}" if name in TRUTH_GOALS else ""
            shown = "  ".join(f"{value:.3f}" for value in values)
            lines.append(f"{label:52}  {shown}   {fmean(values):.3f}{goal}")
    return "\n".join(lines)


def _measure_one(name: str) -> dict[str, Any]:
    """Return the report. Raises RequestError, CommandError at Ctrl+C."""
    from workers.jobs import sparse

    line = ProgressLine(piped=TELL_EVERY)
    with line.until_ctrl_c("Nothing is kept; the same command begins again."):
        return sparse.report(name, line)


def _list_all() -> list[dict[str, Any]]:
    from workers.jobs import sparse

    return sparse.list_all()


def describe(card: dict[str, Any]) -> str:
    """Format an auto-encoder on a line, by the name of its model, with its quality below."""
    quality = card["quality"]
    k = f", k {card['k']}" if card["k"] else ""
    rest = f"; {card['steps']:,} steps"
    if card["source"]:
        rest = f" on {quality['positions']:,} positions; from {card['source']}"
    return (
        f"sae:{card['name']}  {card['kind']}, {card['latents']:,} latents of {card['units']:,} units{k}  "
        f"{card['model']} {card['layer']} on {card['dataset']}\n"
        f"    {quality['unexplained']:.1%} of variance unexplained with {quality['active']:.1f} active latents, "
        f"{quality['dead']:.1%} of latents dead{rest}"
    )
