"""The table of events: who writes and who reads each kind, from `KINDS` and the code of the product.

`python -m tests.support.event_table` writes it into workers/record/EVENTS.md; a test compares the two.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests import ROOT
from workers.record.events import KINDS, Audience, Kind

PAGE = ROOT / "workers/record/EVENTS.md"
EVENTS = "workers.record.events"
HEAD = """# The events of a run, and who writes and reads each

`.venv/bin/python -m tests.support.event_table` writes this page from `KINDS` and from the code; a test compares them.
Each kind is a class of `events.py`, which describes its fields. The agent and the worker append events through
`workers/agent/run_log.py`, people and imports through `experiments/core/transcript.py`. `decoding.py`, the API,
exports, imports and `experiments/display/events.py`, with a template for each kind, read all kinds; the table names the
other readers. A reader with a share link does not see the fields in the last column, and sees names of people only if
the creator of the link chose so.

| kind | what it says | written by | looked for by | the run is then | hidden |
|---|---|---|---|---|---|
"""
EVERYBODYS = ("experiments/display/events.py", "experiments/core/transcript.py")
"""What reads all kinds, and is not named again for those that it treats apart."""


@dataclass(frozen=True)
class Module:
    """What one module of the product says of events."""

    name: str
    calls: frozenset[str]
    """Classes of payloads that it makes."""
    uses: frozenset[str]
    """Classes that it looks for."""
    kinds: frozenset[str]
    """Kinds that it compares with or asks the database for."""
    words: frozenset[str]
    """All of its texts."""


def modules() -> list[Module]:
    """Those of the product that name a class of events or a kind, but for the table of kinds and what decodes them."""
    paths = [path for top in ("experiments", "workers") for path in sorted((ROOT / top).rglob("*.py"))]
    found = [_read(path) for path in paths if "migrations" not in path.parts and "record" not in path.parts]
    scripts = [_read_script(path) for path in sorted((ROOT / "static/js").rglob("*.js"))]
    return [each for each in [*found, *scripts] if each.calls or each.uses or each.kinds]


def _read(path: Path) -> Module:
    tree = ast.parse(path.read_text())
    nodes = list(ast.walk(tree))
    called = {id(node.func): node.func for node in nodes if isinstance(node, ast.Call)}
    names = _imported(nodes)
    calls = {name for node in called.values() if (name := _class_named(node, names))}
    uses = {name for node in nodes if id(node) not in called and (name := _class_named(node, names))}
    words = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return Module(
        str(path.relative_to(ROOT)),
        frozenset(calls),
        frozenset(uses),
        frozenset(_kinds_asked(nodes)),
        frozenset(words),
    )


def _read_script(path: Path) -> Module:
    """A script looks for kinds where it listens to the events of a run."""
    text = path.read_text()
    named = re.findall(r'"(\w+)"', text) if "run:event" in text else []
    return Module(str(path.relative_to(ROOT)), frozenset(), frozenset(), frozenset(named), frozenset())


def _imported(nodes: list[ast.AST]) -> dict[str, str]:
    """Name in the module -> class of events, or "" for the module of events itself."""
    found: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module == EVENTS:
            found |= {alias.asname or alias.name: alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom) and node.module == "workers.record":
            found |= {alias.asname or alias.name: "" for alias in node.names if alias.name == "events"}
    return found


def _class_named(node: ast.AST, names: dict[str, str]) -> str:
    """The class of events that an expression names, if it does."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        return names.get(node.id, "")
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and names.get(node.value.id) == "":
        return node.attr
    return ""


def _kinds_asked(nodes: list[ast.AST]) -> Iterator[str]:
    """Texts that are compared with a kind, or that a query asks for: `kind="reply"`, `event.kind in {…}`."""
    for node in nodes:
        if isinstance(node, ast.Compare) and "kind" in {_last_name(each) for each in (node.left, *node.comparators)}:
            yield from _texts(node)
        if isinstance(node, ast.Call) and _last_name(node.func) in {"filter", "exclude", "get"}:
            asked = [each.value for each in node.keywords if each.arg in {"kind", "kind__in"}]
            yield from (text for value in asked for text in _texts(value))


def _last_name(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _texts(node: ast.AST) -> list[str]:
    return [each.value for each in ast.walk(node) if isinstance(each, ast.Constant) and isinstance(each.value, str)]


def table() -> str:
    """The page, whole."""
    known = modules()
    return HEAD + "".join(_line(kind, row, known) for kind, row in KINDS.items())


def _line(kind: str, row: Kind, known: list[Module]) -> str:
    name = row.payload.__name__
    shared = sum(each.payload is row.payload for each in KINDS.values()) > 1
    writers = [each.name for each in known if name in each.calls and (kind in each.words or not shared)]
    readers = [each.name for each in known if name in each.uses or kind in each.kinds]
    says = (row.payload.__doc__ or "").partition(".")[0]
    cells = (
        f"`{kind}`",
        f"`{name}`: {says[:1].lower()}{says[1:]}",
        _listed(writers),
        _listed(each for each in readers if each not in EVERYBODYS),
        row.status.label.lower() if row.status else "",
        ", ".join(row.hidden.get(Audience.LINK, ())),
    )
    return f"| {' | '.join(cells)} |\n"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


if __name__ == "__main__":
    PAGE.write_text(table())
