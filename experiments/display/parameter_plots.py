"""Plot activation against a parameter of the game engine, if an experiment's images differ in that one alone."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence

from django.urls import reverse

from experiments.core.thumbnails import picture_of
from experiments.display.plots import Plot, PlotCurve, PlotValue, draw_curves
from workers.record.engine_parameters import ENGINE_PARAMETERS, keep_known
from workers.record.experiments import Observation as Logged
from workers.record.origins import Origin

_NAME_CHARS = 60
_MAX_VALUE = 1e12
"""Larger values are not measurements."""


def draw_parameters(observations: Iterable[Logged], *, team: bool = True) -> list[Plot]:
    """Draw a plot for each parameter that is varied alone, with a line for each prompt and seed.

    For the `team`, a dot shows its image and links to it.
    """
    # 1. Images of one prompt and seed: all else is then equal.
    groups: dict[tuple[str, int | None], list[Logged]] = defaultdict(list)
    for each in observations:
        is_drawn = each.origin == Origin.GENERATED and keep_known(each.parameters)
        if is_drawn and math.isfinite(each.activation) and abs(each.activation) < _MAX_VALUE:
            groups[each.prompt, each.seed].append(each)
    # The seed is named only where a prompt has several.
    seeds: dict[str, int] = defaultdict(int)
    for prompt, _ in groups:
        seeds[prompt] += 1
    # 2. A curve for each group that varies one parameter alone.
    curves: dict[str, list[PlotCurve]] = defaultdict(list)
    for (prompt, seed), images in groups.items():
        if varied := _find_varied(images):
            ending = f", seed {seed}" if seeds[prompt] > 1 else ""
            name = prompt if len(prompt) <= _NAME_CHARS else f"{prompt[: _NAME_CHARS - 1]}…"
            curves[varied].append(PlotCurve(name + ending, [_make_point(each, varied, team=team) for each in images]))
    return [_draw(name, found) for name, found in curves.items()]


def _find_varied(images: Sequence[Logged]) -> str:
    """Return the one parameter in which the images differ; "" if there is none, or more."""
    given = [keep_known(each.parameters) for each in images]
    varied = [name for name in ENGINE_PARAMETERS if len({each.get(name) for each in given}) > 1]
    # A missing value is the engine's default, which has no place on the axis.
    is_one = len(varied) == 1 and all(varied[0] in each for each in given)
    return varied[0] if is_one else ""


def _make_point(image: Logged, name: str, *, team: bool) -> tuple[float, PlotValue]:
    title = image.title or image.prompt
    link, picture = (reverse("image-page", args=[image.image]), picture_of(image.image)) if team else ("", "")
    return image.parameters[name], PlotValue(image.activation, title, link, picture)


def _draw(name: str, curves: Sequence[PlotCurve]) -> Plot:
    known = ENGINE_PARAMETERS[name]
    axis = f"{known.label} ({known.unit})" if known.unit else known.label
    return draw_curves(curves, f"Activation against {known.label.lower()}", axis, "Activation")
