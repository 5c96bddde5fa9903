"""A page of passages as it is shown: gathered by run, each with its snippet and a link to where it stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from experiments.models import Observation, Run, SearchText
from experiments.models.search_text import TextKind
from experiments.search import addresses
from experiments.search.finding import Found
from experiments.search.snippets import Piece, snippet

OF_IMAGES = frozenset({TextKind.TITLE, TextKind.TAG})
SHOWN = 6
"""Hits of one run on a page; the others are counted."""


@dataclass(frozen=True)
class Hit:
    """One passage. `image` is the address of the picture it is the title of."""

    kind: str
    label: str
    place: str
    url: str
    pieces: Sequence[Piece]
    image: str = ""


@dataclass
class HitGroup:
    """The hits in one run, or the labels of one unit that no run has given."""

    passage: SearchText
    hits: list[Hit] = field(default_factory=list)
    more: int = 0

    @property
    def run(self) -> Run | None:
        return self.passage.run

    def add(self, hit: Hit) -> None:
        """Titles of many images may read the same: one of them stands for all."""
        if (
            any((hit.kind, hit.place, hit.pieces) == (other.kind, other.place, other.pieces) for other in self.hits)
            or len(self.hits) >= SHOWN
        ):
            self.more += 1
        else:
            self.hits.append(hit)


def group_hits(found: Found, terms: Sequence[str]) -> list[HitGroup]:
    """The groups of a page, in the order of their first hits."""
    rows = SearchText.objects.select_related("run").in_bulk(found.keys)
    passages = [rows[key] for key in found.keys if key in rows]
    images, places = images_of(passages), addresses.of_passages(passages)
    groups: dict[tuple[int | str | None, ...], HitGroup] = {}
    for passage in passages:
        system = (passage.run_id,) if passage.run_id else (passage.model, passage.layer, passage.unit)
        group = groups.setdefault(system, HitGroup(passage))
        group.add(hit_of(passage, terms, images, places[passage.pk]))
    return list(groups.values())


def images_of(passages: Sequence[SearchText]) -> dict[int, str]:
    """The images that passages are the titles or tags of, by observation."""
    keys = [passage.anchor for passage in passages if passage.kind in OF_IMAGES and passage.anchor]
    rows = Observation.objects.filter(pk__in=keys).values_list("pk", "masked_id", "image_id") if keys else ()
    return {pk: masked or image for pk, masked, image in rows}


def hit_of(passage: SearchText, terms: Sequence[str], images: Mapping[int, str], url: str) -> Hit:
    kind, key = TextKind(passage.kind), images.get(passage.anchor or 0)
    return Hit(
        kind=kind,
        label=str(kind.label),
        place=place_of(passage),
        url=url,
        pieces=snippet(passage.text, terms),
        image=addresses.of_thumbnail(key) if kind in OF_IMAGES and key else "",
    )


def place_of(passage: SearchText) -> str:
    """Where in the run it stands, in words."""
    if passage.kind == TextKind.TAG:
        return "of an image" if passage.anchor else "of an experiment" if passage.seq else "of the run"
    if passage.kind in {TextKind.REPLY, TextKind.HYPOTHESIS, TextKind.NOTE} and passage.anchor:
        return f"round {passage.anchor}"
    if passage.kind in {TextKind.CODE, TextKind.OUTPUT} and passage.anchor:
        return f"experiment {passage.anchor}"
    return ""
