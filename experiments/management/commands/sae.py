"""Sparse auto-encoders: train one on a layer, add a published one, measure one, list those that there are."""

from __future__ import annotations

import json
from argparse import SUPPRESS
from functools import partial
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from experiments.core import compatibility
from experiments.management import options as choices
from experiments.management.prepared import FetchingCommand, ProgressLine
from experiments.management.sparse_report import format_report
from workers.record.sparse import KINDS, RECIPE
from workers.record.sparse_report import read_report

TELL_EVERY = 30.0
"""Seconds between two lines of progress where they go to a file."""


class Command(FetchingCommand):
    help = "Train a sparse auto-encoder on the activations of a layer, add a published one, measure one, or list all."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--json", action="store_true", help="print JSON instead")
        actions = parser.add_subparsers(dest="action", metavar="train | add | list | report", required=True)
        actions.add_parser("list", help="those that were trained or added, and how well they explain their layers")
        report = actions.add_parser("report", help="measure one on images held out of training; Ctrl+C stops")
        report.add_argument("name", help="manage.py sae list says which there are")
        # Of both parsers: without a default, what was said to the first one stays
        report.add_argument("--json", action="store_true", default=SUPPRESS, help="print JSON instead")
        train = actions.add_parser("train", help="train one; Ctrl+C stops it, the same command continues")
        count = partial(choices.positive, int)
        _add_source(train)
        train.add_argument("--latents", type=count, required=True, metavar="N", help="as 4 to 32 times the units")
        train.add_argument("--k", type=count, required=True, metavar="K", help="active latents at a position")
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
            found = _train_one(options)
            self.stdout.write(json.dumps(found) if options["json"] else describe(found))
        elif options["action"] == "add":
            found = _add_one(options)
            self.stdout.write(json.dumps(found) if options["json"] else describe(found))
        elif options["action"] == "report":
            found = _measure_one(options["name"])
            trained = not any(card["name"] == options["name"] and card["source"] for card in _list_all())
            words = format_report(read_report(found), trained)
            self.stdout.write(json.dumps(found) if options["json"] else words)
        else:
            cards = _list_all()
            none = "None was trained yet. manage.py sae train makes one; manage.py sae add takes a published one."
            self.stdout.write(json.dumps(cards) if options["json"] else "\n".join(map(describe, cards)) or none)


def _add_source(parser: CommandParser) -> None:
    """Which layer, over which images."""
    parser.add_argument("--model", default="toybox", help="default: toybox; manage.py models lists what there is")
    parser.add_argument("--layer", required=True, help="for example layer4; manage.py models MODEL lists them")
    parser.add_argument("--dataset", default="", metavar="D", help="key, name or path; default: the model's own")


def _add_one(options: dict[str, Any]) -> dict[str, Any]:
    """The card of what was added. Raises RequestError, CommandError at Ctrl+C."""
    from workers.jobs import sparse

    dataset = options["dataset"] or compatibility.find_own_dataset(options["model"])
    path = options["path"].expanduser()
    line = ProgressLine(piped=TELL_EVERY)
    with line.until_ctrl_c("Nothing is kept; the same command begins again."):
        return sparse.add(path, options["model"], options["layer"], dataset, options["name"], line)


def _train_one(options: dict[str, Any]) -> dict[str, Any]:
    """The card of what was trained. Raises RequestError, CommandError at Ctrl+C; what is done by then is kept."""
    from workers.jobs import sparse

    dataset = options["dataset"] or compatibility.find_own_dataset(options["model"])
    recipe = {name: options[name] for name in RECIPE}
    line = ProgressLine(piped=TELL_EVERY)
    with line.until_ctrl_c("What is done is kept; the same command continues."):
        return sparse.train(options["model"], options["layer"], dataset, recipe, options["name"], line)


def _measure_one(name: str) -> dict[str, Any]:
    """The report. Raises RequestError, CommandError at Ctrl+C."""
    from workers.jobs import sparse

    line = ProgressLine(piped=TELL_EVERY)
    with line.until_ctrl_c("Nothing is kept; the same command begins again."):
        return sparse.report(name, line)


def _list_all() -> list[dict[str, Any]]:
    from workers.jobs import sparse

    return sparse.list_all()


def describe(card: dict[str, Any]) -> str:
    """An auto-encoder, by the name of its model, on a line, and how good it is below."""
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
