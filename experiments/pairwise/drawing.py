"""Plot of preferences: how often one source was chosen over another, with its interval."""

from __future__ import annotations

from experiments.display.plots import IntervalRow, Plot, draw_intervals
from experiments.pairwise.results import Preferences

HALF = 0.5
"""The share that chance gives."""


def draw_preferences(table: Preferences) -> Plot | None:
    """Plot each pair of sources once, the more preferred one named first. None if no vote decides."""
    rows = []
    for place, (_, cells) in enumerate(table.rows):
        # Only above the diagonal: the other half says the same the other way round.
        for cell in cells[place + 1 :]:
            if cell is None or cell.preferred.value is None:
                continue
            found = cell.preferred
            value, low, high = found.value or 0.0, found.low, found.high
            if value >= HALF or low is None or high is None:
                rows.append(IntervalRow(f"{cell.row} over {cell.column}", value, low, high, found.n))
            else:
                # Turned round: the upper bound becomes the lower one.
                rows.append(IntervalRow(f"{cell.column} over {cell.row}", 1 - value, 1 - high, 1 - low, found.n))
    label = "How often one label was preferred to the other; the line: one half, what chance gives"
    return draw_intervals(rows, label, "Share of the votes that decide", level=HALF)
