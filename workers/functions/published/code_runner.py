"""Run the `function` of a published function_code.py in the sandbox, in a separate process for each call."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from workers.errors import MissingPart
from workers.functions.black_box import MAX_INPUTS
from workers.protocols import Bounds, ExperimentResult, Sandbox

SECONDS = 5.0
"""Time limit for all inputs of a call, in seconds."""
MAX_OUTPUT_CHARS = 10_000
"""Maximum characters of one output; a longer one counts as none."""
MAX_BYTES = 6_000_000
"""Maximum characters of all outputs of a call: one message has its own limit."""
Kind = Literal["number", "text"]
_BOUNDS = Bounds(seconds=SECONDS, memory_bytes=512 << 20, frame_bytes=8 << 20, total_bytes=16 << 20, output_chars=1_000)
_PROGRAM = """
import ast, math, random, warnings
import numpy as np

warnings.simplefilter("ignore")
np.seterr(all="ignore")
_CODE, _KIND, _SEED = {code!r}, {kind!r}, {seed!r}
_INPUTS = tools.read_inputs()

def _drop_unused_imports(tree):
    # Importing scipy.signal takes 0.7 s, and every function imports it
    used = {{each.id for each in ast.walk(tree) if isinstance(each, ast.Name)}}
    for each in list(tree.body):
        if isinstance(each, (ast.Import, ast.ImportFrom)) and getattr(each, "module", "") != "__future__":
            each.names = [name for name in each.names
                          if name.name == "*" or (name.asname or name.name.partition(".")[0]) in used]
            if not each.names:
                tree.body.remove(each)
    return tree

def _fill(value, size):
    return value if size is None else np.full(size, value)

def _leave_out_noise():
    np.random.normal = lambda loc=0.0, scale=1.0, size=None: _fill(loc, size)
    np.random.uniform = lambda low=0.0, high=1.0, size=None: _fill((low + high) / 2, size)
    np.random.poisson = lambda lam=1.0, size=None: _fill(0, size)

def _read_number(value):
    value = np.asarray(value)
    if value.size != 1 or value.dtype.kind not in "biuf":
        return math.nan
    return float(value.reshape(-1)[0])

def _read_text(value):
    if isinstance(value, (int, float, np.number)):
        value = str(value)
    if not isinstance(value, str):
        raise TypeError("it gives " + type(value).__name__ + " and no text")
    if len(value) > {chars}:
        raise ValueError("it gives a text of over {chars} characters")
    return value.encode().decode()

def _answer(function, value):
    try:
        given = function(value)
        return ((_read_number if _KIND == "number" else _read_text)(given), "")
    except OverflowError:
        return (math.inf if _KIND == "number" else None, "OverflowError")
    except Exception as error:
        return (math.nan if _KIND == "number" else None, type(error).__name__)

if _SEED is None:
    _leave_out_noise()
else:
    random.seed(_SEED)
    np.random.seed(_SEED)
_own = {{"__name__": "function_code"}}
exec(compile(_drop_unused_imports(ast.parse(_CODE)), "function_code.py", "exec"), _own)
if not callable(_own.get("function")):
    tools.report("It defines no function named “function”.", [])
else:
    _answers = [_answer(_own["function"], each) for each in _INPUTS]
    if sum(len(each.encode()) for each, _ in _answers if isinstance(each, str)) > {total}:
        tools.report("Its outputs have over {total:,} bytes in all.", [])
    else:
        tools.report("", _answers)
"""


@dataclass(frozen=True)
class Answers:
    """The output of the code for the inputs of one call."""

    outputs: list[Any]
    """Numbers, NaN where it raises; or texts, None where it gives none."""
    raised: list[str]
    """Name of what it raised for each input; "" where it raised nothing."""
    why: str = ""
    """Why there are no outputs at all; "" if there are."""


@dataclass(frozen=True)
class CodeRunner:
    """The code of one function, and where it runs."""

    code: str
    find_sandbox: Callable[[], Sandbox] | None

    def run(self, inputs: Sequence[Any], kind: Kind, seed: int | None) -> Answers:
        """Return the outputs for at most 1,000 inputs, with the noise of a seed; without noise where it is None.

        Without noise, `numpy.random.normal` gives its mean, `uniform` the middle and `poisson` 0. Raises MissingPart
        where there is no sandbox, and SandboxBroke.
        """
        # Published code is a stranger's: it runs in the sandbox or not at all
        if self.find_sandbox is None:
            raise MissingPart("Published code runs in the sandbox alone, and this process has none. Ask a worker.")
        reports: list[tuple[Any, Any]] = []

        def report(why: Any = None, answers: Any = None) -> None:
            reports.append((why, answers))

        given = list(inputs)[:MAX_INPUTS]
        # The worker neither imports nor parses the code: it is a text until the sandbox runs it
        program = _PROGRAM.format(code=self.code, kind=kind, seed=seed, chars=MAX_OUTPUT_CHARS, total=MAX_BYTES)
        # The inputs are read by a call, since a thousand long texts are more than a program may have
        calls: dict[str, Callable[..., Any]] = {"tools.report": report, "tools.read_inputs": lambda: given}
        result = self.find_sandbox().run(program, calls, {"experiment.seed": seed or 0}, bounds=_BOUNDS)
        # No report: it ended before its last line, by an error or a limit
        if not reports:
            return Answers([], [], _explain_failure(result))
        return _read_report(*reports[-1], len(given), kind)


def _read_report(why: Any, answers: Any, count: int, kind: Kind) -> Answers:
    """Return the reported outputs: numbers and texts only."""
    if isinstance(why, str) and why:
        # The code may have forged the report, so every part of it is checked and cut
        return Answers([], [], why[:200])
    pairs = answers if isinstance(answers, list) else []
    # One pair for each input, else outputs would be attributed to wrong inputs
    if len(pairs) != count or not all(isinstance(each, list | tuple) and len(each) == 2 for each in pairs):
        return Answers([], [], "It did not give one output for each input.")
    outputs = [_read_output(each[0], kind) for each in pairs]
    return Answers(outputs, [str(each[1])[:60] if each[1] else "" for each in pairs])


def _read_output(value: Any, kind: Kind) -> Any:
    if kind == "number":
        # A bool is an int for Python, and no number here
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return float(value) if is_number else math.nan
    return value if isinstance(value, str) and len(value) <= MAX_OUTPUT_CHARS else None


def _explain_failure(result: ExperimentResult) -> str:
    """Say why the code reported nothing."""
    if result.status == "timeout":
        return f"It ran for over {SECONDS:g} s."
    if result.status in ("memory", "killed"):
        return "It took over 512 MB of memory." if result.status == "memory" else "It was killed by the sandbox."
    # A line in brackets is the sandbox's advice to the authors of programs
    lines = (line for line in reversed(result.error.splitlines()) if line.strip() and not line.startswith("("))
    last = next(lines, "It ended without an answer.")
    return f"Its code does not run: {last.strip()[:200]}"
