"""Write FIND's benchmark in its published layout: reading and writing a folder gives the same files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from workers.errors import RequestError
from workers.functions.published.layout import CATEGORIES, Benchmark, Document


def write_layout(benchmark: Benchmark, folder: str | Path) -> None:
    """Write the benchmark as it is published; the same JSON, and every other file byte for byte.

    Raises RequestError for a folder that is not empty.
    """
    root = Path(folder).expanduser()
    # Never into a folder with files: a mixture would be of two versions
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise RequestError(f"{root} is not an empty folder: name one that is empty, or that does not exist yet.")
    for family, category in benchmark.categories.items():
        path = root / CATEGORIES[family]
        path.mkdir(parents=True, exist_ok=True)
        for name, document in category.documents.items():
            _write_document(document, path / name)
        for number, each in category.functions.items():
            own = path / f"f{number:05d}"
            own.mkdir()
            for name, data in each.files.items():
                (own / name).write_bytes(data)
            for name, source in each.too_large.items():
                shutil.copyfile(source, own / name)


def _write_document(document: Document, path: Path) -> None:
    if document.source:
        shutil.copyfile(document.source, path)
    elif not document.trouble:
        # Parsed content is written anew; what could not be parsed is copied byte for byte
        path.write_text(json.dumps(document.content), encoding="utf-8")
    elif document.data:
        path.write_bytes(document.data)
