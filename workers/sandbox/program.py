"""Read the text of a program: its style, and the definitions that it leaves to the next as source.

Kept are imports, functions and classes at the top level of a program, without the entry points and the names that every
program has. Definitions are run only in the child, where running a program's own words again gives it nothing new.
"""

from __future__ import annotations

import ast
import re
import signal
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from workers.sandbox import failure

ENTRY_POINTS = ("run_experiment", "execute_command")
"""Functions of (system, tools) that are called once the program is defined (paper, appendix A; code of 2024)."""
PROGRAM_CHARS = 1_000_000
"""Maximum length of a program: parsing takes a hundred times its size in memory."""
ProgramStyle = Literal["function", "script"]

MAX_CHARS = 100_000
"""Maximum length of all kept source."""
SECONDS = 10.0
"""Seconds in which all of it has to be defined again."""

Sources = Mapping[str, str]
"""Name that a definition binds -> its source. A dotted import is kept under its dotted name, a star import under its
whole line.
"""


def program_style(program: str) -> ProgramStyle:
    """Return "function" if an entry point is defined at top level, else "script"; what cannot be parsed is a script."""
    tree = _parse(program) if len(program) <= PROGRAM_CHARS else None
    return "function" if tree and find_entry_points(tree) else "script"


def find_entry_points(tree: ast.Module) -> list[ast.FunctionDef]:
    """Return the entry points defined at top level, in the order of the text."""
    return [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in ENTRY_POINTS]


def find_definitions(program: str) -> dict[str, str]:
    """Return the definitions of a program, in its order; none if it is not Python."""
    tree = _parse(program)
    lines = re.split(r"\r\n|\r|\n", program)
    found: dict[str, str] = {}
    for node in tree.body if tree else ():
        for name, source in _list_sources(node, lines):
            # A name that is defined twice moves to the end: the later definition may use what lies between them.
            found.pop(name, None)
            found[name] = source
    return found


def select_used(program: str, kept: Sources) -> dict[str, str]:
    """Return the kept definitions that a program uses, directly or through others, in the order in which they were
    kept."""
    bound: dict[str, list[str]] = {}
    for name in kept:
        bound.setdefault(bound_name(name), []).append(name)
    # A star import may bind any name, so it is always run.
    wanted = {name for name in kept if "*" in name}
    waiting = [program, *(kept[name] for name in wanted)]
    while waiting:
        new = {name for word in _words(waiting.pop()) for name in bound.get(word, ())} - wanted
        wanted |= new
        waiting += [kept[name] for name in new]
    return {name: source for name, source in kept.items() if name in wanted}


def define(sources: Sources, namespace: dict[str, Any]) -> dict[str, str]:
    """Run definitions in a namespace; return the names of those that failed, and why. Never raises."""
    failed: dict[str, str] = {}
    failure.show_source("\n\n".join(sources.values()), failure.EARLIER)
    flags, line = annotations.compiler_flag, 0
    with _Clock() as clock:
        for name, source in sources.items():
            try:
                clock.start()
                # Each definition is compiled with its own place in the joined source, so that tracebacks quote the
                # right lines.
                code = compile("\n" * line + source, failure.EARLIER, "exec", flags, dont_inherit=True)
                exec(code, namespace)  # noqa: S102 this is what the child is for
            except BaseException as error:  # noqa: BLE001 the program's own words may raise anything
                failed[name] = f"{type(error).__name__}: {error}"[:200]
            finally:
                clock.running = False
            line += source.count("\n") + 2
    return failed


def fit_budget(sources: Sources) -> tuple[dict[str, str], list[str]]:
    """Return the definitions that may be kept, and the names of the others, which are the longest."""
    left, kept = MAX_CHARS, set()
    # The shortest first, so that as many as possible fit.
    for name in sorted(sources, key=lambda name: len(sources[name])):
        left -= len(sources[name]) + len(name)
        if left >= 0:
            kept.add(name)
    fitting = {name: source for name, source in sources.items() if name in kept}
    return fitting, [name for name in sources if name not in kept]


def bound_name(name: str) -> str:
    """Return the name in the namespace: that of the package for a dotted import."""
    return name.partition(".")[0]


def _list_sources(node: ast.stmt, lines: list[str]) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield alias.asname or alias.name, ast.unparse(ast.Import([alias]))
    elif isinstance(node, ast.ImportFrom) and node.module != "__future__":
        for alias in node.names:
            source = ast.unparse(ast.ImportFrom(node.module, [alias], node.level))
            yield source if alias.name == "*" else alias.asname or alias.name, source
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name not in ENTRY_POINTS:
        # A function's own line comes after its decorators.
        first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
        yield node.name, "\n".join(lines[first - 1 : node.end_lineno])


def _words(source: str) -> Iterable[str]:
    """Return every name that a piece of source mentions."""
    tree = _parse(source)
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} if tree else ()


def _parse(source: str) -> ast.Module | None:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


class _Clock:
    """Ends running code when the time is up, and lets none start after that. Ticks in a `with` block."""

    def __enter__(self) -> _Clock:
        self.running = self.late = False
        self.before = signal.signal(signal.SIGALRM, self.expire)
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self.before)

    def start(self) -> None:
        # The alarm rings only once; a definition that swallows the error must not let the next one start.
        if self.late:
            raise TimeoutError(f"the definitions together took longer than {SECONDS:g} s")
        self.running = True

    def expire(self, *_: object) -> None:
        self.late = True
        if self.running:
            self.start()
