"""Survey a folder of published functions: how many are listed, present and runnable, and why the others are not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from workers.functions.published.layout import CATEGORIES
from workers.functions.published.model import PublishedFunctions
from workers.protocols import Progress

_FIRST = 5
"""Functions that are named for a reason."""


def survey_functions(model: PublishedFunctions, progress: Progress) -> list[dict[str, Any]]:
    """Return a row for each family. Functions of numbers and texts are tried out, so a whole benchmark takes minutes;
    what `progress` raises stops it."""
    categories = model.benchmark.categories
    # Progress counts over all families, so the total comes first
    total, done, rows = sum(len(each.functions) for each in categories.values()), 0, []
    for family, folder in CATEGORIES.items():
        row: dict[str, Any] = {"family": family, "folder": folder, "is_here": family in categories}
        if category := categories.get(family):
            reasons: dict[str, list[int]] = {}
            defects: dict[str, list[int]] = {}
            for number in sorted(category.functions):
                progress(f"Trying {family} functions", done, total)
                done += 1
                trouble = model.find_trouble(family, number)
                if trouble:
                    reasons.setdefault(trouble, []).append(number)
                for defect in [] if trouble else model.list_defects(family, number):
                    defects.setdefault(defect, []).append(number)
            here = len(category.functions)
            row |= {
                "listed": len(category.rows.keys() | category.odd.keys()),
                "here": here,
                "runnable": here - sum(map(len, reasons.values())),
                "unreadable": category.unreadable,
                "reasons": _count(reasons),
                "defects": _count(defects),
                "troubles": list(category.troubles),
            }
        rows.append(row)
    progress("Trying functions", total, total)
    return rows


def _count(found: Mapping[str, Sequence[int]]) -> list[dict[str, Any]]:
    """Return the rows, most frequent first, with the folders of the first few."""
    ordered = sorted(found.items(), key=lambda each: -len(each[1]))
    return [
        {"what": what, "count": len(numbers), "first": [f"f{number:05d}" for number in numbers[:_FIRST]]}
        for what, numbers in ordered
    ]
