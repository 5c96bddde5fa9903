"""Draw a matrix of numbers, with cells coloured by value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from experiments.display.plots.axes import Axis
from experiments.display.plots.geometry import Plot, PlotShape, PlotTable, Text

CELL, HEIGHT, NAME, NAME_CHARS, COLUMN_CHARS = 64, 34, 150, 22, 10
"""Width and height of a cell; room for a name, and maximum characters of a name at the left and above."""
SHADES = 6
"""Steps of colour: shade-0 to shade-5."""


@dataclass(frozen=True)
class MatrixCell:
    """A cell: `text` is drawn in it, `words` have the full description. `value` is in [-1, 1]; None has no colour."""

    value: float | None
    text: str
    words: str
    link: str = ""


def draw_matrix(
    row_names: Sequence[str],
    column_names: Sequence[str],
    cells: Sequence[Sequence[MatrixCell | None]],
    label: str,
    x_title: str,
    y_title: str,
) -> Plot:
    """Draw rows and columns in the given order; None leaves a cell empty."""
    columns, rows = max(len(column_names), 1), max(len(row_names), 1)
    shape = PlotShape(NAME + CELL * columns + 10, 48 + HEIGHT * rows + 8, NAME, 10, 48, 8)
    x, y = Axis(0, columns, shape.left, shape.edge), Axis(0, rows, shape.top, shape.floor)
    plot = Plot(shape, x, y, label, "matrix")
    plot.texts.append(Text(shape.left, 8, x_title, "start", "title"))
    plot.texts.append(Text(shape.left - 10, 32, y_title, "end", "title"))
    for place, name in enumerate(column_names):
        plot.texts.append(Text(x.at(place + 0.5), 32, _cut(name, COLUMN_CHARS), "middle", "name"))
    for row, name in enumerate(row_names):
        plot.texts.append(Text(shape.left - 10, y.at(row + 0.5), _cut(name, NAME_CHARS), "end", "name"))
        for column, cell in enumerate(cells[row]):
            if cell:
                kind = "shade-none" if cell.value is None else f"shade-{_shade(cell.value)}"
                plot.add_bar(column + 0.02, column + 0.98, row + 0.97, row + 0.03, kind, cell.words, cell.link)
                # `add_bar` knows no text, and marks are frozen.
                plot.bars[-1] = replace(plot.bars[-1], text=cell.text)
    texts = [(name, *(cell.text if cell else "" for cell in cells[row])) for row, name in enumerate(row_names)]
    plot.table = PlotTable((y_title or "Row", *column_names), texts)
    return plot


def _shade(value: float) -> str:
    step = min(int(abs(value) * SHADES), SHADES - 1)
    # Around zero both signs share one shade.
    return f"below-{step}" if value < 0 and step else str(step)


def _cut(name: str, most: int) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"
