"""One word for one thing: a class name stands once in each half, functions are verbs, a constant is set once."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests import ROOT
from tests.support import on_postgres

WORD = re.compile(r"[A-Za-z_$][\w$]*")
POETRY = set(
    WORD.findall("whence standing kin gist bell babble crumbs kit trail sight discretion counter fate luck roster")
)
PARTICIPLES = set(
    WORD.findall("""
    told drawn shown chosen heard kept made seen said meant named listed joined found given taken held gone came went
    begun copied merged parted quoted labelled written counted measured described unread unheard needed opened closed
    decoded encoded stored gathered numbered ordered ranked marked offered refused shortened suggested titled
    """)
)
"""A function of such a name does not say what it does. What ruff's N says of names is not said again here."""

DJANGO = {"Command", "Meta", "Media"}
HALVES = ("experiments", "workers")
CODE = ("experiments", "workers", "maia_web", "tests")


def sources(*tops: str) -> Iterator[Path]:
    for top in tops:
        yield from (path for path in sorted((ROOT / top).rglob("*.py")) if "migrations" not in path.parts)


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(path.read_text())))


def where(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_a_public_class_name_stands_once_in_each_half() -> None:
    for half in HALVES:
        places: dict[str, list[str]] = defaultdict(list)
        for path in sources(half):
            for node in nodes(path):
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and node.name not in DJANGO:
                    places[node.name].append(where(path))
        assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_limits_are_called_max_min_and_default() -> None:
    """As in every library: MAX_RUNS, not MOST_RUNS; the first parameter of an action is `actor`.

    The bytes of `render.py` are part of the revision of toybox's pictures, so it keeps its constant.
    """
    retired = re.compile(r"_?(MOST|LEAST|FEWEST|SMALLEST|LARGEST|LONGEST|USUAL)(_[A-Z_]+)?")
    named = [
        f"{where(path)}: {node.id}"
        for path in sources(*HALVES, "maia_web")
        if path.name != "render.py"
        for node in nodes(path)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and retired.fullmatch(node.id)
    ]
    by = [where(path) for path in sources(*HALVES) if re.search(r"\bby: Actor\b", path.read_text())]
    assert (named, by) == ([], [])


def test_functions_are_called_by_verbs() -> None:
    """A property may be an adjective of what it belongs to."""
    named = [
        f"{where(path)}: {node.name}"
        for path in sources(*HALVES, "maia_web")
        for node in nodes(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.strip("_") in PARTICIPLES | POETRY
        if not any("property" in ast.unparse(each) for each in node.decorator_list)
    ]
    assert named == []


def test_what_one_file_alone_uses_says_so() -> None:
    """By an underscore; what a decorator hands to somebody is not asked."""
    files = [
        path for top in (*CODE, "templates") for path in (ROOT / top).rglob("*") if path.suffix in {".py", ".html"}
    ]
    used = Counter(word for path in files for word in set(WORD.findall(path.read_text())))
    public = [
        f"{where(path)}: {node.name}"
        for path in sources(*HALVES, "maia_web")
        for node in nodes(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.col_offset == 0
        if not node.name.startswith("_") and not node.decorator_list and used[node.name] == 1
    ]
    assert public == []


def constants(path: Path) -> Iterator[str]:
    """What a module sets for good, as often as it does."""
    for node in ast.parse(path.read_text()).body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        named = [each for target in targets for each in getattr(target, "elts", [target])]
        yield from (each.id for each in named if isinstance(each, ast.Name) and each.id.isupper())


def test_a_constant_is_set_once() -> None:
    twice = {
        where(path): [name for name, times in Counter(constants(path)).items() if times > 1] for path in sources(*CODE)
    }
    assert {path: names for path, names in twice.items() if names} == {}


def test_the_list_of_postgresql_names_files_that_exist() -> None:
    assert len(on_postgres.list_paths()) == len(set(on_postgres.FILES))
    with pytest.raises(SystemExit, match=r"do not exist: tests/core/test_gone\.py\."):
        on_postgres.list_paths(["core/test_audit", "core/test_gone"])
