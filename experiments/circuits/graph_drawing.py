"""Draw the graph of a circuit: layers as columns, members as circles, effects as lines between them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from experiments.circuits.lists import CircuitColumn, MemberView
from experiments.display.plots.geometry import Text
from workers.record.circuit_graphs import CircuitGraphReport, GraphEdge
from workers.record.circuits import CircuitMember
from workers.record.estimates import Estimate

MAX_EDGES = 60
"""Maximum edges that are drawn, the strongest."""
WIDTHS = 5
"""Number of line widths."""
_COLUMN, _ROW, _RADIUS = 190, 78, 20
_LEFT, _TOP, _BOTTOM = 70, 52, 8
_LABEL, _TITLE = 22, 20
"""Maximum characters of a label, and of the name of a layer."""


@dataclass(frozen=True)
class DrawnNode:
    """A member as a circle."""

    place: int
    """Its index in the nodes of the report."""
    x: float
    y: float
    kind: str
    """"more", "less" or "unclear": its effect on the class."""
    name: str
    label: str
    words: str
    url: str
    picture: str
    """Key of its best image; "" for none."""

    @property
    def corner(self) -> tuple[float, float]:
        """Return the corner of its picture."""
        return self.x - _RADIUS, self.y - _RADIUS


@dataclass(frozen=True)
class DrawnEdge:
    """An effect as a line."""

    source: int
    target: int
    path: str
    kind: str
    width: int
    """1 to `WIDTHS`."""
    words: str


@dataclass(frozen=True)
class DrawnGraph:
    """The whole drawing, in pixels."""

    width: int
    height: int
    titles: Sequence[Text]
    nodes: Sequence[DrawnNode]
    edges: Sequence[DrawnEdge]
    left_out: int
    """Number of edges with an effect that are not drawn."""
    radius: int = _RADIUS


def write_effect(effect: Estimate) -> str:
    """Format a figure with its sign and 95 % interval, or why there is none."""
    if effect.value is None:
        return effect.why
    if effect.low is None or effect.high is None:
        return _write(effect.value)
    return f"{_write(effect.value)} [{_write(effect.low)}, {_write(effect.high)}]"


def _write(value: float) -> str:
    # Outside this range two decimals would show 0, or too many digits for the table.
    return "0" if not value else f"{value:+.2f}" if 0.005 <= abs(value) < 1e5 else f"{value:+.0e}"


def judge_effect(effect: Estimate) -> str:
    """Return "more" or "less" for an effect whose interval excludes 0; else "unclear"."""
    if effect.low is not None and effect.low > 0:
        return "more"
    return "less" if effect.high is not None and effect.high < 0 else "unclear"


def rank_edges(report: CircuitGraphReport) -> list[GraphEdge]:
    """Return the edges with an effect: first those whose interval excludes 0, strongest first."""
    # Results come from workers and may hold infinities, which neither sort nor draw.
    there = [each for each in report.edges if _is_number(each.effect.value) and each.effect.value]
    # False sorts before True. Places of nodes come last, so that the order of equals is stable.
    return sorted(there, key=lambda each: (not each.is_clear, -abs(each.effect.value or 0), each.source, each.target))


def _is_number(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def draw_graph(
    report: CircuitGraphReport, columns: Sequence[CircuitColumn], views: Mapping[CircuitMember, MemberView]
) -> DrawnGraph:
    """Draw the graph. `columns` give the places of members, `views` their look; members that left the circuit get
    their own columns."""
    # 1. A point for each node.
    placed = _place(report, columns)
    # How many members each column has.
    by_column: dict[int, int] = {}
    for column, _ in placed:
        by_column[column] = by_column.get(column, 0) + 1
    rows = max(by_column.values(), default=0)
    points = {}
    for at, (column, row) in enumerate(placed):
        # A column with fewer members is centred.
        gap = (rows - by_column[column]) * _ROW / 2
        points[at] = (_LEFT + column * _COLUMN, _TOP + gap + row * _ROW + _RADIUS)
    # 2. The strongest edges; their widths are relative to the strongest.
    ranked = rank_edges(report)
    shown = ranked[:MAX_EDGES]
    strongest = max((abs(each.effect.value or 0) for each in shown), default=1)
    names = [str(each.member) for each in report.nodes]
    return DrawnGraph(
        width=2 * _LEFT + max(by_column, default=0) * _COLUMN,
        height=_TOP + rows * _ROW + _BOTTOM,
        titles=_title_columns(report, placed),
        nodes=[_draw_node(report, at, points[at], views) for at in sorted(points, key=lambda at: placed[at])],
        # The strongest are drawn last, on top of the others.
        edges=[_draw_edge(each, points, strongest, names) for each in reversed(shown)],
        left_out=len(ranked) - len(shown),
    )


def _place(report: CircuitGraphReport, columns: Sequence[CircuitColumn]) -> list[tuple[int, int]]:
    """Return column and row of each node: in a column, those with the strongest positive effect on the class are at
    the top."""
    order = [(each.model, each.layer) for each in columns]
    found = list(dict.fromkeys((each.model, each.layer) for each in report.nodes))
    # Columns of the circuit in their order, then those of members that have left it. Empty columns are dropped.
    used = [place for place in order if place in found] + [place for place in found if place not in order]
    rows: dict[int, int] = {}
    placed = [(0, 0)] * len(report.nodes)

    def rank(at: int) -> tuple[int, float, int]:
        effect = report.nodes[at].effect.value
        node = report.nodes[at]
        return used.index((node.model, node.layer)), -effect if _is_number(effect) and effect else 0.0, at

    for at in sorted(range(len(report.nodes)), key=rank):
        # Nodes come in the order of rank, so each takes the next free row of its column.
        column = rank(at)[0]
        placed[at] = (column, rows.get(column, 0))
        rows[column] = rows.get(column, 0) + 1
    return placed


def _title_columns(report: CircuitGraphReport, placed: Sequence[tuple[int, int]]) -> list[Text]:
    titles: dict[int, tuple[str, str]] = {}
    for node, (column, _) in zip(report.nodes, placed, strict=True):
        titles[column] = (node.layer, node.model if node.member.is_latent else "")
    found = []
    for column, (layer, model) in sorted(titles.items()):
        x = _LEFT + column * _COLUMN
        found.append(Text(x, 14, _shorten(layer, _TITLE), kind="title"))
        if model:
            found.append(Text(x, 30, _shorten(model, _TITLE)))
    return found


def _draw_node(
    report: CircuitGraphReport,
    at: int,
    point: tuple[float, float],
    views: Mapping[CircuitMember, MemberView],
) -> DrawnNode:
    node = report.nodes[at]
    view = views.get(node.member)
    tile = view.tile if view else None
    label = (view.label if view else "") or (tile.name if tile else "")
    effect = write_effect(node.effect)
    return DrawnNode(
        place=at,
        x=point[0],
        y=point[1],
        kind=judge_effect(node.effect),
        name=f"{'latent' if node.member.is_latent else 'unit'} {node.unit}",
        label=_shorten(label, _LABEL),
        words=f"{node.member}{f', {label}' if label else ''}. Effect on the class: {effect}",
        url=tile.url if tile else "",
        picture=tile.pictures[0].masked if tile and tile.pictures else "",
    )


def _draw_edge(
    edge: GraphEdge, points: Mapping[int, tuple[float, float]], strongest: float, names: Sequence[str]
) -> DrawnEdge:
    (x1, y1), (x2, y2) = points[edge.source], points[edge.target]
    # Lines begin and end at the edge of the circles, not at their centres.
    x1, x2 = x1 + _RADIUS, x2 - _RADIUS
    # Control points half-way: the curve leaves and enters horizontally.
    bend = (x2 - x1) / 2
    kind = judge_effect(edge.effect)
    share = abs(edge.effect.value or 0) / strongest if strongest else 0
    words = f"{names[edge.source]} to {names[edge.target]}: {write_effect(edge.effect)}"
    path = f"M{x1:g} {y1:g}C{x1 + bend:g} {y1:g} {x2 - bend:g} {y2:g} {x2:g} {y2:g}"
    # Rounded up, so that the weakest edge has a width too.
    return DrawnEdge(edge.source, edge.target, path, kind, max(1, math.ceil(share * WIDTHS)), words)


def _shorten(text: str, most: int) -> str:
    # One character less, for the ellipsis.
    return text if len(text) <= most else f"{text[: most - 1]}…"
