"""The interface through which a plug-in registers its parts. Nothing is added until all of a plug-in was collected and
checked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from workers import registry
from workers.errors import UnknownName
from workers.plugins.parts import Load, PluginOrigin, RegisteredPart

MODELS, DATASETS = "VISION_MODELS", "DATASETS"
GENERATORS, EDITORS, DESCRIBERS = "IMAGE_GENERATORS", "IMAGE_EDITORS", "DESCRIBERS"
BACKBONES, SYSTEMS, TOOLSETS = "BACKBONES", "SYSTEMS", "TOOLSETS"
NOUNS = {
    MODELS: "vision model",
    DATASETS: "dataset",
    GENERATORS: "generator",
    EDITORS: "editor",
    DESCRIBERS: "describer",
    BACKBONES: "backbone",
    SYSTEMS: "system",
    TOOLSETS: "toolset",
}
"""Table of the registry -> what one of its rows is called."""

_LENGTHS = {SYSTEMS: 10, BACKBONES: 40, TOOLSETS: 40}
"""Characters that a row can hold of such a key; 100 of all others."""
_LABEL_CHARS = 200
_DRAWING = frozenset({"text2image", "text2model", "game_engine"})
_EDITING = frozenset({"edit_images", "edit_image"})


class Registrar:
    """Collects what one plug-in registers.

    A key is letters, digits, dots, hyphens and underscores. One that ends in a colon names a family: its factory is
    given what follows the colon as a second argument. Methods raise UnknownName for a key or label that cannot be.
    """

    def __init__(self, origin: PluginOrigin, seconds: float) -> None:
        self.origin = origin
        # Only collected here: `loading` adds all or nothing
        self.entries: list[tuple[str, str, Any]] = []
        """Table, key, and the row that comes there."""
        self._seconds = seconds

    def vision_model(self, key: str, label: str, load: Load, *, missing: Load | None = None) -> None:
        """`load(settings)` gives `study(network, …)` of `workers.plugins.modules`, or any other VisionModel."""
        self._add(MODELS, key, label, partial(_load_model, self, key, load), missing=missing)

    def dataset(self, key: str, label: str, load: Load, *, missing: Load | None = None) -> None:
        """`load(settings)` gives a Dataset of `workers.protocols`."""
        self._add(DATASETS, key, label, load, missing=missing)

    def generator(self, key: str, label: str, load: Load, *, missing: Load | None = None) -> None:
        """`load(settings)` gives an ImageGenerator. A toolset makes it usable."""
        self._add(GENERATORS, key, label, load, missing=missing)

    def editor(self, key: str, label: str, load: Load, *, missing: Load | None = None) -> None:
        """`load(settings)` gives an ImageEditor. A toolset makes it usable."""
        self._add(EDITORS, key, label, load, missing=missing)

    def describer(self, key: str, label: str, load: Load, *, missing: Load | None = None) -> None:
        """`load(settings)` gives a Describer. A toolset makes it usable."""
        self._add(DESCRIBERS, key, label, load, missing=missing)

    def backbone(
        self,
        key: str,
        label: str,
        load: Load,
        *,
        missing: Load | None = None,
        models: Callable[..., Iterable[str]] | None = None,
        prices: Load | None = None,
    ) -> None:
        """`load(settings, model)` gives a Backbone; `models(settings)` the names it offers, the default first."""
        self._add(BACKBONES, key, label, load, missing=missing, models=models, prices=prices)

    def system(self, key: str, label: str, load: Load) -> None:
        """`load(settings, spec, model, index)` gives a Subject.

        Units of the layers whose `kind` is this key are studied as it, so the key has at most 10 characters.
        """
        self._add(SYSTEMS, key, label, load)

    def toolset(
        self,
        key: str,
        label: str,
        *,
        generator: str = "",
        editor: str = "",
        describer: str = "none",
        lacks: Iterable[str] = (),
    ) -> None:
        """A generator, an editor and a describer that go together, by their keys; without one, programs have no tool
        that needs it. `lacks` are further tools that are not served."""
        self._check(TOOLSETS, key, label)
        # Tools without a part behind them are not served
        gone = frozenset(lacks) | (frozenset() if generator else _DRAWING) | (frozenset() if editor else _EDITING)
        # The part is never used then, but a toolset names one
        tools = registry.Toolset(label, generator or "toybox", editor or "toybox", describer, gone)
        self.entries.append((TOOLSETS, key, tools))

    def _add(self, table: str, key: str, label: str, load: Load, **extras: Load | None) -> None:
        self._check(table, key, label)
        if not callable(load):
            raise UnknownName(f"The {NOUNS[table]} {key!r} needs a function that loads it, not {load!r}.")
        what = f"The {NOUNS[table]} {key!r}"
        self.entries.append((table, key, (label, RegisteredPart(self.origin, what, load, self._seconds, extras))))

    def _check(self, table: str, key: str, label: str) -> None:
        longest, noun = _LENGTHS.get(table, 100), NOUNS[table]
        family = ":?" if table not in (SYSTEMS, TOOLSETS, BACKBONES) else ""
        if (
            not isinstance(key, str)
            or len(key) > longest
            # re.A, or `\w` would allow letters of every script
            or not re.fullmatch(rf"[A-Za-z0-9][\w.-]*{family}", key, re.A)
        ):
            raise UnknownName(
                f"{key!r} is no key of a {noun}: take at most {longest} letters, digits, dots, hyphens and underscores."
            )
        if not isinstance(label, str) or not 0 < len(label.strip()) <= _LABEL_CHARS or not label.isprintable():
            raise UnknownName(f"The {noun} {key!r} needs a label of 1 to {_LABEL_CHARS} printable characters.")


def _load_model(registrar: Registrar, key: str, load: Load, settings: Any, *rest: Any) -> Any:
    """Return the model that a plug-in's factory gives, with its maps checked. Imports torch."""
    # Imports torch: not before a model is loaded
    from workers.plugins.map_checks import CheckedModel
    from workers.plugins.modules import ModuleModel, Study

    name = key + "".join(map(str, rest))
    found = load(settings, *rest)
    # A bare network is wrapped; a model of the plug-in's own is only checked
    if isinstance(found, Study):
        return ModuleModel(settings, name, found, partial(load, settings, *rest), registrar.origin.version)
    return CheckedModel(found, name)
