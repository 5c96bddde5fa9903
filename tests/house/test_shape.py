"""The shape of the code that ruff does not see: lengths in lines, names of files, promises in any language."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests import ROOT

TOPS = ("maia_web", "experiments", "workers", "tests", "templates", "static", "docker")
NAMELESS = {"utils", "util", "helpers", "helper", "common", "misc", "manager", "managers", "tools_common"}
WRITTEN = {".py", ".js", ".css", ".html", ".md"}

FILES = [
    path
    for top in TOPS
    for path in sorted((ROOT / top).rglob("*"))
    if path.suffix in WRITTEN and "migrations" not in path.parts
] + [ROOT / "manage.py", ROOT / "README.md"]
SOURCES = [path for path in FILES if path.suffix == ".py"]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def functions(path: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    tree = ast.parse(path.read_text())
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def test_no_file_has_over_400_lines() -> None:
    lengths = {name_of(path): len(path.read_text().splitlines()) for path in FILES}
    assert {name: length for name, length in lengths.items() if length > 400} == {}


def test_no_function_has_over_60_lines() -> None:
    lengths = {
        f"{name_of(path)}:{each.name}": (each.end_lineno or 0) - each.lineno + 1
        for path in SOURCES
        for each in functions(path)
    }
    assert {name: length for name, length in lengths.items() if length > 60} == {}


def test_a_file_is_named_for_what_it_holds() -> None:
    assert [name_of(path) for path in FILES if {path.stem, *path.relative_to(ROOT).parts[:-1]} & NAMELESS] == []


def test_nothing_is_left_for_later() -> None:
    promise = re.compile(r"\b(?:TODO|FIXME|XXX)\b|\bfor now\b")
    others = [path for path in FILES if path != Path(__file__)]
    assert [name_of(path) for path in others if promise.search(path.read_text())] == []
