"""Show the samples of a function as a table, beside each hypothesis' predictions: a tab of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.core.paging import Page
from experiments.display.functions.plots import plot_residuals, plot_samples
from experiments.display.functions.samples import FunctionEvidence, LoggedSample, read_function
from experiments.models import Run

PER_PAGE = 100


@dataclass(frozen=True)
class SampleRow:
    """A sample. `said` has each hypothesis' prediction, "" for none, and true if it is another text than the output."""

    logged: LoggedSample
    said: Sequence[tuple[str, bool]]


def read_samples(run: Run, params: Mapping[str, str]) -> dict[str, Any]:
    """Return the content of the tab: plots of numbers, the table newest first, and how right the answer is."""
    found = read_function(run)
    page = Page.of(params, len(found.samples), PER_PAGE, "tab")
    shown = found.samples[::-1][page.start : page.end]
    return {
        "page": page,
        "found": found,
        "rows": list_rows(found, shown),
        "plot": plot_samples(found) if found.is_numeric else None,
        "residuals": plot_residuals(found) if found.is_numeric else None,
    }


def list_rows(found: FunctionEvidence, shown: Sequence[LoggedSample]) -> list[SampleRow]:
    """Return a row for each sample, with a cell for each hypothesis."""
    return [SampleRow(each, [_compare(each, name, found.is_numeric) for name in found.names]) for each in shown]


def _compare(logged: LoggedSample, name: str, is_numeric: bool) -> tuple[str, bool]:
    # Predicted numbers always differ in their last digit, so only texts are marked.
    said = logged.sample.predictions.get(name, "")
    return said, bool(said) and not is_numeric and said != logged.sample.output
