"""people.json as typed structs, decoded and bounded before anything is saved. Raises `ExchangeError` naming the
field."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from experiments.exchange import run_decoding
from experiments.exchange.decoding import BundleStruct, Count, decode
from experiments.exchange.opinions import SCORES, Said, Tagged
from experiments.exchange.safe_zip import ExchangeError
from experiments.models.comment import NEARBY_CHARS, NEEDS, QUOTE_CHARS, TEXT_CHARS
from experiments.models.review import LABEL_CHARS, NOTE_CHARS, ReviewVerdict

MAX_THREADS, MAX_COMMENTS, MAX_WORDINGS, MAX_MENTIONS = 2_000, 500, 100, 20
MAX_SAID = 10_000
"""Maximum number of comments in all threads: search stores a row for each."""
MAX_REVIEWS, MAX_TAGGED = 1_000, 10_000
NAME_CHARS = 310

_Name = Annotated[str, Meta(max_length=NAME_CHARS)]
_Nearby = Annotated[str, Meta(max_length=NEARBY_CHARS)]
_Text = Annotated[str, Meta(max_length=TEXT_CHARS)]
_Label = Annotated[str, Meta(max_length=LABEL_CHARS)]
_Note = Annotated[str, Meta(max_length=NOTE_CHARS)]
_Score = Annotated[int, Meta(ge=1, le=5)]
_Scores: Any = msgspec.defstruct("_Scores", [(name, _Score | None, None) for name in SCORES], frozen=True)


class _Wording(BundleStruct, frozen=True, kw_only=True):
    text: _Text
    replaced: str


class _Comment(BundleStruct, frozen=True, kw_only=True):
    author: _Name
    text: _Text
    created: str
    edited: str | None = None
    deleted: str | None = None
    mentions: Annotated[list[_Name], Meta(max_length=MAX_MENTIONS)]
    wordings: Annotated[list[_Wording], Meta(max_length=MAX_WORDINGS)]


class _Thread(BundleStruct, frozen=True, kw_only=True):
    on: str
    seq: Count | None = None
    experiment: Count | None = None
    position: Count | None = None
    quote: Annotated[str, Meta(max_length=QUOTE_CHARS)]
    before: _Nearby
    after: _Nearby
    place: Count
    created: str
    resolved: str | None = None
    resolved_by: _Name = ""
    comments: Annotated[list[_Comment], Meta(max_length=MAX_COMMENTS)]

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_known("on", self.on, NEEDS)


class _Verdict(BundleStruct, frozen=True, kw_only=True):
    queue: _Name
    verdict: str
    corrected_label: _Label

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_known("verdict", self.verdict, ReviewVerdict.values)


class _Review(_Verdict, frozen=True, kw_only=True):
    reviewer: _Name
    blind: bool = False
    additional: bool = False
    scores: _Scores
    note: _Note
    submitted: str | None = None


class _Final(_Verdict, frozen=True, kw_only=True):
    adjudicator: _Name
    reason: _Note
    created: str


class _People(BundleStruct, frozen=True, kw_only=True):
    threads: Annotated[list[_Thread], Meta(max_length=MAX_THREADS)] = []
    reviews: Annotated[list[_Review], Meta(max_length=MAX_REVIEWS)] = []
    finals: Annotated[list[_Final], Meta(max_length=MAX_REVIEWS)] = []
    tags: Annotated[list[Tagged], Meta(max_length=MAX_TAGGED)] = []


def decode_opinions(data: Mapping[str, Any]) -> Said:
    """Decode people.json within its limits. Raises ExchangeError."""
    people = decode(data, _People, "people.json")
    tagged = [_clean_tags(each) for each in people.tags]
    if (count := sum(len(each.tags) for each in tagged)) > MAX_TAGGED:
        raise ExchangeError(
            f"people.json puts {count:,} tags to experiments and images, at most {MAX_TAGGED:,} are possible."
        )
    if (count := sum(len(each.comments) for each in people.threads)) > MAX_SAID:
        raise ExchangeError(f"people.json holds {count:,} comments, at most {MAX_SAID:,} are possible.")
    threads, reviews, finals = map(msgspec.to_builtins, (people.threads, people.reviews, people.finals))
    return Said(threads, reviews, finals, tagged)


def _clean_tags(given: Tagged) -> Tagged:
    return replace(given, tags=run_decoding.tags(given.tags, "people.json"))


def _require_known(name: str, value: str, known: Iterable[str]) -> None:
    """Raise ValueError for another value."""
    if value not in known:
        raise ValueError(f"{name} is {value[:60]!r}: choose from {', '.join(known)}")
