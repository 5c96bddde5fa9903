"""Draw activations of groups of images as strips of dots on a shared axis: with and without what a label says, or
one run beside another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.urls import reverse

from experiments.core.thumbnails import picture_of
from experiments.display.image_cards import LoggedCard
from experiments.display.plots import Level, Plot, PlotValue, Scale, ValueGroup, draw_groups


@dataclass(frozen=True)
class Strip:
    """A named group of images, strongest first; `kind` is the colour of its dots."""

    name: str
    kind: str
    images: Sequence[LoggedCard]


def draw_strips(
    strips: Sequence[Strip],
    scale: Scale,
    label: str,
    *,
    team: bool = True,
    compares: bool = False,
    most: int = 600,
) -> Plot | None:
    """Draw the strips that have images; None if none does.

    A line marks the exemplar threshold. For the `team`, a dot links to its experiment and shows its picture.
    `compares`: adds the effect size between the last two; `most`: maximum dots of a strip.
    """
    groups = [
        ValueGroup(each.name, each.kind, [_make_dot(image, team=team) for image in each.images]) for each in strips
    ]
    level = None if scale.exemplar_mean is None else Level(scale.exemplar_mean, "exemplar threshold")
    return draw_groups(
        groups, label, "Activation", level=level, compares=compares, span=(scale.low, scale.high), most=most
    )


def _make_dot(image: LoggedCard, *, team: bool = True) -> PlotValue:
    """Return an image as a dot, with link and picture for the `team`."""
    name = image.card.title or "untitled"
    if not team:
        return PlotValue(image.card.activation, name)
    link = reverse("experiment", args=[image.run, image.experiment])
    return PlotValue(image.card.activation, name, link, picture_of(image.card.image))
