"""Figures of circuits against sets of neurons: means over classes by method and size, and planted circuits by rule."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from experiments.models import Evaluation, EvaluationItem, ItemStatus
from workers.circuits.finding import SHARES
from workers.circuits.planted import RULES
from workers.jobs.evaluations import figures
from workers.metrics.intervals import estimate_mean, estimate_share
from workers.record.circuits import METHODS
from workers.record.estimates import Estimate
from workers.record.evaluations import Cell, EvaluationResult, Figure, Point, ResultPlot, ResultTable, Series

CLASSES = "classes"
"""Group of items that are classes of a network. Planted circuits are grouped by their rule."""
CIRCUIT, PLANTED = "circuit", "planted"
"""Sources of items."""
MAIN_SHARE = 0.1
_TOLD = (0.05, MAIN_SHARE)
"""Shares of nodes for which figures are shown."""
_MEASURES = {"faithfulness": "the circuit alone", "completeness": "all without it"}
_BESIDE = ("random", "neurons")
"""Methods that a circuit is compared with, class by class."""
_NOTE = (
    "Faithfulness is 1 where the circuit alone gives the whole logit; completeness is 0 where nothing of it is left "
    "without the circuit. Nodes are ranked by ten gradients each. Means over classes with 95 % intervals. Plain "
    "neurons are as many as the latents, so a larger share of theirs."
)
_PLANTED_NOTE = (
    "The logit is the sum of a few units, the least or the greatest of them; as many others, the followers, are as "
    "active with the class, and nothing reads them. Looked at are as many of the strongest as there are members."
)

Items = Sequence[EvaluationItem]


@dataclass(frozen=True)
class _Side:
    """One model, or the latents of one autoencoder, over its classes. `prefix` starts its keys."""

    model: str
    prefix: str
    words: str
    items: Items

    def list_methods(self) -> list[str]:
        """Return the methods measured for any class, the circuit itself first."""
        known = {name for item in self.items for name in item.scores}
        return [method for method in METHODS if name_score("faithfulness", method, MAIN_SHARE) in known]

    def estimate(self, measure: str, method: str, share: float) -> Estimate:
        """Return the mean over classes."""
        read = figures.score_of(name_score(measure, method, share))
        return estimate_mean([value for item in self.items if (value := read(item)) is not None])


def name_score(measure: str, method: str, share: float) -> str:
    """Return the key of a score. The dots mark scores that are not shown beside an item."""
    return f"{measure}.{method}.{round(share * 100)}"


def summarise(evaluation: Evaluation, items: Items) -> EvaluationResult:
    """Return both measures by method and size, differences by class, curves, and planted circuits by rule."""
    sides = _read_sides(evaluation, items)
    planted = [item for item in items if item.source == PLANTED and item.status == ItemStatus.DONE]
    return EvaluationResult(
        (
            *(figure for side in sides for figure in _list_means(side)),
            *(figure for side in sides for figure in _compare(side)),
            *_list_planted(planted),
        ),
        (*(_write_classes(side) for side in sides if side.items), _write_planted(planted)),
        tuple(_draw(side, measure) for side in sides if side.items for measure in _MEASURES),
        tuple(figures.note_lacking(items)),
    )


def _read_sides(evaluation: Evaluation, items: Items) -> list[_Side]:
    """Return one side per autoencoder, or one side of neurons. Keys get a prefix if there are several sides."""
    done = figures.filter_source(items, CIRCUIT)
    names = list(dict.fromkeys(str(item.options["studied"]) for item in items if item.source == CIRCUIT))
    latents = bool(evaluation.options.get("autoencoders"))
    found = []
    for name in names:
        # A dot would look like another level of the key.
        key = name.removeprefix("sae:").replace(".", "_")
        prefix, suffix = (f"{key}.", f" of {name}") if len(names) > 1 else ("", "")
        words = f"{'Latents' if latents else 'Neurons'}{suffix}"
        found.append(_Side(name, prefix, words, [item for item in done if item.options["studied"] == name]))
    return found


def _list_means(side: _Side) -> Iterator[Figure]:
    for measure, what in _MEASURES.items():
        for share in _TOLD:
            for method in side.list_methods():
                found = side.estimate(measure, method, share)
                label = f"{side.words}, {METHODS[method]}: {measure} at {share:.0%}, {what}"
                key = f"{side.prefix}{measure}_{round(share * 100)}.{method}"
                yield Figure(key, label, found.value, found.low, found.high, found.n, note=found.why)


def _compare(side: _Side) -> list[Figure]:
    """Compare the circuit with each control, paired by class."""
    methods = side.list_methods()
    # The exact effect if it was measured, else its approximation by gradients
    own = next((each for each in ("effect", "gradients") if each in methods), "")
    pairs = [
        figures.PlannedComparison(
            f"{side.prefix}difference.{other}.{measure}",
            f"{side.words}: the circuit less {METHODS[other]}, {measure} at {MAIN_SHARE:.0%}",
            *(
                figures.get_scores_by_unit(side.items, figures.score_of(name_score(measure, method, MAIN_SHARE)))
                for method in (own, other)
            ),
        )
        for other in _BESIDE
        if own and other in methods
        for measure in _MEASURES
    ]
    return figures.compare(pairs)


def _list_planted(planted: Items) -> Iterator[Figure]:
    """Return, for each rule and for all: members recovered, complete circuits, circuits without a follower."""
    for key, words, some in _group_by_rule(planted):
        recovered, whole, followers = _measure_planted(some)
        yield _figure(f"planted.{key}.recovered", f"Planted, {words}: members recovered", recovered)
        yield _figure(f"planted.{key}.whole", f"Planted, {words}: circuits found whole", whole)
        yield _figure(f"planted.{key}.kept_out", f"Planted, {words}: circuits without a follower", followers)


def _group_by_rule(planted: Items) -> Iterator[tuple[str, str, Items]]:
    for rule, words in RULES.items():
        if some := [item for item in planted if item.options["rule"] == rule]:
            yield rule, words, some
    if planted:
        yield "all", "all rules", planted


def _measure_planted(some: Items) -> tuple[Estimate, Estimate, Estimate]:
    """Return shares over circuits: mean share of members, complete circuits, circuits without a follower."""
    shares = [float(item.scores["recovered"]) / float(item.scores["members"]) for item in some]
    whole, clean = sum(share == 1 for share in shares), sum(not item.scores["followers"] for item in some)
    return (
        figures.estimate_values(shares),
        estimate_share(whole, len(some)),
        estimate_share(clean, len(some)),
    )


def _figure(key: str, label: str, found: Estimate) -> Figure:
    return Figure(key, label, found.value, found.low, found.high, found.n, note=found.why)


def _write_planted(planted: Items) -> ResultTable:
    rows = [
        (Cell(words.capitalize()), Cell(value=len(some)), *map(_show, _measure_planted(some)))
        for _, words, some in _group_by_rule(planted)
    ]
    columns = ("The logit is", "Circuits", "Members recovered", "Found whole", "Without a follower")
    return ResultTable("planted", "Planted circuits", columns, tuple(rows), _PLANTED_NOTE)


def _write_classes(side: _Side) -> ResultTable:
    """Return faithfulness of each class by method at the main share, and the mean as last row."""
    methods = side.list_methods()
    keys = [name_score("faithfulness", method, MAIN_SHARE) for method in methods]
    rows = [
        (Cell(_name_class(item), item=item.pk), *(Cell(value=figures.score_of(key)(item)) for key in keys))
        for item in side.items
    ]
    means = (Cell("All"), *(_show(side.estimate("faithfulness", method, MAIN_SHARE)) for method in methods))
    title = f"{side.words}: faithfulness of {MAIN_SHARE:.0%} of the nodes, by class"
    columns = ("Class", *(METHODS[method] for method in methods))
    return ResultTable(f"{side.prefix}classes", title, columns, (*rows, means), _NOTE)


def _name_class(item: EvaluationItem) -> str:
    """Return the class name of the network."""
    unit = item.unit
    names = unit.layer.names if unit else []
    return names[unit.number] if unit and unit.number < len(names) else item.unit_name.rpartition(" / ")[2]


def _draw(side: _Side, measure: str) -> ResultPlot:
    """Return the mean by share of nodes, one line per method."""
    series = []
    for method in side.list_methods():
        found = [(share, side.estimate(measure, method, share)) for share in SHARES]
        points = [
            Point(100 * share, each.value, each.low, each.high) for share, each in found if each.value is not None
        ]
        series.append(Series(METHODS[method], tuple(points)))
    title = f"{side.words}: {measure}, {_MEASURES[measure]}"
    return ResultPlot(f"{side.prefix}{measure}", title, "line", "% of the nodes", measure, tuple(series))


def _show(found: Estimate) -> Cell:
    return Cell(value=found.value, low=found.low, high=found.high, n=found.n)
