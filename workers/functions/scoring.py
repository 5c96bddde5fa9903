"""Scores answers about functions: the answer's code runs in the sandbox, in a process of its own for each function.

Nothing of an answer is imported, parsed or run here. A time limit that it passes is an outcome of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from workers.functions.black_box import BlackBox
from workers.functions.numeric import SCORED_POINTS, measure_nmse
from workers.functions.strings import StringBox, draw_held_out
from workers.metrics.intervals import estimate_share
from workers.protocols import Bounds, ExperimentResult, Sandbox
from workers.record.estimates import Estimate

Outcome = Literal["scored", "no code", "no function", "raised", "timed out", "too large", "killed"]
"""What came of running an answer. Outputs of a wrong type or that are not finite are wrong, and were scored."""

SUCCESS = 0.1
"""NMSE below which a numeric answer succeeds, as published."""
SECONDS = 5.0
"""For all inputs of a function."""
CODE_CHARS = 50_000
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


@dataclass(frozen=True)
class Score:
    """How right an answer is."""

    key: str
    outcome: Outcome
    success: bool = False
    """A numeric answer with an NMSE below 0.1; one about texts that is right for all 10 held-out texts."""
    error: float | None = None
    """NMSE of a numeric answer over 256 points, 0 or more; infinity where an output is no finite number."""
    right: int | None = None
    """Held-out texts, of 10, for which an answer about texts gives the very output."""
    why: str = ""
    """What the code raised, or what stopped it."""


def score_answer(box: BlackBox, code: str, sandbox: Sandbox) -> Score:
    """Score the code of an answer about a function: its last `def` is called with one input at a time.

    Numeric: NMSE = sum |truth - answer|² / sum |truth|² on the points i + 0.5, i in -128 … 127 (FIND, section 3.3),
    where the truth is defined; of a noisy function the truth is that without noise. Texts: exact matches.
    """
    if not code.strip():
        return Score(box.key, "no code")
    if len(code) > CODE_CHARS:
        return Score(box.key, "too large", why=f"The code has {len(code):,} characters; {CODE_CHARS:,} are run.")
    inputs, truth = _lay_out(box)
    reports: list[tuple[Any, Any]] = []

    def report(outcome: Any, outputs: Any = None) -> None:
        reports.append((outcome, outputs))

    program = _PROGRAM.format(code=code, inputs=inputs, chars=_OUTPUT_CHARS)
    result = sandbox.run(program, {"tools.report": report}, {"experiment.seed": 0}, bounds=_BOUNDS)
    if not reports:
        return Score(box.key, _name_failure(result), why=result.error.strip()[-500:])
    outcome, outputs = reports[-1]
    if outcome != "scored":
        return Score(box.key, "no function", why="The code defines no function at its top level.")
    if not isinstance(outputs, list) or len(outputs) != len(inputs):
        return Score(box.key, "raised", why="It did not give one output for each input.")
    return _compare(box, truth, outputs)


def _lay_out(box: BlackBox) -> tuple[list[Any], list[Any]]:
    """The inputs that answers are scored on, and the truth for each."""
    if isinstance(box, StringBox):
        texts = draw_held_out(box)
        return list(texts), box.evaluate(texts)
    pairs = zip(SCORED_POINTS, box.evaluate(SCORED_POINTS), strict=True)
    defined = [(x, y) for x, y in pairs if math.isfinite(y)]
    return [x for x, _ in defined], [y for _, y in defined]


def _compare(box: BlackBox, truth: Sequence[Any], outputs: Sequence[Any]) -> Score:
    if box.family == "strings":
        right = sum(isinstance(given, str) and given == wanted for given, wanted in zip(outputs, truth, strict=True))
        return Score(box.key, "scored", right == len(truth), right=right)
    error = measure_nmse(truth, [each if isinstance(each, float) else math.nan for each in outputs])
    return Score(box.key, "scored", error < SUCCESS, error)


def _name_failure(result: ExperimentResult) -> Outcome:
    """What became of code that reported nothing."""
    if result.status == "timeout":
        return "timed out"
    if result.status in ("memory", "killed"):
        return "too large" if result.status == "memory" else "killed"
    return "raised"


def summarise_scores(scored: Sequence[tuple[BlackBox, Score]]) -> dict[str, Estimate]:
    """Share of successes of all, by variant, by the side that is corrupted, by one or two atoms, and by atom.

    There is a share where there is a function.
    """
    groups: dict[str, list[bool]] = {}
    for box, score in scored:
        truth = box.truth
        side = [f"corrupted, {truth.corruption.side}"] if truth.corruption else []
        size = "two atoms" if len(truth.atoms) > 1 else "one atom"
        for name in ("all", truth.variant, *side, size, *(f"atom: {atom}" for atom in sorted(set(truth.atoms)))):
            groups.setdefault(name, []).append(score.success)
    first = ["all", "clean", "corrupted", "noised", "approximated"]
    order = sorted(groups, key=lambda name: (first.index(name) if name in first else len(first), ":" in name, name))
    return {name: estimate_share(sum(groups[name]), len(groups[name])) for name in order}
