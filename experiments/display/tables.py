"""Show lists as tables: their columns, which are shown, and how the address says so."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class ListColumn:
    """One column of a list.

    `sort` is its name in the address, "" if it cannot be sorted by. `kind` is the style of its cells: "number",
    "few" for text that narrow screens leave out, or "". A `wide` column is shown on wide screens only.
    """

    name: str
    title: str
    sort: str = ""
    kind: str = ""
    wide: bool = False


@dataclass(frozen=True)
class ShownColumns:
    """All columns of a list; those shown; and the `usual` ones, which the address need not name. Columns that the
    user has `chosen` appear on every screen."""

    every: Sequence[ListColumn]
    shown: Sequence[ListColumn]
    usual: Sequence[str]
    chosen: bool = False

    @property
    def has(self) -> Mapping[str, ListColumn]:
        """Return name -> column for the columns that are shown."""
        return {each.name: each for each in self.shown}


def choose_columns(every: Sequence[ListColumn], usual: Sequence[str], asked: Collection[str]) -> ShownColumns:
    """Return the columns that an address names, for any screen; if it names none that exist, the usual ones, and on
    wide screens more."""
    known = {each.name for each in every}
    if chosen := known & set(asked):
        shown = [replace(each, wide=False) for each in every if each.name in chosen]
        return ShownColumns(every, shown, usual, chosen=True)
    return ShownColumns(every, [each for each in every if each.name in usual or each.wide], usual)
