"""Lists as tables of dense rows: their columns, which of them are shown, and what the address says of that."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class ListColumn:
    """One column of a list; `sort` is its name in the address, "" for one that cannot be sorted by. `kind` names how
    its cells look: "number", "few" for words that narrow screens do without, or "". What is `wide` stands on wide
    screens only."""

    name: str
    title: str
    sort: str = ""
    kind: str = ""
    wide: bool = False


@dataclass(frozen=True)
class ShownColumns:
    """All columns of a list; those shown now; those that `usual`ly are, which need not stand in the address. Those that
    somebody has `chosen` stand on every screen."""

    every: Sequence[ListColumn]
    shown: Sequence[ListColumn]
    usual: Sequence[str]
    chosen: bool = False

    @property
    def has(self) -> Mapping[str, ListColumn]:
        """Name -> column, of those that are shown."""
        return {each.name: each for each in self.shown}


def choose_columns(every: Sequence[ListColumn], usual: Sequence[str], asked: Collection[str]) -> ShownColumns:
    """Those that an address names, whatever the screen; the usual ones, and on wide screens more, where it names none
    that exist."""
    known = {each.name for each in every}
    if chosen := known & set(asked):
        shown = [replace(each, wide=False) for each in every if each.name in chosen]
        return ShownColumns(every, shown, usual, chosen=True)
    return ShownColumns(every, [each for each in every if each.name in usual or each.wide], usual)
