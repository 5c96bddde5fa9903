"""Filter a list by its address: the fields, and the condition of each.

An invalid filter is left out, with a sentence about it; the others apply.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Q, QuerySet

from experiments.core.errors import InvalidFilters, InvalidInput

Condition = Callable[[str], Q]
WORDS_CHARS = 200


@dataclass(frozen=True)
class ListFilter:
    """A field of a list, typed unless it has `choices`. Changing it `clears` the field of that name."""

    name: str
    title: str
    choices: Sequence[tuple[str, str]] | None = None
    blank: str = "Any"
    clears: str = ""
    idle: str = ""
    """Why there is nothing to choose."""


@dataclass(frozen=True)
class Narrowed:
    """The filtered rows. `values` holds the valid filters, `problems` a sentence for each of the others."""

    rows: QuerySet[Any]
    values: dict[str, str]
    problems: dict[str, str] = field(default_factory=dict)
    sort: str = ""

    def require_sense(self) -> QuerySet[Any]:
        """Return the rows, for callers that cannot show a sentence. Raises InvalidFilters."""
        if self.problems:
            raise InvalidFilters(self.problems)
        return self.rows


def narrow_down(rows: QuerySet[Any], params: Mapping[str, str], conditions: Mapping[str, Condition]) -> Narrowed:
    """Return the rows that meet every condition for which the address has a text. A condition that raises
    InvalidInput is left out."""
    found, problems = Narrowed(rows, {}), {}
    for name, condition in conditions.items():
        if not (text := params.get(name, "").strip()):
            continue
        try:
            rows = rows.filter(condition(text))
            found.values[name] = text
        except InvalidInput as error:
            problems[name] = str(error)
    return Narrowed(rows, found.values, problems)


def sort_rows(found: Narrowed, asked: str, sorts: Mapping[str, Any], usual: str) -> Narrowed:
    """Sort by the column that the address names, in reverse with a minus before it; ties by newest first. An
    unknown column is replaced by `usual`."""
    problems = dict(found.problems)
    if asked and asked.removeprefix("-") not in sorts:
        problems["sort"] = f"There is no column “{asked[:40]}” to sort by."
        asked = ""
    sort = asked or usual
    column = sorts[sort.removeprefix("-")]
    turned = column.desc(nulls_last=True) if sort.startswith("-") else column.asc(nulls_last=True)
    return Narrowed(found.rows.order_by(turned, "-pk"), found.values, problems, sort)


def require_known(noun: str, text: str, known: Collection[str]) -> str:
    """Return the text if it is known. Raises InvalidInput."""
    if text not in known:
        raise InvalidInput(f"There is no {noun} “{text[:40]}”. Choose one of: {', '.join(known)}.")
    return text


def offer_each(names: Iterable[str | None]) -> list[tuple[str, str]]:
    """Return names as choices of a field, each once and in their order."""
    return [(each, each) for each in sorted({name for name in names if name})]


def contain_words(column: str) -> Condition:
    """Return a condition for rows with all words in this column. It raises InvalidInput for too many words."""

    def condition(text: str) -> Q:
        if len(text) > WORDS_CHARS:
            raise InvalidInput(f"These words have {len(text)} characters; at most {WORDS_CHARS} are looked for.")
        found = Q()
        for word in text.split():
            found &= Q(**{f"{column}__icontains": word})
        return found

    return condition
