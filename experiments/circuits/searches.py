"""Searches for circuits: the question, and the result as curves and as members."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from experiments.circuits.lists import MEMBER_PICTURES
from experiments.core.compatibility import dataset_for, explain_unchangeable
from experiments.core.errors import InvalidInput
from experiments.core.params import clean_line
from experiments.core.system_names import SystemNameMasker
from experiments.display.plots.curves import PlotCurve, draw_curves
from experiments.display.plots.dots import PlotValue
from experiments.display.plots.geometry import Plot
from experiments.models import CircuitSearch, Dataset, Layer
from experiments.units.tiles import UnitTile, read_tiles
from workers.record.circuits import METHODS, MIN_IMAGES, CircuitCurve, CircuitReport, FoundMember, read_circuit_report
from workers.record.estimates import Estimate

SEARCHED_KINDS = frozenset({"conv", "mlp", "latent"})
"""Kinds of layers in which circuits are searched: those before the outputs."""
MAX_IMAGES = 500
MAX_SEEDS = 20
MAX_TARGET = 200
# The browser's list of suggestions; other names can still be typed.
_MAX_CLASSES = 300
_KEPT = 10


@dataclass(frozen=True)
class CircuitQuestion:
    """The units or latents of a layer that a class depends on, over a dataset."""

    target: str
    """Name or number of the class."""
    images: int = 100
    seeds: int = 3


@dataclass(frozen=True)
class FoundMemberView:
    """A member of the result; `tile` is None if the catalogue has no such unit."""

    found: FoundMember
    tile: UnitTile | None


@dataclass(frozen=True)
class DrawnSearch:
    """What the page shows of a result."""

    report: CircuitReport
    plots: Sequence[Plot]
    methods: Sequence[str]
    rows: Sequence[tuple[str, Sequence[str], Sequence[str]]]
    """Size, then faithfulness and completeness by method, as text."""
    members: Sequence[FoundMemberView]
    """Members with an effect."""

    @property
    def kept(self) -> int:
        """Return how many members the form offers to keep: those with a hundredth of the strongest effect, at most
        `_KEPT`."""
        # Members are sorted, so the first effect is the strongest.
        effects = [abs(each.found.effect) for each in self.members]
        return min(_KEPT, sum(each >= 0.01 * effects[0] for each in effects)) if effects else 0


def check_question(layer: Layer, question: CircuitQuestion) -> CircuitQuestion:
    """Return the question with its class as one line. Raises InvalidInput, with the field."""
    target = clean_line(question.target)
    if not target or len(target) > MAX_TARGET:
        raise InvalidInput(
            f"Name the class in 1 to {MAX_TARGET} characters, such as car, or give its number.", "target"
        )
    if layer.kind not in SEARCHED_KINDS:
        raise InvalidInput(
            f"{layer.name} of {layer.model.name} has {layer.plural}: no class rests on them. Choose a layer before the "
            "outputs, or the latents of one.",
            "layer",
        )
    if why := explain_unchangeable(layer):
        raise InvalidInput(f"No circuit can be found in {layer.name} of {layer.model.name}. {why}", "layer")
    known = _find_class_names(layer)
    # `isascii`, because `isdigit` is also true of digits that `int` refuses, such as ².
    if known and target not in known and not (target.isascii() and target.isdigit() and int(target) < len(known)):
        raise InvalidInput(f"{layer.model.name} has no class “{target}”. Choose one such as {known[0]}.", "target")
    for name, value, most in (("images", question.images, MAX_IMAGES), ("seeds", question.seeds, MAX_SEEDS)):
        # Each seed halves the images, so fewer would leave halves too small to measure.
        least = MIN_IMAGES if name == "images" else 1
        if not least <= value <= most:
            raise InvalidInput(f"{value:,} {name} are out of range. Give a number from {least} to {most}.", name)
    return CircuitQuestion(target, question.images, question.seeds)


def _find_class_names(layer: Layer) -> list[str]:
    """Return the classes of the network that a layer is part of, or on top of; none if their names are unknown."""
    # Latents have no classes of their own.
    network = layer.model.base or layer.model.name
    row = Layer.objects.filter(model__name=network, kind="logit").order_by("-position").first()
    # Names are JSON from a worker, so their shape is checked.
    names: Any = row.names if row else []
    return [str(each) for each in names] if isinstance(names, list) else []


def list_layers() -> list[Layer]:
    """Return the layers in which circuits can be searched, by model."""
    # Names of thousands of units are not needed for a list of layers.
    rows = Layer.objects.filter(kind__in=SEARCHED_KINDS, model__available=True).select_related("model").defer("names")
    return list(rows.order_by("model__name", "position"))


def list_classes() -> list[str]:
    """Return class names to choose from, of all models: the form offers them before a layer is chosen."""
    rows = Layer.objects.filter(kind="logit", model__available=True).values_list("names", flat=True)
    # A dictionary drops repeated names and keeps the order.
    names = {str(each): None for some in rows if isinstance(some, list) for each in some}
    return list(names)[:_MAX_CLASSES]


def find_dataset(layer: Layer, key: str) -> Dataset:
    """Return the named dataset, else the one that suits the model. Raises InvalidInput."""
    wanted = key or dataset_for(layer.model.name)
    row = Dataset.objects.filter(key=wanted, available=True).first()
    if row is None:
        raise InvalidInput(
            f"No worker can use a dataset {wanted[:200]!r}. List the datasets for its remedy.", "dataset"
        )
    return row


def list_searches() -> QuerySet[CircuitSearch]:
    """Return searches, newest first."""
    return CircuitSearch.objects.select_related("layer__model", "dataset", "job").defer("layer__names")


def read_found(row: CircuitSearch) -> CircuitReport | None:
    """Return the report; None if it is not measured yet, or its data are invalid."""
    if row.measured is None:
        return None
    try:
        return read_circuit_report(row.result)
    except (ValueError, OverflowError):
        return None


def draw_search(row: CircuitSearch, names: SystemNameMasker) -> DrawnSearch | None:
    """Return the result for the page; None as in `read_found`."""
    report = read_found(row)
    if report is None:
        return None
    # Units without any effect are no members worth showing.
    curves, members = report.curves, [each for each in report.members if each.effect]
    tiles = read_tiles([(row.layer, each.unit) for each in members], names, MEMBER_PICTURES)
    by_unit = {tile.number: tile for tile in tiles}
    sizes = curves[0].sizes if curves else ()
    return DrawnSearch(
        report=report,
        plots=[_draw_curves(report, "faithfulness"), _draw_curves(report, "completeness")] if curves else [],
        methods=[METHODS.get(each.method, each.method) for each in curves],
        rows=[
            (
                f"{size:,} ({_share(report, size):.0f} %)",
                [_write(_get_estimate(each.faithfulness, at)) for each in curves],
                [_write(_get_estimate(each.completeness, at)) for each in curves],
            )
            for at, size in enumerate(sizes)
        ],
        members=[FoundMemberView(each, by_unit.get(each.unit)) for each in members],
    )


def _draw_curves(report: CircuitReport, figure: str) -> Plot:
    """Plot a line for each search method."""
    title = figure.capitalize()
    lines = [
        PlotCurve(METHODS.get(each.method, each.method), _list_points(report, each, figure)) for each in report.curves
    ]
    words = f"{title} of circuits of {report.target}, by size"
    return draw_curves(lines, words, f"Nodes in the circuit, % of {report.nodes:,}", title)


def _list_points(report: CircuitReport, curve: CircuitCurve, figure: str) -> list[tuple[float, PlotValue]]:
    found: tuple[Estimate, ...] = getattr(curve, figure)
    name = METHODS.get(curve.method, curve.method)
    return [
        (_share(report, size), PlotValue(each.value, f"{name}, {size:,} nodes"))
        # Not strict: the lists come from a worker, and a short one is drawn as far as it goes.
        for size, each in zip(curve.sizes, found, strict=False)
        if each.value is not None
    ]


def _share(report: CircuitReport, size: int) -> float:
    return 100 * size / report.nodes if report.nodes else 0.0


def _get_estimate(found: Sequence[Estimate], at: int) -> Estimate:
    # An empty estimate is written as "-".
    return found[at] if at < len(found) else Estimate()


def _write(found: Estimate) -> str:
    """Format a figure with its 95 % interval."""
    if found.value is None:
        return found.why or "-"
    spread = "" if found.low is None or found.high is None else f" [{found.low:.2f}, {found.high:.2f}]"
    return f"{found.value:.2f}{spread}"
