"""Read state dicts as people save them: under any key of a checkpoint, with any prefix before the names of the
weights.

Code in a file is never run. Only numbers and text are read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor
from torch.serialization import get_unsafe_globals_in_checkpoint, safe_globals

from workers import git_lfs
from workers.errors import MissingPart
from workers.weights import get_first_line, loading

DEPTH = 4
"""Maximum depth of a state dict in a checkpoint."""
_MAX_QUOTED = 3
"""Maximum number of names that a message quotes."""


class _Unread:
    """Replaces every class and function that a file names. It accepts anything, keeps nothing and has no code."""

    def __new__(cls, *_: Any, **__: Any) -> _Unread:
        return super().__new__(cls)

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def __setstate__(self, state: Any) -> None: ...


def load_pickle(path: Path) -> Any:
    """Return what PyTorch saved in a file. Objects other than numbers and text are left unread."""
    # Classes in the pickle are replaced, not refused: checkpoints hold more than weights, such as arguments.
    try:
        named = get_unsafe_globals_in_checkpoint(path)
    except ValueError:  # the format before PyTorch 1.6, whose objects are refused
        named = []
    with loading, safe_globals([(_Unread, name) for name in named]):
        return torch.load(path, map_location="cpu", weights_only=True)


def read_state_dict(
    path: Path, anchor: str, what: str, remedy: str, load: Callable[[Path], Any] = load_pickle
) -> dict[str, Tensor]:
    """Return the weights of the network that has a weight called `anchor`, by their names in that network.

    `what` names the kind of network and `remedy` what to do about another file, for messages. Raises MissingPart if
    the file cannot be read, or holds no such network or several.
    """
    found = dict(_list_tensors(_read_file(path, load)))
    # The anchor's prefix is the network's: "module." of parallel training, "state_dict.", "encoder.".
    starts = sorted(name.removesuffix(anchor) for name in found if f".{name}".endswith(f".{anchor}"))
    if not found:
        raise MissingPart(f"{path} holds no state dict: there is no tensor in it. Save `model.state_dict()`.")
    if not starts:
        raise MissingPart(
            f"{path} holds no {what}: none of its {len(found):,} tensors is called {anchor}. They are called "
            f"{_quote(found)}. {remedy}"
        )
    if len(starts) > 1:
        raise MissingPart(
            f"{path} holds {len(starts)} networks, whose names begin with {_quote(starts)}. Save the state dict of the "
            "one that is meant in a file of its own."
        )
    return {name.removeprefix(starts[0]): value for name, value in found.items() if name.startswith(starts[0])}


def _read_file(path: Path, load: Callable[[Path], Any]) -> Any:
    # Before it is read: a Git LFS pointer would look like a damaged file.
    with path.open("rb") as file:
        if git_lfs.is_pointer(file.read(64)):
            raise MissingPart(f"{path} is {git_lfs.EXPLAINED}.")
    try:
        return load_file(path) if path.suffix == ".safetensors" else load(path)
    except UnpicklingError as error:
        named = re.search(r"GLOBAL (\S+)", str(error))
        raise MissingPart(
            f"{path} holds objects{f' ({named[1]})' if named else ''} that only code of its own could make, and "
            "nothing in a file is run. Save the weights alone: torch.save(model.state_dict(), 'weights.pth')."
        ) from error
    except Exception as error:
        raise MissingPart(f"{path} cannot be read as weights: {get_first_line(error)} Fetch the file again.") from error


def _list_tensors(found: Any, before: str = "", depth: int = DEPTH) -> Iterator[tuple[str, Tensor]]:
    """List the tensors in what was loaded, by all the keys that lead to each."""
    if isinstance(found, Tensor):
        # The last key of a tensor has a dot behind it.
        yield before.removesuffix("."), found
    # Bounded, since a dictionary may contain itself.
    elif isinstance(found, Mapping) and depth:
        for key, value in found.items():
            yield from _list_tensors(value, f"{before}{key}.", depth - 1)


def _quote(names: Collection[str]) -> str:
    quoted = [f"“{name}”" for name in [*names][:_MAX_QUOTED]]
    return f"{', '.join(quoted)}{' …' if len(names) > _MAX_QUOTED else ''}"
