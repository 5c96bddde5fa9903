"""Declare the filters of a list, and filter it by its address.

An invalid filter is left out, with a sentence about it; the others apply.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Q, QuerySet

from experiments.core.errors import InvalidFilters, InvalidInput
from experiments.core.params import ROW_DIGITS, clean_text, find_swapped_days, parse_day, parse_day_end, parse_number
from experiments.core.system_names import SystemNameMasker

Condition = Callable[[str], Q]
Choice = tuple[str, str]
Choices = Callable[[Mapping[str, str], SystemNameMasker], Iterable[Choice]]
Rows = Callable[[SystemNameMasker], QuerySet[Any]]
WORDS_CHARS = 200


@dataclass(frozen=True)
class Filter:
    """A filter of a list, declared once for its page, the API and exports.

    `condition` turns the text of the address into a query, or raises InvalidInput. None: the list combines several.
    """

    name: str
    label: str
    condition: Condition | None
    accepts: Any
    """Type of the API's parameter."""
    description: str = ""
    """What the API's reference says of it."""
    choices: Choices | Sequence[Choice] | None = None
    """What the page offers, by the filters of the address; None for a typed field."""
    blank: str = "Any"
    hint: str = ""
    input: str = "text"
    """Kind of a typed field: text, numeric or date."""
    needs: str = ""
    """Name of the filter that must be chosen before."""
    in_fields: bool = True
    """False if the page's template draws it apart, or not at all."""


def choice_filter(name: str, label: str, accepts: Any, choices: Sequence[Choice]) -> Filter:
    """Return the filter by a column of its name that holds one of these choices."""
    return Filter(name, label, equal_choice(name, name, choices), accepts, choices=choices)


def index_filters(*filters: Filter) -> Mapping[str, Filter]:
    """Return the filters of a list by name."""
    return {each.name: each for each in filters}


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
    input: str = "text"
    hint: str = ""


def list_fields(filters: Mapping[str, Filter], values: Mapping[str, str], names: SystemNameMasker) -> list[ListFilter]:
    """Return the fields that a page draws, with their choices for these valid filters."""
    return [build_field(each, filters, values, names) for each in filters.values() if each.in_fields]


def build_field(
    row: Filter, filters: Mapping[str, Filter], values: Mapping[str, str], names: SystemNameMasker
) -> ListFilter:
    """Return the field of a filter. It offers the chosen value even if nothing has it."""
    choices = offer_choices(row, values, names)
    clears = next((each.name for each in filters.values() if each.needs == row.name), "")
    idle = f"Choose a {row.needs} first" if row.needs and row.needs not in values else ""
    return ListFilter(row.name, row.label, choices, row.blank, clears, idle, row.input, row.hint)


def offer_choices(row: Filter, values: Mapping[str, str], names: SystemNameMasker) -> list[Choice] | None:
    """Return the choices of a filter, with the chosen one even if nothing has it; None for a typed field."""
    if row.choices is None:
        return None
    choices = list(row.choices(values, names) if callable(row.choices) else row.choices)
    chosen = values.get(row.name, "")
    # Without it, the browser would show "Any" although the list is filtered.
    return choices if not chosen or chosen in dict(choices) else [*choices, (chosen, chosen)]


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


def narrow_down(
    rows: QuerySet[Any],
    params: Mapping[str, str],
    filters: Mapping[str, Filter],
    instead: Mapping[str, Condition] | None = None,
) -> Narrowed:
    """Return the rows that meet every filter for which the address has a text. `instead` holds conditions in place of
    the declared ones. A condition that raises InvalidInput is left out, and so is `until` before `since`."""
    # Later ones win: `instead` replaces declared conditions.
    conditions = list_conditions(filters) | {**(instead or {})}
    given = {name: text for name in conditions if (text := clean_text(params.get(name, "")).strip())}
    values, problems = {}, {}
    if swapped := find_swapped_days(given.get("since", ""), given.get("until", "")):
        problems["until"] = swapped
        del given["until"]
    for name, text in given.items():
        try:
            # One call for each filter: each may join its own related row.
            rows = rows.filter(conditions[name](text))
            values[name] = text
        except InvalidInput as error:
            problems[name] = str(error)
    return Narrowed(rows, values, problems)


def list_conditions(filters: Mapping[str, Filter]) -> dict[str, Condition]:
    """Return the condition of each filter by name."""
    return {name: each.condition for name, each in filters.items() if each.condition}


def sort_rows(found: Narrowed, asked: str, sorts: Mapping[str, Any], usual: str) -> Narrowed:
    """Sort by the column that the address names, in reverse with a minus before it; ties by newest first. An
    unknown column is replaced by `usual`."""
    problems = dict(found.problems)
    if asked and asked.removeprefix("-") not in sorts:
        problems["sort"] = f"There is no column “{asked[:40]}” to sort by."
        asked = ""
    sort = asked or usual
    column = sorts[sort.removeprefix("-")]
    # Unknown values come last in both directions; databases disagree about their place.
    turned = column.desc(nulls_last=True) if sort.startswith("-") else column.asc(nulls_last=True)
    return Narrowed(found.rows.order_by(turned, "-pk"), found.values, problems, sort)


def require_known(noun: str, text: str, known: Collection[str]) -> str:
    """Return the text if it is known. Raises InvalidInput."""
    if text not in known:
        raise InvalidInput(f"There is no {noun} “{text[:40]}”. Choose one of: {', '.join(known)}.")
    return text


def _offer_each(names: Iterable[str | None]) -> list[Choice]:
    """Return names as choices of a field, each once and in their order."""
    return [(each, each) for each in sorted({name for name in names if name})]


def offer_values(rows: Rows, column: str, model: str = "") -> Choices:
    """Return a function that offers the values of a column; with the column `model`, those of the chosen model."""

    def offer(values: Mapping[str, str], names: SystemNameMasker) -> list[Choice]:
        found = rows(names).filter(**{model: values.get("model", "")}) if model else rows(names)
        return _offer_each(found.order_by().values_list(column, flat=True).distinct())

    return offer


def equal(column: str) -> Condition:
    """Return a condition for rows with this text in a column."""
    return lambda text: Q(**{column: text})


def equal_choice(column: str, noun: str, choices: Iterable[Choice]) -> Condition:
    """Return a condition for rows with one of these choices. It raises InvalidInput for another text."""
    known = dict(choices)
    return lambda text: Q(**{column: require_known(noun, text, known)})


def equal_number(column: str, noun: str, digits: int = ROW_DIGITS) -> Condition:
    """Return a condition for rows with a whole number. It raises InvalidInput for another text."""

    def condition(text: str) -> Q:
        if (number := parse_number(text, digits)) is None:
            raise InvalidInput(f"“{text[:40]}” is no {noun}: write its number, from 0.")
        return Q(**{column: number})

    return condition


def since_day(column: str) -> Condition:
    """Return a condition for rows of this day or later. It raises InvalidInput."""
    return lambda text: Q(**{f"{column}__gte": parse_day(text)})


def until_day(column: str) -> Condition:
    """Return a condition for rows of this day or earlier. It raises InvalidInput."""
    # The end is the start of the next day: a bound at 23:59 would lose its last minute.
    return lambda text: Q(**{f"{column}__lt": parse_day_end(text)})


def contain_words(column: str) -> Condition:
    """Return a condition for rows with all words in this column. It raises InvalidInput for too many words."""

    def condition(text: str) -> Q:
        if len(text) > WORDS_CHARS:
            raise InvalidInput(f"These words have {len(text)} characters; at most {WORDS_CHARS} are looked for.")
        # Each word for itself: their order in the text does not matter.
        found = Q()
        for word in text.split():
            found &= Q(**{f"{column}__icontains": word})
        return found

    return condition
