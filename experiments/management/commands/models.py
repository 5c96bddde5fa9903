"""List the models that can be studied: which are here, which are missing and how to get them; and the layers of one."""

from __future__ import annotations

import json
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db.models import Count

from experiments.management.prepared import FetchingCommand
from experiments.models import Layer, VisionModelRow
from workers import registry


class Command(FetchingCommand):
    help = "List the models and what is missing of them, or the layers of one, which the form then offers."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("name", nargs="?", help="a model of the list, a hub id such as hf:owner/name, or a folder")
        parser.add_argument("--remove", action="store_true", help="take a model that was added off the list")
        parser.add_argument("--json", action="store_true", help="print JSON instead")

    def handle(self, **options: Any) -> None:
        if options["remove"]:
            self.stdout.write(remove_model(options["name"] or ""))
        elif options["name"]:
            # The layers of a model, which is loaded if they are not known yet. Raises RequestError.
            from workers.jobs import registration

            layers = list(registration.model(options["name"]).layers.all())
            rows = [
                {name: getattr(layer, name) for name in ("name", "kind", "units", "names", "scale")} for layer in layers
            ]
            self.stdout.write(format_json(rows) if options["json"] else _format_layers(layers))
        else:
            found = list_models()
            self.stdout.write(format_json(found) if options["json"] else _format_models(found))


def list_models() -> list[dict[str, Any]]:
    """List every model with a name, and those that were added; loads none."""
    from workers.jobs import catalogue

    layers = dict(VisionModelRow.objects.annotate(count=Count("layers")).values_list("name", "count"))
    return [
        {
            "name": key,
            "label": catalogue.name_plugin(registry.VISION_MODELS, key),
            "installed": not (remedy := catalogue.find_lack(registry.VISION_MODELS, key)),
            "remedy": remedy,
            "layers": layers.get(key) or None,
        }
        for key in catalogue.model_keys()
    ]


def remove_model(name: str) -> str:
    """Remove a model. Raises CommandError for one that was not added."""
    from workers.jobs import plugin_keys

    # A model may be named as it was added: by key, by folder, or by its id on the hub.
    row = VisionModelRow.objects.filter(
        name__in=[name, plugin_keys.make_absolute(name), f"hf:{name}"], added__isnull=False
    ).first()
    if row is None:
        raise CommandError(f"No model {name!r} was added. Those of the registry stay; manage.py models lists all.")
    row.delete()
    return f"{row.name} is off the list. Its runs and its files stay."


def format_json(found: object) -> str:
    return json.dumps(found, ensure_ascii=False)


def _format_layers(layers: list[Layer]) -> str:
    """Format each layer on a line: name, kind, units, and how its logits become probabilities."""
    width = max((len(layer.name) for layer in layers), default=0)
    return "\n".join(
        f"{layer.name:{width}}  {layer.kind:7}  {layer.units:6}  {layer.scale}".rstrip() for layer in layers
    )


def _format_models(found: list[dict[str, Any]]) -> str:
    """Format each model on a line; below a missing one, how to get it."""
    width = max(len(each["name"]) for each in found)
    lines = []
    for each in found:
        layers = f"{each['layers']} layers" if each["layers"] else ""
        state = "installed" if each["installed"] else "missing"
        lines.append(f"{each['name']:{width}}  {state:9}  {layers:10}  {each['label']}".rstrip())
        lines += [f"{'':{width}}  {line}" for line in each["remedy"].splitlines()]
    return "\n".join(lines)
