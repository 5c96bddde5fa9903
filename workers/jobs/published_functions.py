"""Examine published functions (FIND) in a folder, and copy the folder."""

from __future__ import annotations

from typing import Any, cast

from workers.functions.published.model import PublishedFunctions
from workers.functions.published.survey import survey_functions
from workers.functions.published.writer import write_layout
from workers.jobs import plugin_keys
from workers.jobs.laboratory import laboratory
from workers.protocols import Progress


def survey_folder(folder: str, progress: Progress) -> dict[str, Any]:
    """Count the listed, present and runnable functions of each family. Raises MissingPart if there is no benchmark. An
    exception in `progress` stops it."""
    model = _find_model(folder)
    return {
        "folder": str(model.benchmark.folder),
        "revision": model.revision,
        "families": survey_functions(model, progress),
    }


def copy_folder(folder: str, target: str) -> int:
    """Write the published layout into an empty folder. Return the number of functions. Raises RequestError."""
    benchmark = _find_model(folder).benchmark
    write_layout(benchmark, target)
    return sum(len(each.functions) for each in benchmark.categories.values())


def list_runnable(folder: str, family: str, count: int) -> tuple[str, list[int]]:
    """Return the model's key and up to `count` runnable functions of a family. Raises UnknownName."""
    model = _find_model(folder)
    found: list[int] = []
    for number in sorted(model.list_numbers(family)):
        if len(found) == count:
            break
        if not model.find_trouble(family, number):
            found.append(number)
    return model.name, found


def _find_model(folder: str) -> PublishedFunctions:
    """Return the model of a folder. Raises MissingPart."""
    key = plugin_keys.make_absolute(f"find:{folder}")
    return cast("PublishedFunctions", laboratory().model(key))
