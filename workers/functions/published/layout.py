"""The published layout of FIND's benchmark, read from a folder: rows and files in memory.

Nothing in it is imported or run. Links that lead out of the folder are not followed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from workers.errors import MissingPart
from workers.functions.black_box import Family
from workers.functions.published.rows import (
    ROWS,
    TEST_ROWS,
    Row,
    UnitTest,
    convert_row,
    read_folder_number,
    read_number,
)

CATEGORIES: Mapping[Family, str] = {
    "numeric": "numeric",
    "strings": "strings",
    "concepts": "neurons_entities",
    "relations": "neurons_relations",
}
"""Family -> name of its published folder."""
CODE, WEIGHTS, INITIAL = "function_code.py", "mlp_approx_model.pt", "initial.json"
_LISTS: Mapping[Family, str] = {
    "numeric": "data.json",
    "strings": "test_data.json",
    "concepts": "data.json",
    "relations": "data.json",
}
_TESTS, _SHIPPED = "unit_test_data.json", "func_name_dict.json"
# The archive may be unpacked here, or in the folders that the publication's repository has
_PLACES = ("", "find-dataset", "src/find-dataset")
_MAX_DOCUMENT = 64 << 20
_MAX_FILE = 1 << 20
"""Maximum bytes of a function's file that is read; larger ones are only copied."""
_T = TypeVar("_T")


@dataclass(frozen=True)
class Document:
    """A JSON file. One that cannot be parsed keeps its bytes."""

    data: bytes
    content: Any = None
    trouble: str = ""
    source: Path | None = None
    """Path of one that is too large to be read."""


@dataclass(frozen=True)
class FunctionFiles:
    """The files in the folder of a function."""

    files: Mapping[str, bytes]
    too_large: Mapping[str, Path] = field(default_factory=dict)
    trouble: str = ""
    """Why the folder is not read, or not all of it; "" if it is."""


@dataclass(frozen=True)
class Category:
    """The content of a family's folder. Entries and folders go by the number of the function."""

    family: Family
    documents: Mapping[str, Document] = field(default_factory=dict)
    functions: Mapping[int, FunctionFiles] = field(default_factory=dict)
    rows: Mapping[int, Row] = field(default_factory=dict)
    tests: Mapping[int, UnitTest] = field(default_factory=dict)
    shipped: Mapping[int, str] = field(default_factory=dict)
    """For numeric functions, the name of the file that became function_code.py, which shows the variant."""
    odd: Mapping[int, str] = field(default_factory=dict)
    """Functions whose entry is repeated or of another form, with the reason."""
    troubles: tuple[str, ...] = ()
    """Entries and folders that belong to no function."""
    unreadable: str = ""
    """Why none of its functions can be used; "" if they can."""


@dataclass(frozen=True)
class Benchmark:
    """The published benchmark, or the part of it that is here."""

    folder: Path
    categories: Mapping[Family, Category]

    def digest(self) -> str:
        """Return a hash that changes with the name or content of any file, of those over 1 MB with their size alone."""
        found = sha256()
        # Sorted, so that the digest does not depend on the order of the file system
        for family, category in self.categories.items():
            found.update(f"{family} {category.unreadable}".encode("utf-8", "replace"))
            for name, document in sorted(category.documents.items()):
                found.update(name.encode("utf-8", "replace") + sha256(document.data).digest())
            for number, each in sorted(category.functions.items()):
                # The trouble too: a repaired folder is another benchmark
                found.update(f"{number} {each.trouble}".encode("utf-8", "replace"))
                # "replace", because file names may hold bytes that are not UTF-8
                for name, data in sorted(each.files.items()):
                    found.update(name.encode("utf-8", "replace") + sha256(data).digest())
                for name, path in sorted(each.too_large.items()):
                    # By size alone: large files are never read
                    found.update(f"{name} {path.stat().st_size if path.exists() else 0}".encode("utf-8", "replace"))
        return found.hexdigest()[:16]


def find_root(folder: str | Path) -> Path:
    """Return the folder with the families' folders: the named one, or one in it. Raises MissingPart."""
    try:
        named = Path(folder).expanduser()
        places = [named / place for place in _PLACES]
        found = [root for root in places if any((root / name).is_dir() for name in CATEGORIES.values())]
        if found:
            # Resolved once, so that links are compared with the true folder
            return found[0].resolve()
        why = f"{named} has none of the folders {', '.join(CATEGORIES.values())}" if named.is_dir() else ""
    except (OSError, RuntimeError) as error:  # a name that is too long, or "~" of no user
        why = f"{str(folder)[:80]!r} cannot be read: {str(error)[:200]}"
    raise MissingPart(
        f"{why or f'There is no folder {folder}'}. Download FIND's benchmark from zenodo.org, record 8039658, unzip "
        "it, and name the folder find-dataset, or one that holds it."
    )


def read_layout(folder: str | Path) -> Benchmark:
    """Return the benchmark in a folder, with its defects. Raises MissingPart if there is none."""
    root = find_root(folder)
    try:
        here = {family: root / name for family, name in CATEGORIES.items() if (root / name).is_dir()}
        return Benchmark(root, {family: _read_category(path, family, root) for family, path in here.items()})
    except OSError as error:
        raise MissingPart(f"{root} cannot be read: {error}. Give the worker's user the right to read it.") from error


def _read_category(path: Path, family: Family, root: Path) -> Category:
    # 1. Nothing outside the folder is read, even through a link
    if not _is_inside(path, root):
        return Category(family, unreadable=f"{path.name} is a link that leads out of the folder")
    # 2. All lists and folders, with what is wrong with each
    documents = {each.name: _read_document(each, root) for each in sorted(path.glob("*.json")) if each.is_file()}
    functions, strange = _read_functions(path, root)
    rows, odd, unknown = _read_entries(documents, family, _LISTS[family], partial(convert_row, kind=ROWS[family]))
    # 3. Lists without which no function of the family can be scored
    needed = [_LISTS[family], _SHIPPED if family == "numeric" else _TESTS]
    tests: Mapping[int, UnitTest] = {}
    if family in TEST_ROWS:
        tests, odd_tests, unknown_tests = _read_entries(
            documents, family, _TESTS, partial(convert_row, kind=TEST_ROWS[family])
        )
        # What the list itself says weighs more than what the tests say
        odd, unknown = odd_tests | odd, unknown + unknown_tests
    broken = [
        f"{path.name}/{name}: {documents[name].trouble if name in documents else 'it is not there'}"
        for name in needed
        if name not in documents or documents[name].trouble
    ]
    shipped = _read_shipped(documents.get(_SHIPPED))
    troubles = (*unknown, *strange)
    return Category(family, documents, functions, rows, tests, shipped, odd, troubles, "; ".join(broken))


def _read_document(path: Path, root: Path) -> Document:
    """Return a JSON file, which is a list, or for the variants a dict."""
    if not _is_inside(path, root):
        return Document(b"", None, "it is a link that leads out of the folder")
    if path.stat().st_size > _MAX_DOCUMENT:
        return Document(b"", None, f"it has over {_MAX_DOCUMENT >> 20} MB", path)
    data = path.read_bytes()
    wanted = dict if path.name == _SHIPPED else list
    try:
        # Python's parser accepts lone surrogates, which no encoder does
        content = json.loads(data)
        json.dumps(content, ensure_ascii=False).encode()  # half a character can be neither shown nor stored
    except (ValueError, RecursionError) as error:
        return Document(data, None, f"it is no JSON ({str(error)[:100]})")
    if path.name in (*_LISTS.values(), _TESTS, _SHIPPED) and not isinstance(content, wanted):
        return Document(data, None, f"it holds a {type(content).__name__}, and no {wanted.__name__}")
    return Document(data, content)


def _read_entries(
    documents: Mapping[str, Document], family: Family, name: str, convert: Callable[[Any], _T]
) -> tuple[dict[int, _T], dict[int, str], tuple[str, ...]]:
    """Return the typed entries of a list by number; those that are repeated or of another form; those of no
    function."""
    document = documents.get(name)
    entries = document.content if document and not document.trouble else []
    found: dict[int, _T] = {}
    odd: dict[int, str] = {}
    unknown = []
    for place, entry in enumerate(entries):
        # 1. To which function it belongs
        try:
            number = read_number(entry, family)
        except ValueError as error:
            unknown.append(f"entry {place} of {name}: {error}")
            continue
        # 2. The first entry may be the wrong one, so a repeated number is not used at all
        if number in found or number in odd:
            odd[number] = f"of two versions: {name} lists it more than once"
            continue
        # 3. Its form
        try:
            found[number] = convert(entry)
        except ValueError as error:
            odd[number] = f"its entry in {name} is not as published: {error}"
    # Callers drop what is both found and odd: see `conflicts.explain_trouble`
    return found, odd, tuple(unknown)


def _read_shipped(document: Document | None) -> dict[int, str]:
    content = document.content if document and not document.trouble else {}
    pairs = ((read_folder_number(key), value) for key, value in content.items())
    return {number: value for number, value in pairs if number is not None and isinstance(value, str)}


def _read_functions(path: Path, root: Path) -> tuple[dict[int, FunctionFiles], tuple[str, ...]]:
    """Return the folders of functions by number, and those of other names."""
    found, strange = {}, []
    # Sorted: "strange" is shown, and the file system's order is arbitrary
    for folder in sorted(path.iterdir()):
        number = read_folder_number(folder.name)
        if number is not None and folder.is_symlink() and not _is_inside(folder, root):
            found[number] = FunctionFiles({}, trouble="its folder is a link that leads out of the benchmark's")
        elif number is not None and folder.is_dir():
            found[number] = _read_files(folder, root)
        # Python leaves this folder where code was run
        elif folder.is_dir() and folder.name != "__pycache__":
            strange.append(f"the folder {folder.name[:80]!r} is not named as a function's, such as 'f00017'")
    return found, tuple(strange)


def _read_files(folder: Path, root: Path) -> FunctionFiles:
    files, too_large, outside = {}, {}, []
    for path in sorted(folder.iterdir()):
        if not _is_inside(path, root):
            outside.append(path.name)
        elif path.is_file():
            # Weights of other networks may be huge: only their path is kept
            if path.stat().st_size > _MAX_FILE:
                too_large[path.name] = path
            else:
                files[path.name] = path.read_bytes()
    trouble = f"{outside[0][:80]!r} is a link that leads out of the benchmark's folder" if outside else ""
    return FunctionFiles(files, too_large, trouble)


def _is_inside(path: Path, root: Path) -> bool:
    try:
        return path.resolve(strict=True).is_relative_to(root)
    except (OSError, RuntimeError):  # a link to nothing, or to itself
        return False
