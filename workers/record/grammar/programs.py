"""Find the program of a reply: the fences after [CODE], joined in order, or else code that can only be meant as one.

    [CODE]:             one fence or several; the last may lack its end, if it is complete Python
    [CODE]:             Python lines without a fence
    (no tag)            fences that define an entry point; in a reply without conclusion, also those that use the tools

Nothing is run. Python is only parsed, to tell a program from words.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import dedent

from workers.record.grammar.blocks import CONCLUDING, THINKING, Block, Fence

FencePosition = tuple[int, int]
"""Position of a part in a reply: index of its block, index in the block."""

MAX_CHARS = 1_000_000
"""Longer programs are not parsed here; the sandbox refuses them."""
# Names of Python that models write behind a fence; none counts too
_PYTHON = frozenset({"", "python", "python3", "py"})
_DEFINES = re.compile(r"^def (run_experiment|execute_command)\b", re.MULTILINE)
_USES = re.compile(r"\b(?:system|tools)\.[a-z]\w{0,40} ?\(|^def (?:run_experiment|execute_command)\b", re.MULTILINE)
_ENDINGS = 3
"""Maximum number of prose paragraphs after a program without a fence."""
_BEGINNINGS = 4
"""Maximum number of lines to try as the start of a program without a fence."""
_BEGINS = re.compile(
    r"\s{0,8}(?:import \w|from \w[\w.]{0,80} import |(?:def|class|with) \w|@\w|for \w.{0,200} in "
    r"|\"{3}|\w[\w, ]{0,80}=|\w[\w.]{0,80}\()"
)
"""The start of a line that is Python and not a sentence."""

UNCLOSED = "The fence of your program has no end; all that followed it was read as the program."
NOT_WHOLE = (
    "The fence of your program has no end, and what stands in it is no whole Python program, so it was not run. "
    "Send the program again, whole, with ``` on a line of its own behind it."
)
NO_FENCE = "Your program stood in no fence; the lines behind [CODE] were read as the program."
NO_PYTHON = "What stands behind [CODE] is no Python, so nothing was run."
NO_TAG = "A fence without [CODE] before it was read as your program."


@dataclass(frozen=True)
class Program:
    code: str | None = None
    taken: Mapping[int, frozenset[int]] = field(default_factory=dict)
    """The parts of the reply that form the program: index of a block -> indices of its parts."""
    remarks: tuple[str, ...] = ()
    """Remarks for the author on how an ambiguous program was read."""


def find_program(blocks: Sequence[Block]) -> Program:
    """Return the program of a reply, without code if there is none."""
    # 1. Fences that may be programs: in Python or without a language, and not empty
    fences = {
        (number, place): part
        for number, block in enumerate(blocks)
        for place, part in enumerate(block.parts)
        if isinstance(part, Fence) and block.tag != THINKING and part.language in _PYTHON and part.body.strip()
    }
    # 2. Those behind [CODE] take precedence
    tagged = {place: fence for place, fence in fences.items() if blocks[place[0]].tag == "CODE"}
    # A reply that concludes runs a fence only if it defines an entry point: others are illustrations
    concludes = any(block.tag in CONCLUDING and any(map(str.strip, block.lines())) for block in blocks)
    chosen = _drop_broken(tagged or _choose_unannounced(fences, concludes=concludes))
    # 3. The chosen ones form one program
    if chosen:
        return _join_fences(chosen, () if tagged else (NO_TAG,))
    # 4. A broken program is reported and not run
    if any(not fence.closed for fence in tagged.values()):
        return Program(remarks=(NOT_WHOLE,))
    # 5. Lines without a fence
    return _read_unfenced(blocks)


def is_answer(code: str) -> bool:
    """True if the code computes a function and is not an experiment, that is, it neither calls tools nor defines an
    entry point."""
    return _USES.search(code) is None


def is_program(words: str) -> bool:
    """True if the words are Python that does something, not only a name, number or text."""
    # Words may be indented as a whole
    tree = _parse(dedent(words))
    return tree is not None and any(_has_effect(node) for node in tree.body)


def _is_python(code: str) -> bool:
    """True if the text is a Python program."""
    return _parse(code) is not None


def _parse(code: str) -> ast.Module | None:
    try:
        return ast.parse(code) if len(code) <= MAX_CHARS else None
    # MemoryError: Python's parser raises it for deep nesting
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _choose_unannounced(fences: dict[FencePosition, Fence], *, concludes: bool) -> dict[FencePosition, Fence]:
    """Return fences without a tag that are programs."""
    sign = _DEFINES if concludes else _USES
    chosen = {at: fence for at, fence in fences.items() if _DEFINES.search(fence.body) or is_program(fence.body)}
    return chosen if any(sign.search(fence.body) for fence in chosen.values()) else {}


def _drop_broken(fences: dict[FencePosition, Fence]) -> dict[FencePosition, Fence]:
    """Drop fences that cannot belong to the program: unclosed incomplete ones, and unmarked ones that are not
    Python."""
    joined = "\n\n".join(fence.body for fence in fences.values())
    # Together they may be Python although a part alone is not
    if len(fences) > 1 and _is_python(joined):
        return fences
    # A fence without a language among several may be output that is quoted
    unmarked = {at for at, fence in fences.items() if len(fences) > 1 and not fence.language}
    return {
        at: fence for at, fence in fences.items() if (fence.closed and at not in unmarked) or _is_python(fence.body)
    }


def _join_fences(fences: dict[FencePosition, Fence], remarks: tuple[str, ...]) -> Program:
    bodies = [fence.body for fence in fences.values()]
    # Remarks say how the program was read, so that the author can correct it
    if len(bodies) > 1:
        remarks += (f"{len(bodies)} fences were run together, in order, as one program.",)
    names = [name for body in bodies for name in _DEFINES.findall(body)]
    if len(names) > 1:
        remarks += (f"They define {' and '.join(names)}: as in any program, only the last was called.",)
    if any(not fence.closed for fence in fences.values()):
        remarks += (UNCLOSED,)
    found: dict[int, set[int]] = {}
    for block, part in fences:
        found.setdefault(block, set()).add(part)
    return Program("\n\n".join(bodies), {block: frozenset(parts) for block, parts in found.items()}, remarks)


# --- programs without a fence -----------------------------------------------------------------------


def _read_unfenced(blocks: Sequence[Block]) -> Program:
    """Return the Python lines after the first [CODE] that has any."""
    missing: tuple[str, ...] = ()
    for number, block in enumerate(blocks):
        if block.tag != "CODE" or not any(isinstance(part, str) and part.strip() for part in block.parts):
            continue
        # Fences behind [CODE] were tried already
        lines = [part for part in block.parts if isinstance(part, str)]
        # All parts must be lines: a fence among them means that the lines are prose
        if len(lines) == len(block.parts) and (found := _find_lines(lines)):
            code = dedent("\n".join(lines[slice(*found)])).strip("\n")
            return Program(code, {number: frozenset(range(*found))}, (NO_FENCE,))
        missing = (NO_PYTHON,)
    return Program(remarks=missing)


def _find_lines(lines: Sequence[str]) -> tuple[int, int] | None:
    """Return where a program starts and ends among the lines. A few words may precede it."""
    # Prose may come first, so later lines that begin like Python are tried
    begins = [place for place in range(1, len(lines)) if _BEGINS.match(lines[place])]
    for start in [0, *begins[:_BEGINNINGS]]:
        if count := _python_lines(lines[start:]):
            return start, start + count
    return None


def _python_lines(lines: Sequence[str]) -> int:
    """Return how many of the first lines form a program, which prose may follow; 0 if none do."""
    # Prose may follow after a blank line; ends are tried from the last
    ends = [place for place in range(1, len(lines)) if not lines[place - 1].strip() and lines[place][:1].strip()]
    for end in [len(lines), *reversed(ends[-_ENDINGS:])]:
        if is_program("\n".join(lines[:end])):
            return end
    return 0


def _has_effect(node: ast.stmt) -> bool:
    """True if a statement is more than a word, number, text or JSON, which are valid Python too."""
    idle = ast.Name | ast.Constant | ast.Tuple | ast.Dict | ast.List
    return not (isinstance(node, ast.Expr) and isinstance(node.value, idle))
