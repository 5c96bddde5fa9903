"""Manage the datasets of exemplars: list them, add a folder or a saved one, index one for a model, remove one."""

from __future__ import annotations

import json
from typing import Any

from django.core.management.base import CommandError, CommandParser

from experiments.core import notify
from experiments.management.prepared import FetchingCommand, ProgressLine
from experiments.models import Dataset
from workers import registry


class Command(FetchingCommand):
    help = "List the datasets; add a folder of images or one saved by the library datasets; index one for a model."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--json", action="store_true", help="print the list as JSON")
        actions = parser.add_subparsers(dest="action", metavar="add | index | remove")
        add = actions.add_parser("add", help="take up a dataset; its images stay where they are")
        add.add_argument("place", help="the path of a folder, or a key such as saved:/data/birds")
        add.add_argument("--name", default="", help="what pages call it (default: the name of its folder)")
        links = "read what links lead to outside the folder: any image that the worker may read"
        add.add_argument("--follow-links", action="store_true", help=links)
        index = actions.add_parser("index", help="measure every unit of a model's layers on every image")
        index.add_argument("name", help="key, name or path of the dataset")
        index.add_argument("--model", required=True, help="manage.py models lists them")
        index.add_argument("--layers", nargs="+", default=[], metavar="LAYER", help="default: all")
        insist = "take published exemplars of other weights too; they are marked"
        index.add_argument("--insist", action="store_true", help=insist)
        remove = actions.add_parser("remove", help="take a dataset off the list; its images stay")
        remove.add_argument("name", help="key, name or path of the dataset")

    def handle(self, **options: Any) -> None:
        notify.muted.set()  # works without Redis
        does = {"add": add_dataset, "index": _index_dataset, "remove": remove_dataset}
        self.stdout.write(does[options["action"]](options) if options["action"] else list_datasets(options["json"]))


def add_dataset(options: dict[str, Any]) -> str:
    """Add a dataset. Raises RequestError if there is none at this place."""
    from workers.jobs import plugin_keys, registration

    key, line = plugin_keys.dataset_key(options["place"], follow_links=options["follow_links"]), ProgressLine()
    with line.until_ctrl_c("Nothing was added; the same command begins anew."):
        row = registration.dataset(key, label=options["name"], progress=line)
    return f"{row.key}: {row.images:,} images, called {row.label}."


def _index_dataset(options: dict[str, Any]) -> str:
    """Index a dataset. Raises RequestError for missing parts, CommandError at Ctrl+C; finished work is kept."""
    from workers.jobs import registration

    line = ProgressLine()
    with line.until_ctrl_c("What is done is kept; the same command continues."):
        row = registration.get_dataset(options["name"])
        rows = registration.index_layers(row, options["model"], options["layers"], line, insist=options["insist"])
    row.refresh_from_db()
    return "\n".join([rows, *(f"  {each['file']}: {each['reason']}" for each in row.broken)])


def remove_dataset(options: dict[str, Any]) -> str:
    """Remove a dataset. Raises RequestError, and CommandError for one of the registry or of the settings."""
    from workers.jobs import registration

    row = registration.get_dataset(options["name"])
    # Datasets of the registry and of settings would come back at the next start of a worker.
    if row.added is None:
        raise CommandError(f"{row.key} belongs to the installation and stays.")
    row.delete()
    return f"{row.key} is off the list. Its images are where they were."


def list_datasets(as_json: bool) -> str:
    """List the recorded datasets of workers and users, checked again."""
    from workers.jobs import catalogue

    # Files may have come or gone since a worker last looked.
    for key in catalogue.dataset_keys():
        catalogue.write_dataset(key)
    found = [_describe_dataset(row) for row in Dataset.objects.prefetch_related("indexes__layer__model")]
    return json.dumps(found, ensure_ascii=False) if as_json else "\n".join(_format_dataset(each) for each in found)


def _describe_dataset(row: Dataset) -> dict[str, Any]:
    return {
        "key": row.key,
        "label": row.label or registry.label(registry.DATASETS, row.key),
        "available": row.available,
        "remedy": row.remedy,
        "images": row.images,
        "broken": len(row.broken),
        "indexed": [str(each.layer) for each in row.indexes.all()],
    }


def _format_dataset(each: dict[str, Any]) -> str:
    """Format a dataset on a line, with remarks below it."""
    broken = f", {each['broken']} left out as broken" if each["broken"] else ""
    lines = [f"{each['key']}  {each['images']:,} images{broken}  {each['label']}"]
    lines += [f"    {line}" for line in each["remedy"].splitlines()]
    lines += [f"    indexed: {name}" for name in each["indexed"]]
    return "\n".join(lines)
