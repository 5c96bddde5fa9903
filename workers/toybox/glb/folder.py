"""Read the folder of `.glb` files that adds nouns to the game engine, and say why files are left out.

A file is read when it is first needed, and again when its size or time has changed. Safe for threads.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from workers.toybox.glb.container import GlbRefused, parse_glb, read_file
from workers.toybox.glb.geometry import build_surfaces, fit_toy
from workers.toybox.world.surfaces import AddedToy
from workers.toybox.world.words import explain_clash, list_plurals

MAX_FILES = 64
"""Maximum number of files in a folder. All of them are kept in memory."""
_ENDING = ".glb"
_NOUN = re.compile(r"[a-z]+(?: [a-z]+){0,3}")
_MAX_NOUN = 40
_DIGITS = 12
"""Digits of the SHA-256 that are stored with an image."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class FolderReading:
    """The toys of a folder by noun, and a sentence about each file that is left out."""

    toys: Mapping[str, AddedToy] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Known:
    """A file as last read: its time and size, and the toy or the reason why there is none."""

    # Time and size: changed when the file is overwritten, and cheap to compare at each reading
    stamp: tuple[int, int]
    toy: AddedToy | None
    problem: str = ""


class ToyFolder:
    """Reads a folder repeatedly. `latest` is the last result, for callers that must not wait."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder).expanduser() if folder else None
        self._known: dict[str, _Known] = {}
        self._lock = threading.Lock()
        self.latest = FolderReading()

    def read(self) -> FolderReading:
        """Read the folder now. Each new problem is logged once."""
        if self._folder is None:
            return self.latest
        # Several threads may read at once; the cache and `latest` change together
        with self._lock:
            found = self._read(self._folder)
            for problem in found.problems:
                # A problem that was there at the last reading is in the log already
                if problem not in self.latest.problems:
                    log.warning("A toy is left out of the game engine. %s", problem)
            self.latest = found
        return found

    def _read(self, folder: Path) -> FolderReading:
        try:
            # Sorted, so that the first `MAX_FILES` are the same at every reading
            names = sorted(each.name for each in os.scandir(folder) if each.name.lower().endswith(_ENDING))
        except OSError as error:
            told = f"MAIA_GAME_MODELS={str(folder)!r} cannot be read ({error.strerror}): name a folder of .glb files."
            return FolderReading(problems=(told,))
        problems = []
        if len(names) > MAX_FILES:
            more = f"The folder has {len(names):,} files; the first {MAX_FILES} by name are taken. Remove others."
            problems, names = [more], names[:MAX_FILES]
        # Forget files that are gone, so that memory is bounded by `MAX_FILES`
        self._known = {name: known for name, known in self._known.items() if name in names}
        nouns = {name: _find_noun(name) for name in names}
        clashes = _find_clashes(nouns)
        toys: dict[str, AddedToy] = {}
        for name, noun in nouns.items():
            problem = clashes.get(name, "")
            if not problem:
                known = self._look_at(folder / name)
                problem = known.problem
                if known.toy:
                    toys[noun] = known.toy
            if problem:
                problems.append(f"{name[:80]!r}: {problem}.")
        return FolderReading(toys, tuple(problems))

    def _look_at(self, path: Path) -> _Known:
        """Return the kept result for the file, or read it again if it has changed."""
        try:
            about = path.stat()
        except OSError as error:
            # Not kept: a broken link may get its target without a change that the stamp shows
            return _Known((0, 0), None, f"it cannot be read ({error.strerror}); remove it or give it a target")
        stamp, known = (about.st_mtime_ns, about.st_size), self._known.get(path.name)
        if known is None or known.stamp != stamp:
            known = self._known[path.name] = _read_toy(path, stamp)
        return known


def _read_toy(path: Path, stamp: tuple[int, int]) -> _Known:
    try:
        data = read_file(path)
        surfaces, shape = fit_toy(build_surfaces(parse_glb(data)))
    except GlbRefused as refusal:
        return _Known(stamp, None, str(refusal))
    except Exception as error:  # whatever a stranger's file brings about, the other toys stay
        log.warning("%s broke its reader", path.name, exc_info=True)
        return _Known(stamp, None, f"it cannot be read ({type(error).__name__}); export it again")
    return _Known(stamp, AddedToy(path.name, hashlib.sha256(data).hexdigest()[:_DIGITS], shape, surfaces))


# --- names ------------------------------------------------------------------------------------------


def _find_noun(name: str) -> str:
    """Return the noun of a file: "Fire-Hydrant.glb" is a fire hydrant."""
    return " ".join(re.split(r"[-_\s]+", name[: -len(_ENDING)].strip().lower())).strip()


def _find_clashes(nouns: Mapping[str, str]) -> dict[str, str]:
    """Return the files whose names cannot be added as nouns, and why."""
    said = Counter(noun for noun in nouns.values())
    # A noun that is another's plural would be ambiguous in prompts
    plurals = {each: noun for noun in said for each in list_plurals(noun)}
    found = {}
    for name, noun in nouns.items():
        if not _NOUN.fullmatch(noun) or len(noun) > _MAX_NOUN:
            found[name] = (
                f"its name is no noun; name it with one to four words of the letters a to z, {_MAX_NOUN} letters at "
                "most, such as fire-hydrant.glb"
            )
        elif said[noun] > 1:
            found[name] = f"several files have the noun {noun!r}; keep one of them"
        elif noun in plurals:
            found[name] = f"its name is the plural of {plurals[noun]!r}, which another file has; rename one of them"
        elif clash := explain_clash(noun):
            found[name] = f"{clash}; rename it"
    return found
