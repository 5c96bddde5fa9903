"""Where what was found stands: addresses of events, units and pictures. Pages that do not exist have none."""

from __future__ import annotations

from django.urls import NoReverseMatch, reverse

from experiments.models import Passage, Run

THUMBNAIL = 160


def address(name: str, *arguments: object) -> str:
    """A page's address; "" while there is no such page."""
    try:
        return reverse(name, args=arguments)
    except NoReverseMatch:
        return ""


def of_event(run: Run, seq: int) -> str:
    """The event on its run's page, also where the page of a long run shows a part; the page for a question."""
    page = run.get_absolute_url()
    return f"{page}?at={seq}#e{seq}" if seq else page


def of_passage(passage: Passage) -> str:
    """Its event; for a label that no run has given, its unit."""
    if passage.run is None:
        return of_unit(passage.model, passage.layer, passage.unit)
    return of_event(passage.run, passage.seq)


def of_unit(model: str, layer: str, unit: int) -> str:
    return address("unit", model, layer, unit)


def of_thumbnail(key: str) -> str:
    return address("thumbnail", key, THUMBNAIL) or address("image", key)
