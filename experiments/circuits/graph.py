"""Show the graph of a circuit on its page and in the API: the form, progress and results.

`workers.circuits.graph` measures it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from experiments.circuits.forms import MeasureGraph
from experiments.circuits.graph_actions import explain_unmeasurable, find_class_layer
from experiments.circuits.graph_drawing import DrawnGraph, draw_graph, judge_effect, rank_edges, write_effect
from experiments.circuits.lists import MemberView, group_by_layer
from experiments.core import notify
from experiments.core.params import parse_key
from experiments.models import Circuit, CircuitGraph, Dataset
from workers.record.circuit_graphs import CircuitGraphReport, GraphNode, read_circuit_graph
from workers.record.estimates import Estimate

MAX_LINKS = 10
"""Maximum graphs that a circuit's page links to, the newest."""
SECTION = "graph"
"""The part of the page that waits for a worker; htmx requests it by this id."""


@dataclass(frozen=True)
class NodeLine:
    """A member in the table."""

    name: str
    url: str
    label: str
    effect: str
    kind: str
    is_constant: bool


@dataclass(frozen=True)
class EdgeLine:
    """A row of the table: an effect of one member on another."""

    source: str
    target: str
    effect: str
    kind: str


@dataclass(frozen=True)
class CircuitGraphView:
    """What the page shows of a result."""

    report: CircuitGraphReport
    drawing: DrawnGraph
    nodes: Sequence[NodeLine]
    edges: Sequence[EdgeLine]
    figures: Sequence[tuple[str, str]]
    """The effect of holding all members, or all others: name and words."""
    class_name: str
    without_effect: int
    """Number of edges that are 0 in every image."""


def list_graphs(circuit: Circuit) -> QuerySet[CircuitGraph]:
    """Return graphs, newest first."""
    return CircuitGraph.objects.filter(circuit=circuit).select_related("circuit__base", "dataset", "job")


def read_section(
    circuit: Circuit, members: Sequence[MemberView], asked: str, *, may_ask: bool, form: MeasureGraph
) -> dict[str, Any]:
    """Return the content of the section; `asked` is the key of a graph."""
    rows = list(list_graphs(circuit)[:MAX_LINKS])
    # The requested graph, else the newest.
    shown = next((each for each in rows if each.pk == parse_key(asked)), None) or next(iter(rows), None)
    why_not = explain_unmeasurable(circuit, [each.row for each in members])
    datasets = list(Dataset.objects.filter(available=True))
    classes = find_class_layer(circuit)
    return {
        "rows": rows,
        "shown": shown,
        "is_of_now": shown is not None and is_of_now(shown, members),
        "view": _view_graph(shown, members) if shown else None,
        "progress": notify.read_progress(shown.job) if shown else None,
        "why_not": why_not,
        "may_ask": may_ask and not why_not and bool(datasets),
        "may_stop": may_ask,
        "form": form.offer(circuit, datasets),
        "has_classes": classes is not None,
        "class_names": list(classes.names) if classes else [],
    }


def is_of_now(row: CircuitGraph, members: Sequence[MemberView]) -> bool:
    """True if members, weights and images are still those that were measured."""
    # The key is a digest of the whole question: any difference changes it.
    return row.key == CircuitGraph.key_of(row.circuit, [each.row for each in members], row.dataset, row.target)


def read_report(row: CircuitGraph) -> CircuitGraphReport | None:
    """Return the report; None if it is not measured yet, or its data are invalid."""
    if row.measured is None:
        return None
    # The result comes from a worker: an invalid one must not break the circuit's page.
    stored: Any = row.result
    try:
        return read_circuit_graph(stored)
    except (ValueError, OverflowError):
        return None


def _view_graph(row: CircuitGraph, members: Sequence[MemberView]) -> CircuitGraphView | None:
    """Return the measured graph, drawn; None as in `read_report`."""
    report = read_report(row)
    if report is None:
        return None
    views = {each.member: each for each in members}
    names = [_name_member(each, row.circuit.network) for each in report.nodes]
    ranked = rank_edges(report)
    return CircuitGraphView(
        report=report,
        drawing=draw_graph(report, group_by_layer(row.circuit, members), views),
        nodes=[_write_node(name, each, views.get(each.member)) for name, each in zip(names, report.nodes, strict=True)],
        edges=[
            EdgeLine(names[each.source], names[each.target], write_effect(each.effect), judge_effect(each.effect))
            for each in ranked
        ],
        figures=_write_figures(report),
        class_name=name_class(report),
        # The ranking leaves out edges without an effect.
        without_effect=len(report.edges) - len(ranked),
    )


def name_class(report: CircuitGraphReport) -> str:
    """Return the name of the measured class; "" for none."""
    return "" if report.class_number is None else report.class_name or f"class {report.class_number}"


def _name_member(node: GraphNode, network: str) -> str:
    """Return the name of a member without the network, which all share."""
    return f"{node.layer} / unit {node.unit}" if node.model == network else f"{node.model} / {node.layer} / {node.unit}"


def _write_node(name: str, node: GraphNode, view: MemberView | None) -> NodeLine:
    tile = view.tile if view else None
    label = view.label if view else ""
    effect, kind = write_effect(node.effect), judge_effect(node.effect)
    return NodeLine(name, tile.url if tile else "", label, effect, kind, node.is_constant)


def _write_figures(report: CircuitGraphReport) -> list[tuple[str, str]]:
    if report.class_number is None:
        return []
    shares = [("Faithfulness", report.faithfulness), ("Completeness", report.completeness)]
    return [
        ("Logit", _write_plain(report.logit)),
        ("Fall with all members held", write_effect(report.all_off)),
        *((name, _write_plain(each)) for name, each in shares),
    ]


def _write_plain(figure: Estimate) -> str:
    """Format a figure without a plus sign."""
    if figure.value is None:
        return figure.why
    if figure.low is None or figure.high is None:
        return f"{figure.value:.2f}" + (f" ({figure.why})" if figure.why else "")
    return f"{figure.value:.2f} [{figure.low:.2f}, {figure.high:.2f}]"
