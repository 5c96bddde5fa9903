"""Score answers about functions: code runs in the sandbox, in its own process for each function; a description of a
function of words is judged by the choices made with it.

Nothing of an answer is imported, parsed or run here. Exceeding the time limit is a separate outcome.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from workers.errors import MissingPart
from workers.functions.black_box import BlackBox, JudgedBox, Truth
from workers.functions.numeric import EDGE, measure_nmse
from workers.functions.words.triplets import TripletJudge
from workers.metrics.intervals import estimate_share
from workers.protocols import Bounds, ExperimentResult, Sandbox
from workers.record.estimates import Estimate
from workers.record.functions import (
    JUDGED_SUCCESS,
    SUCCESS,
    FunctionScore,
    ScoredInput,
    ScoreOutcome,
    TrueFunction,
    to_json,
)

SECONDS = 5.0
"""For all inputs of a function."""
CODE_CHARS = 50_000
_SIZES = ("one atom", "two atoms", "three atoms")
_OUTPUT_CHARS = 10_000
"""Of one output; longer ones are wrong."""
_BOUNDS = Bounds(seconds=SECONDS, memory_bytes=512 << 20, frame_bytes=8 << 20, total_bytes=16 << 20, output_chars=1_000)
_PROGRAM = """
import ast, numbers

def _read(value):
    if isinstance(value, str):
        try:
            return value[:{chars} + 1].encode().decode()
        except UnicodeEncodeError:
            return None
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            return None
    return None

_code = {code!r}
_names = [each.name for each in ast.parse(_code).body if isinstance(each, ast.FunctionDef)]
if not _names:
    tools.report("no function")
else:
    _own = {{"__name__": "answer"}}
    exec(compile(_code, "answer.py", "exec"), _own)
    tools.report("scored", [_read(_own[_names[-1]](each)) for each in {inputs!r}])
"""


def score_answer(box: BlackBox, code: str, sandbox: Sandbox) -> FunctionScore:
    """Score the code of an answer about a function: its last `def` is called with one input at a time.

    Numeric: NMSE = sum |truth - answer|² / sum |truth|² on the points i + 0.5, i in -128 … 127 (FIND, section 3.3),
    where the truth is defined; of a noisy function the truth is that without noise. Texts: exact matches.
    """
    # 1. The truth is computed here, by code of ours or as published
    inputs, truth = _list_inputs_and_truth(box)
    told = FunctionScore(
        box.key,
        "no code",
        inputs=tuple(ScoredInput(to_json(given), to_json(wanted)) for given, wanted in zip(inputs, truth, strict=True)),
        truth=_tell_truth(box.truth),
    )
    # 2. Answers that need not be run
    if not code.strip():
        return told
    if len(code) > CODE_CHARS:
        why = f"The code has {len(code):,} characters; {CODE_CHARS:,} are run."
        return replace(told, outcome="too large", why=why)
    reports: list[tuple[Any, Any]] = []

    def report(outcome: Any, outputs: Any = None) -> None:
        reports.append((outcome, outputs))

    # 3. Run it: the code enters as a text, and outputs come back as numbers and texts
    program = _PROGRAM.format(code=code, inputs=inputs, chars=_OUTPUT_CHARS)
    result = sandbox.run(program, {"tools.report": report}, {"experiment.seed": 0}, bounds=_BOUNDS)
    # It may have been stopped before it reported
    if not reports:
        # The end of the error is where Python names its cause
        return replace(told, outcome=_name_failure(result), why=result.error.strip()[-500:])
    # 4. The report is a stranger's: its form is checked
    outcome, outputs = reports[-1]
    if outcome != "scored":
        return replace(told, outcome="no function", why="The code defines no function at its top level.")
    if not isinstance(outputs, list) or len(outputs) != len(inputs):
        return replace(told, outcome="raised", why="It did not give one output for each input.")
    return _compare(told, truth, outputs)


def judge_description(box: JudgedBox, description: str, judge: TripletJudge) -> FunctionScore:
    """Score a description of a function of words by ten choices of three; what cannot be read is counted apart.

    Raises what the judge raises, MissingPart aside.
    """
    triplets = box.draw_triplets()
    told = FunctionScore(
        box.key,
        "no description",
        inputs=tuple(ScoredInput(" / ".join(each.options), each.options[each.right]) for each in triplets),
        truth=_tell_truth(box.truth),
        judge=judge.label,
    )
    if not description.strip():
        return told
    try:
        picked = [judge.pick(description, each, box.question) for each in triplets]
        # The same judge with the true description: who errs by that says little of any other
        best = [judge.pick(box.truth.description, each, box.question) for each in triplets]
    # A judge that is not here is no failure of the description
    except MissingPart as missing:
        return replace(told, outcome="not judged", why=str(missing))
    right, ceiling = (
        sum(each.right == place for each, place in zip(triplets, places, strict=True)) for places in (picked, best)
    )
    chosen = ["" if place is None else each.options[place] for each, place in zip(triplets, picked, strict=True)]
    inputs = tuple(replace(known, answer=answer) for known, answer in zip(told.inputs, chosen, strict=True))
    success = right >= JUDGED_SUCCESS
    return replace(told, outcome="scored", success=success, right=right, ceiling=ceiling, inputs=inputs)


def _tell_truth(truth: Truth) -> TrueFunction:
    corruption = truth.corruption
    # Infinite ends are cut to the domain
    interval = (max(corruption.low, -EDGE), min(corruption.high, EDGE)) if corruption else None
    return TrueFunction(truth.code, truth.description, truth.variant, interval)


def _list_inputs_and_truth(box: BlackBox) -> tuple[list[Any], list[Any]]:
    """Return the inputs that answers are scored on, and the truth for each."""
    inputs = box.draw_held_out()
    pairs = zip(inputs, box.evaluate(inputs), strict=True)
    # Undefined points cannot be scored; texts are always defined
    defined = [(x, y) for x, y in pairs if isinstance(y, str) or math.isfinite(y)]
    return [x for x, _ in defined], [y for _, y in defined]


def _compare(told: FunctionScore, truth: Sequence[Any], outputs: Sequence[Any]) -> FunctionScore:
    """Return the score with what the answer gave; what is neither a number nor a text is left empty."""
    given = [to_json(each) if isinstance(each, float | str) else "" for each in outputs]
    told = replace(
        told,
        outcome="scored",
        inputs=tuple(replace(each, answer=answer) for each, answer in zip(told.inputs, given, strict=True)),
    )
    if told.key.startswith("strings"):
        right = sum(isinstance(each, str) and each == wanted for each, wanted in zip(outputs, truth, strict=True))
        return replace(told, success=right == len(truth), right=right)
    # Anything else than a number counts as NaN, which makes the error infinite
    error = measure_nmse(truth, [each if isinstance(each, float) else math.nan for each in outputs])
    return replace(told, success=error < SUCCESS, error=error if math.isfinite(error) else None)


def _name_failure(result: ExperimentResult) -> ScoreOutcome:
    """Say why the code reported nothing."""
    if result.status == "timeout":
        return "timed out"
    if result.status in ("memory", "killed"):
        return "too large" if result.status == "memory" else "killed"
    return "raised"


def summarise_scores(scored: Sequence[tuple[BlackBox, FunctionScore]]) -> dict[str, Estimate]:
    """Return share of successes of all, by variant, by the side that is corrupted, by one or two atoms, and by atom.

    There is a share where there is a function.
    """
    groups: dict[str, list[bool]] = {}
    for box, score in scored:
        truth = box.truth
        side = [f"corrupted, {truth.corruption.side}"] if truth.corruption else []
        size = [_SIZES[min(len(truth.atoms), len(_SIZES)) - 1]] if truth.atoms else []
        # Sorted, and each atom once: a composition may use the same one twice
        for name in ("all", truth.variant, *side, *size, *(f"atom: {atom}" for atom in sorted(set(truth.atoms)))):
            groups.setdefault(name, []).append(score.success)
    first = ["all", "clean", "corrupted", "noised", "approximated"]
    # The fixed groups first, then sides and sizes, atoms last
    order = sorted(groups, key=lambda name: (first.index(name) if name in first else len(first), ":" in name, name))
    return {name: estimate_share(sum(groups[name]), len(groups[name])) for name in order}
