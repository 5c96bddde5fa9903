"""Check what a program passes to the game engine, and build the grid of views that its lists ask for.

A language model wrote the program: types, bounds and the number of images are checked here, by the table in
`record/engine_parameters.py`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from workers.errors import ToolMisuse
from workers.lab import arguments
from workers.record.engine_parameters import CAMERAS, ENGINE_PARAMETERS, format_parameter

MAX_SEED = 2**31 - 1


@dataclass(frozen=True)
class EngineRequest:
    """One requested image. `row` is the position of its prompt; `seed` is None where the run chooses it."""

    row: int
    prompt: str
    seed: int | None
    given: Mapping[str, float]

    @property
    def title(self) -> str:
        """The prompt, then the parameters that the program gave."""
        return ", ".join([self.prompt, *(format_parameter(name, value) for name, value in self.given.items())])


def build_requests(prompts: Any, options: Mapping[str, Any]) -> list[EngineRequest]:
    """Check a call and list its images: for each prompt all combinations, the last parameter changing fastest.

    `options` holds what was given by name, None for what was not. Raises ToolMisuse.
    """
    words = arguments.check_texts(prompts, "prompts")
    # None: the run chooses it, and all images of a prompt share it.
    seeds = (
        [None] if options.get("seed") is None else [_check_seed(each) for each in _parse_list(options["seed"], "seed")]
    )
    axes = [_list_values(name, options[name]) for name in ENGINE_PARAMETERS if options.get(name) is not None]
    total = math.prod([len(words), len(seeds), *map(len, axes)])
    # Before the list is built: a few long lists multiply to millions of images.
    if total > arguments.MAX_ITEMS:
        factors = " x ".join(str(n) for n in [len(words), len(seeds), *map(len, axes)] if n > 1)
        raise ToolMisuse(
            f"This asks for {total:,} images ({factors}); one call draws {arguments.MAX_ITEMS} at most. "
            "Pass fewer prompts or values, or call several times."
        )
    return [
        # A camera may set two parameters at once, so each axis gives dictionaries.
        EngineRequest(row, prompt, seed, {name: value for part in parts for name, value in part.items()})
        for row, prompt in enumerate(words)
        for seed in seeds
        for parts in product(*axes)
    ]


def _list_values(name: str, value: Any) -> list[dict[str, float]]:
    """List the values of one parameter; those of the camera may include an elevation."""
    if name == "camera":
        # A tuple is one camera position, a list is a sweep
        given = [value] if isinstance(value, tuple) else _parse_list(value, name)
        return [_check_camera(each) for each in given]
    return [{name: _check_value(name, each)} for each in _parse_list(value, name)]


def _parse_list(value: Any, name: str) -> Sequence[Any]:
    if not isinstance(value, list | tuple):
        return [value]
    if not value:
        raise ToolMisuse(f"{name} is an empty list. Pass one value, a list of values, or leave it out.")
    # Before each value is checked: the list comes from a program, and may have any length.
    if len(value) > arguments.MAX_ITEMS:
        raise ToolMisuse(
            f"{name} holds {len(value)} values; one call takes {arguments.MAX_ITEMS} at most. Call several times."
        )
    return value


def _check_camera(value: Any) -> dict[str, float]:
    if isinstance(value, str):
        if value not in CAMERAS:
            raise ToolMisuse(f"camera must be degrees or one of {', '.join(CAMERAS)}, but is {value[:40]!r}.")
        return dict(zip(("camera", "elevation"), CAMERAS[value], strict=True))
    if isinstance(value, list | tuple):
        if len(value) != 2:
            raise ToolMisuse(f"camera must be (azimuth, elevation), two numbers, but has {len(value)} parts.")
        return {name: _check_value(name, each) for name, each in zip(("camera", "elevation"), value, strict=True)}
    return {"camera": _check_value("camera", value)}


def _check_value(name: str, value: Any) -> float:
    """Return a number within the bounds of its parameter."""
    known = ENGINE_PARAMETERS[name]
    kind = "whole number" if known.is_whole else "number"
    wanted = f"{name} must be a {kind} from {known.least:g} to {known.most:g} ({known.meaning})"
    number = arguments.check_number(value, wanted)
    if not known.least <= number <= known.most or (known.is_whole and number != int(number)):
        raise ToolMisuse(f"{wanted}, but is {number:g}.")
    return number


def _check_seed(value: Any) -> int:
    wanted = f"seed must be a whole number from 0 to {MAX_SEED}"
    number = arguments.check_number(value, wanted)
    # 2.0 is a whole number too.
    if number != int(number) or not 0 <= number <= MAX_SEED:
        raise ToolMisuse(f"{wanted}, but is {number:g}.")
    return int(number)
