"""Figures of functions to find out, next to the published figures of FIND, which are marked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from experiments.models import Evaluation, EvaluationItem
from experiments.pairwise.proportions import Proportion, measure_proportion
from workers.functions.words.triplets import CHANCE, TRIPLETS
from workers.jobs.evaluations import figures
from workers.jobs.evaluations.sources import AGENT, ONE_SHOT
from workers.record.evaluations import Cell, EvaluationResult, Figure, ResultNote, ResultTable
from workers.record.functions import JUDGED_SUCCESS, SUCCESS, WORD_FAMILIES

LEFT_OUT = "left_out"
"""Key of `Evaluation.prepared`: reasons why functions were left out -> their number."""
DEFECTS = "defects"
"""The same key for functions that were used: known defects -> their number."""
HINTS = "hints"
METHODS = {AGENT: "Agent", HINTS: "Agent with hints", ONE_SHOT: "One-shot from hints"}
SUCCESSES, CHOICES, CEILING = "success", "choices", "ceiling"
_COLUMNS = (
    ("Numbers", "numeric", SUCCESSES),
    ("Texts", "strings", SUCCESSES),
    ("Texts, described", "strings", CHOICES),
    ("Concepts", "concepts", CHOICES),
    ("Relations", "relations", CHOICES),
)
"""Columns of FIND's table: heading, family, measure."""
_PUBLISHED: tuple[tuple[str, tuple[float | None, ...]], ...] = (
    ("Agent, GPT-4", (0.33, 0.23, 0.82, 0.56, 0.74)),
    ("Agent with hints, GPT-4", (None, None, None, 0.89, 0.92)),
    ("One-shot (MILAN), GPT-4", (None, None, None, 0.89, 0.74)),
    ("Agent, GPT-3.5", (0.12, 0.13, 0.66, 0.39, 0.64)),
    ("Agent with hints, GPT-3.5", (None, None, None, 0.88, 0.68)),
    ("One-shot (MILAN), GPT-3.5", (None, None, None, 0.81, 0.64)),
    ("Agent, Llama-2-70b", (0.01, 0.01, 0.33, 0.34, 0.47)),
    ("Agent with hints, Llama-2-70b", (None, None, None, 0.62, 0.46)),
    ("One-shot (MILAN), Llama-2-70b", (None, None, None, 0.61, 0.44)),
    ("Agent, Llama-2-13b", (0.0, 0.0, 0.33, 0.34, 0.46)),
    ("Agent with hints, Llama-2-13b", (None, None, None, 0.58, 0.42)),
    ("One-shot (MILAN), Llama-2-13b", (None, None, None, 0.54, 0.45)),
)
"""Shares published by FIND (Schwettmann et al., NeurIPS 2023, Table 2), in the order of the columns."""
_PUBLISHED_N = {"numeric": 1_000, "strings": 1_000, "concepts": 200, "relations": 75}
_NOTE = (
    f"Numbers: share of functions whose code has a normalised squared error below {SUCCESS:g} on 256 points. Texts: "
    "share of functions whose code gives all ten held-out texts. Texts described (where a language model judges), "
    f"concepts and relations: share of right choices of one in three by the description; chance is {CHANCE:.2f}. "
    "Published rows are FIND's own, of its benchmark, with noisy truth drawn anew, and with a language model as judge "
    "whose replies were read less strictly; they give no intervals."
)

Items = Sequence[EvaluationItem]


def _find_method(item: EvaluationItem) -> str:
    """Return a key of `METHODS`."""
    return HINTS if item.options.get(HINTS) else item.source


def summarise(evaluation: Evaluation, items: Items) -> EvaluationResult:
    """Return, by family and method: shares found out, right choices with their ceiling, differences paired by
    function."""
    methods = [each for each in METHODS if any(_find_method(item) == each for item in items)]
    families = list(dict.fromkeys(item.group for item in items))
    done = {each: [item for item in items if _find_method(item) == each and _is_done(item)] for each in methods}
    shares = [
        (METHODS[method], _count_successes(method, family, done[method])) for family in families for method in methods
    ]
    found = [figure for _, figure in shares]
    found += [each for method in methods for each in _average_choices(method, families, done[method])]
    tables = [_set_beside(evaluation, done), _tabulate_variants(done)]
    return EvaluationResult(
        (*found, *_compare(done, families)),
        tuple(table for table in tables if table.rows),
        (figures.interval_plot("success", "Functions found out", "share", shares),),
        (
            *_count_reasons(evaluation, LEFT_OUT, "Left out"),
            *_count_reasons(evaluation, DEFECTS, "Known defect"),
            *figures.note_lacking(items),
        ),
    )


def _is_done(item: EvaluationItem) -> bool:
    return "success" in item.scores and bool(figures.filter_source([item], item.source))


def _filter_family(family: str, items: Items) -> list[EvaluationItem]:
    return [each for each in items if each.group == family]


def _name_key(method: str, family: str, last: str) -> str:
    """Return the key of a figure. The agent's own figures have no method in their key."""
    return ".".join(each for each in ("" if method == AGENT else method, family, last) if each)


def _count_successes(method: str, family: str, items: Items) -> Figure:
    key, label = _name_key(method, family, "success"), f"{METHODS[method]}, {family}: found out"
    figure = figures.share_figure(key, label, _filter_family(family, items), "success")
    rule = f"{JUDGED_SUCCESS} of {TRIPLETS} choices right or more" if family in WORD_FAMILIES else ""
    return replace(figure, note=figure.note or rule)


def _average_choices(method: str, families: Sequence[str], items: Items) -> list[Figure]:
    """Return right choices by the judged descriptions; for the agent also by the true ones."""
    found = []
    for family in families:
        some = [each for each in _filter_family(family, items) if each.scores.get("judge")]
        note = f"judged by {', '.join(sorted({str(each.scores['judge']) for each in some}))}; chance {CHANCE:.2f}"
        labels = {CHOICES: f"{METHODS[method]}, {family}: right choices"}
        labels |= {CEILING: f"Ceiling, {family}: right choices by the true descriptions"} if method == AGENT else {}
        for name, label in labels.items() if some else ():
            share = _measure_choices(some, name)
            key = _name_key(method, family, name)
            found.append(Figure(key, label, share.value, share.low, share.high, share.units, note=note))
    return found


def _measure_choices(items: Items, name: str) -> Proportion:
    """Return the share of right choices, with the function as unit. An answer without a description has none right, and
    is left out of the ceiling."""
    judged = [item for item in items if item.scores.get("judge") and (name == CHOICES or name in item.scores)]
    right = [(item.pk, int(item.scores.get(name) or 0)) for item in judged]
    return measure_proportion([(pk, place < count) for pk, count in right for place in range(TRIPLETS)])


def _compare(done: dict[str, list[EvaluationItem]], families: Sequence[str]) -> list[Figure]:
    """Compare the agent with one-shot, over all families and in each, and hints with no hints, over all."""
    score = figures.score_of("success")
    pairs = [
        figures.PlannedComparison(
            _name_key("difference", family or "all", f"{first}-{second}"),
            f"{METHODS[first]} less {METHODS[second].lower()}, {family or 'all'}: found out",
            figures.get_scores_by_unit(_filter_family(family, done[first]) if family else done[first], score),
            figures.get_scores_by_unit(_filter_family(family, done[second]) if family else done[second], score),
        )
        # Hints are compared over all families only.
        for first, second, some in ((AGENT, ONE_SHOT, ("", *families)), (HINTS, AGENT, ("",)))
        if first in done and second in done
        for family in some
    ]
    return figures.compare(pairs)


def _set_beside(evaluation: Evaluation, done: dict[str, list[EvaluationItem]]) -> ResultTable:
    """Return our rows, then the published ones."""
    who = evaluation.backbone_model or evaluation.backbone
    ours = [
        (
            Cell(f"{METHODS[method]}, {who}"),
            *(_measure(_filter_family(family, items), what) for _, family, what in _COLUMNS),
        )
        for method, items in done.items()
        if items
    ]
    published = [
        (
            Cell(f"{name} (published)", weak=True),
            *(
                # Published shares have no intervals.
                Cell(weak=True) if value is None else Cell(value=value, n=_PUBLISHED_N[family], weak=True)
                for value, (_, family, _) in zip(values, _COLUMNS, strict=True)
            ),
        )
        for name, values in _PUBLISHED
    ]
    columns = ("", *(heading for heading, *_ in _COLUMNS))
    return ResultTable("published", "Beside FIND's published table", columns, (*ours, *published), _NOTE)


def _measure(items: Items, what: str) -> Cell:
    """Return the measure of a column; an empty cell if nothing was asked or judged."""
    if what == CHOICES:
        found = _measure_choices(items, CHOICES)
        return Cell(value=found.value, low=found.low, high=found.high, n=found.units)
    figure = figures.share_figure(what, what, items, "success") if items else None
    return Cell(value=figure.value, low=figure.low, high=figure.high, n=figure.n) if figure else Cell()


def _tabulate_variants(done: dict[str, list[EvaluationItem]]) -> ResultTable:
    """Return numeric functions found out by variant: clean, with noise, with a corrupted interval, approximated by a
    network."""
    rows = []
    for variant in ("clean", "corrupted", "noised", "approximated"):
        cells = [
            _measure([each for each in items if each.scores.get("variant") == variant], SUCCESSES)
            for items in done.values()
        ]
        if any(cell.n for cell in cells):
            rows.append((Cell(variant), *cells))
    names = tuple(METHODS[method] for method in done)
    return ResultTable("variants", "Functions of numbers found out, by variant", ("", *names), tuple(rows))


def _count_reasons(evaluation: Evaluation, key: str, words: str) -> list[ResultNote]:
    """Return notes on what was counted by reason when functions were chosen. Functions left out have no score."""
    counted = evaluation.prepared.get(key)
    known = counted.items() if isinstance(counted, dict) else ()
    return [ResultNote(f"{words}, {count:,} of {why}") for why, count in known]
