"""Import the plug-ins that the settings and installed packages name, and add what they register to the registry.

Only workers and commands call this; see `workers.jobs.laboratory`.
"""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from importlib import import_module, metadata
from importlib.machinery import SourceFileLoader
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import CodeType
from typing import Any

from workers import registry
from workers.errors import MaiaError, UnknownName
from workers.plugins.deadline import find_outcome, start_call
from workers.plugins.parts import PluginOrigin
from workers.plugins.registrar import DESCRIBERS, EDITORS, GENERATORS, NOUNS, TOOLSETS, Registrar

log = logging.getLogger(__name__)

GROUP = "maia_web.plugins"
"""Group of the entry points of installed packages."""

_lock = threading.Lock()
_added: dict[tuple[str, str], PluginOrigin] = {}
"""Table and key of what plug-ins added in this process."""


@dataclass(frozen=True)
class PluginReport:
    """The result of loading one plug-in."""

    name: str
    path: str
    version: str
    keys: tuple[str, ...]
    """What it added, such as "vision model our-net"."""
    problem: str
    """Why it added nothing, with the remedy; "" if it did."""


@dataclass(frozen=True)
class _Source:
    """A plug-in before it is imported."""

    origin: PluginOrigin
    find: Callable[[], Any]
    """Imports it. Gives its function `register`, or what has one."""


class _FreshLoader(SourceFileLoader):
    """Compiles a file each time: Python's cache would miss an edit within the same second."""

    def get_code(self, fullname: str) -> CodeType:
        """Return the code of the file as it is now."""
        return self.source_to_code(self.get_data(self.get_filename(fullname)), self.path)


def load_plugins(named: Sequence[str], seconds: float) -> tuple[PluginReport, ...]:
    """Import the named files and modules, and the entry points; exceptions of plug-ins are reported, not raised."""
    with _lock:
        # A second call in one process, as in tests, starts from the parts of MAIA Web itself.
        for table, key in _added:
            getattr(registry, table).pop(key, None)
        _added.clear()
        # Sorted, so that a clash of keys always ends the same way
        entries = sorted(metadata.entry_points(group=GROUP), key=lambda each: each.name)
        # A plug-in that is named twice is loaded once
        sources = [(name, partial(_find_named, name)) for name in dict.fromkeys(named)]
        sources += [(each.name, partial(_find_entry, each)) for each in entries]
        return tuple(_load(name, find, seconds) for name, find in sources)


def find_origin(table: Mapping[str, Any], key: str) -> PluginOrigin | None:
    """Return the plug-in that a part comes from; None for one of MAIA Web itself. `table` is one of the registry's."""
    family, colon, _ = key.partition(":")
    # The tables may change while a page asks
    with _lock:
        for (name, known), origin in _added.items():
            if getattr(registry, name) is table and known in (key, family + colon):
                return origin
    return None


def _load(name: str, find: Callable[[], _Source], seconds: float) -> PluginReport:
    """Import one plug-in and add what it registers."""
    origin = PluginOrigin(name, name, "")
    try:
        source = find()
        origin = source.origin
        registrar = Registrar(origin, seconds)
        # In a thread under a time limit: a plug-in that hangs must not keep the worker from starting.
        error = find_outcome(start_call(_register, source, registrar), seconds)
        if error is not None:
            # sys.exit and the like are no Exception: they must not end the worker
            raise error if isinstance(error, Exception) else UnknownName(f"it raised {error!r}")
        _check_entries(registrar)
    except TimeoutError:
        return _refuse(origin, f"it did not finish loading in {seconds:g} s, which MAIA_PLUGIN_SECONDS allows")
    except MaiaError as error:
        return _refuse(origin, str(error).rstrip("."))
    except Exception as error:
        log.warning("The plug-in %s raised", origin.path, exc_info=error)
        return _refuse(origin, f"{type(error).__name__}: {str(error)[:500]}{_find_line(error, origin.path)}")
    # Only now, so that a plug-in adds all that it registers or nothing.
    for table, key, row in registrar.entries:
        getattr(registry, table)[key] = row
        _added[table, key] = origin
    keys = tuple(f"{NOUNS[table]} {key}" for table, key, _ in registrar.entries)
    log.info("The plug-in %s, version %s, adds %s", origin.path, origin.version, ", ".join(keys))
    return PluginReport(name, origin.path, origin.version, keys, "")


def _refuse(origin: PluginOrigin, reason: str) -> PluginReport:
    """Return the report of a plug-in that adds nothing."""
    problem = f"Plug-in {origin.path!r}: {reason}. Nothing of it is added; correct it and start the worker again."
    log.warning("%s", problem)
    return PluginReport(origin.name, origin.path, origin.version, (), problem)


def _register(source: _Source, registrar: Registrar) -> None:
    found = source.find()
    # An entry point may name the function itself
    register = found if callable(found) else getattr(found, "register", None)
    if not callable(register):
        raise UnknownName("it has no function `register(maia)`")
    register(registrar)


def _check_entries(registrar: Registrar) -> None:
    """Raise UnknownName for a plug-in that registers nothing, a key that is taken, or a toolset of unknown parts."""
    if not registrar.entries:
        raise UnknownName("its function `register` registers nothing")
    own = {(table, key) for table, key, _ in registrar.entries}
    if len(own) < len(registrar.entries):
        raise UnknownName("it registers a key twice")
    for table, key, row in registrar.entries:
        # Kinds of layers are taken too: units are studied by them
        if key in getattr(registry, table) or (table == "SYSTEMS" and key in registry.SYSTEM_OF_LAYER):
            owner = _added.get((table, key))
            other = f"the plug-in {owner.path}" if owner else "MAIA Web itself"
            raise UnknownName(f"it registers the {NOUNS[table]} {key!r}, which belongs to {other}: take another key")
        if table != TOOLSETS:
            continue
        for part, wanted in ((GENERATORS, row.generator), (EDITORS, row.editor), (DESCRIBERS, row.describer)):
            if not _is_there(part, wanted, own):
                raise UnknownName(f"its toolset {key!r} names the {NOUNS[part]} {wanted!r}, and there is none")


def _is_there(table: str, key: str, own: set[tuple[str, str]]) -> bool:
    family = key.partition(":")[0] + ":"
    known: Mapping[str, Any] = getattr(registry, table)
    # A key may be a member of a family
    return any(each in known or (table, each) in own for each in (key, family))


def _find_named(name: str) -> _Source:
    """Return a file or a module of the setting. Raises UnknownName."""
    # A slash or an ending marks a file; anything else is a module
    if "/" not in name and not name.endswith(".py"):
        return _find_module(name)
    path = Path(name).expanduser().resolve()
    try:
        version = sha256(path.read_bytes()).hexdigest()[:12]
    except OSError as error:
        raise UnknownName(f"MAIA_PLUGINS names it, and it cannot be read ({error.strerror})") from None
    return _Source(PluginOrigin(name, str(path), version), partial(_import_file, path, version))


def _find_module(name: str) -> _Source:
    if not all(each.isidentifier() for each in name.split(".")):
        raise UnknownName("MAIA_PLUGINS names it, and it is neither a path of a .py file nor a module's dotted name")
    first, *rest = name.split(".")
    top = find_spec(first)  # finding what lies below would import it, which has a time limit
    places = [Path(each) for each in (top.submodule_search_locations or ())] if top else []
    files = [Path(top.origin)] if top and top.origin and not rest else []
    files += [place.joinpath(*rest, "__init__.py") for place in places]
    files += [place.joinpath(*rest).with_suffix(".py") for place in places if rest]
    path = next((each for each in files if each.is_file()), None)
    if path is None:
        raise UnknownName("MAIA_PLUGINS names it, and Python finds no such module: install it where the worker runs")
    version = sha256(path.read_bytes()).hexdigest()[:12]
    return _Source(PluginOrigin(name, str(path), version), partial(import_module, name))


def _find_entry(entry: metadata.EntryPoint) -> _Source:
    version = entry.dist.version if entry.dist else ""
    return _Source(
        PluginOrigin(entry.name, f"{entry.dist.name if entry.dist else ''}: {entry.value}", version), entry.load
    )


def _import_file(path: Path, version: str) -> Any:
    """Return the module in a file, under a name that no other file has."""
    if path.suffix != ".py":
        raise UnknownName("it is no Python file: its name must end in .py")
    # By version, so that a changed file is another module
    name = f"maia_plugin_{path.stem}_{version}"
    spec = spec_from_file_location(name, path, loader=_FreshLoader(name, str(path)))
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickles look there
    try:
        spec.loader.exec_module(module)
    # A half-imported module must not stay behind
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


def _find_line(error: BaseException, path: str) -> str:
    """Return the line of the plug-in's own file that raised the error, as " (line 7)"; "" if none did."""
    # Its message names the line already
    if isinstance(error, SyntaxError) and error.filename == path:
        return ""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    return f" (line {lines[-1]})" if lines else ""
