"""Search everything that was asked, thought, programmed, printed, shown, concluded, and said of it."""

from __future__ import annotations

from typing import Annotated

from django.http import HttpRequest
from ninja import Field, Query, Router, Schema

from experiments.api.auth import authorize
from experiments.api.cursors import Paging, open_cursor, seal
from experiments.api.fields import NO_NUL, RowNumber, UnitNumber, Words
from experiments.core.errors import InvalidInput
from experiments.core.search_index import words
from experiments.core.system_names import SystemNameMasker
from experiments.display.glossary import SECTIONS
from experiments.models import SearchText, TextKind
from experiments.search import finding
from experiments.search.results import of_passages

router = Router(tags=["Search"])


class HitOut(Schema):
    """A text that contains all the words."""

    kind: str
    run: int | None
    seq: int = Field(description="number of the event with the text; 0 for none")
    model: str
    layer: str
    unit: int | None
    text: str
    url: str = Field(description="address of the page that shows it")


class Hits(Schema):
    """A page of hits: best first if few texts contain the words, else newest first."""

    items: list[HitOut]
    ranked: bool
    total: int | None = Field(description="number of hits, if known")
    kinds: dict[str, int] | None = Field(description="number of each kind, even if `kind` was given, if known")
    next: str | None


class Asked(Schema):
    q: Annotated[str, Field(min_length=1, max_length=words.MAX_QUERY_CHARS, pattern=NO_NUL)]
    kind: TextKind | None = None
    model: Words | None = None
    layer: Words | None = None
    unit: UnitNumber | None = None
    run: RowNumber | None = None


@router.get("/search", response=Hits, summary="Search")
def search_all(request: HttpRequest, asked: Query[Asked], paging: Query[Paging]) -> Hits:
    """Every word and “quoted phrase” must occur; parts of words count, in any language."""
    user = authorize(request)
    read = words.parse_words(asked.q)
    if read.problem:
        raise InvalidInput(read.problem, "q")
    scope = finding.SearchScope(**asked.model_dump(exclude={"q"}, exclude_none=True))
    cursor = str(open_cursor(request, paging.cursor, 1)[0]) if paging.cursor else ""
    found = finding.find(read.terms, scope, cursor, paging.limit, viewer=user)
    kinds = finding.count_kinds(found, read.terms, scope, user)
    names, rows = SystemNameMasker(user), SearchText.objects.select_related("run").in_bulk(found.keys)
    places = of_passages(rows.values())
    return Hits(
        items=[_describe_hit(rows[key], places[key], names) for key in found.keys if key in rows],
        ranked=found.ranked,
        total=found.total,
        kinds=None if kinds is None else dict(kinds),
        next=seal(request, [found.cursor]) if found.cursor else None,
    )


def _describe_hit(row: SearchText, url: str, names: SystemNameMasker) -> HitOut:
    place = names.place(row.run) if row.run else {"model": row.model, "layer": row.layer, "unit": row.unit}
    return HitOut(run=row.run_id, url=url, kind=row.kind, seq=row.seq, text=row.text, **place)


class WordOut(Schema):
    """A glossary word and its meaning."""

    word: str
    meaning: str
    section: str


@router.get("/glossary", response=list[WordOut], summary="Read the glossary")
def read_glossary(request: HttpRequest) -> list[WordOut]:
    """Read the words that pages, API and commands share."""
    authorize(request)
    return [
        WordOut(word=entry.word, meaning=entry.meaning, section=section.title)
        for section in SECTIONS
        for entry in section.entries
    ]
