"""Every plug-in, by kind: key -> (label, dotted path of its factory). Loaded on first use; standard library alone.

The web reads keys and labels here to fill its forms. To add a plug-in: one file, one line below.
A factory takes `LabSettings` first; what else it takes is said beside each table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from workers.errors import UnknownName

Plugins = Mapping[str, tuple[str, str]]

VISION_MODELS: Plugins = {
    "toybox": ("toybox-net, a small network trained on toy scenes", "workers.vision_models.toybox.load"),
}

DATA_SETS: Plugins = {
    "toybox": ("toybox validation scenes", "workers.toybox.dataset.load"),
}

IMAGE_GENERATORS: Plugins = {
    "toybox": ("toybox renderer", "workers.image_models.toybox.load_generator"),
}

IMAGE_EDITORS: Plugins = {
    "toybox": ("toybox scene editor", "workers.image_models.toybox.load_editor"),
}

DESCRIBERS: Plugins = {
    "toybox": ("toybox-eyes, a small segmentation network", "workers.image_models.toybox_eyes.load"),
}

# Factory takes (settings, spec, model, index): see `lab.laboratory`.
SYSTEMS: Plugins = {
    "unit": ("One unit of a trained network", "workers.systems.unit.load"),
}

BACKBONES: Plugins = {
    "scripted": ("Scripted scientist (no language model)", "workers.backbones.scripted.load"),
}

TASKS: Mapping[str, str] = {
    "describe": "Describe a neuron",
    "bias": "Find a bias",
    "spurious": "Find spurious reliance",
    "free": "Free question",
}
"""Research tasks: key -> label. Each has `agent/prompts/<key>.md`."""


def choices(plugins: Plugins) -> list[tuple[str, str]]:
    """Keys and labels, for a form."""
    return [(key, label) for key, (label, _) in plugins.items()]


def load(plugins: Plugins, key: str) -> Callable[..., Any]:
    """Import the factory of a plug-in. Raises UnknownName, listing what there is."""
    if key not in plugins:
        raise UnknownName(f"There is no {key!r} here. Choose one of: {', '.join(plugins)}.")
    module, _, name = plugins[key][1].rpartition(".")
    factory: Callable[..., Any] = getattr(import_module(module), name)
    return factory
