"""What is known of an image, and every place it was used in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.models import Q

from experiments.core.paging import Page, count, number_of
from experiments.core.system_names import Names
from experiments.gallery import observations
from experiments.models import Exemplar, Image, Observation

PER_PAGE = 30
RELATED = 12
"""Masked versions, edits and exemplars shown, the first of each."""


def find_usage(image: Image, params: Mapping[str, str], names: Names) -> dict[str, Any]:
    """Everything the page of an image shows, in a constant number of queries."""
    rows = Observation.objects.filter(Q(image=image.key) | Q(masked=image.key))
    page = Page(number_of(params.get("page", "")), PER_PAGE, count(rows), {})
    keys = list(rows.order_by("-pk").values_list("pk", flat=True)[page.start : page.end]) if page.number else []
    return {
        "page": page,
        "items": observations.gallery_items(keys),
        "exemplars": exemplars(image, names),
        **find_relatives(image),
    }


def exemplars(image: Image, names: Names) -> dict[str, Any]:
    """The units whose exemplar it is and that the viewer may know, the strongest first."""
    rows = Exemplar.objects.filter(Q(image=image.key) | Q(masked=image.key)).order_by("-activation", "pk")
    unit = "profile__unit__"
    rows = rows.exclude(names.are_hidden_at(f"{unit}layer__model__name", f"{unit}layer__name", f"{unit}number"))
    related = rows.select_related("profile__unit__layer__model", "profile__dataset")
    shown = list(related.defer("profile__histogram", "profile__unit__layer__names")[: RELATED + 1])
    more = len(shown) > RELATED
    return {"shown": shown[:RELATED], "count": rows.count() if more else len(shown)}


def find_relatives(image: Image) -> dict[str, Any]:
    """The images that it was made from, and those made from it."""
    raw = image.raw or image.key
    known = Image.objects.in_bulk({key for key in (image.raw, image.original) if key})
    masked = list(Image.objects.filter(raw=raw).order_by("-created", "key")[: RELATED + 1])
    edits = list(Image.objects.filter(original=raw, raw="").order_by("-created", "key")[: RELATED + 1])
    return {
        "raw": known.get(image.raw),
        "original": known.get(image.original),
        "masked": masked[:RELATED],
        "edits": edits[:RELATED],
        "more_masked": len(masked) > RELATED,
        "more_edits": len(edits) > RELATED,
    }
