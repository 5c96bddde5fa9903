"""Join modules to one classic script, in which each is a function: this needs neither `eval` nor inline code."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from posixpath import dirname, join, normpath

from django.contrib.staticfiles import finders

_IMPORT = re.compile(r"^import\s+(?:\{([^}]*)\}\s+from\s+)?[\"']([^\"']+)[\"'];?[ \t]*$", re.MULTILINE)
_EXPORT = re.compile(r"^export\s+(?=(?:async\s+function|function\*?|class|const)\s+(\w+))", re.MULTILINE)
_EXPORTS = re.compile(r"^export\s+\{([^}]*)\};?[ \t]*$", re.MULTILINE)
_OTHERWISE = re.compile(r"^(?:import|export)\b.*|\bimport\.meta\b|\bimport\s*\(", re.MULTILINE)
_OPENING = "const attempt = (work) => { try { work(); } catch (error) { reportError(error); } };"
"""A module that fails does not stop the others, as with separate modules."""


class Unjoinable(ValueError):
    """A file cannot be part of a bundle; the message says why."""


def read(name: str) -> str:
    """Return the text of a static file. Raises Unjoinable if there is none."""
    found = finders.find(name)
    if not isinstance(found, str):
        raise Unjoinable(f"There is no static file {name}.")
    return Path(found).read_text()


def join_scripts(names: Iterable[str]) -> str:
    """Join libraries unchanged, then every module once, after those that it imports."""
    libraries = [name for name in names if not name.startswith("js/")]
    modules: dict[str, str] = {}
    for name in names:
        if name.startswith("js/"):
            _add_module(name, modules, ())
    joined = "\n".join(modules.values())
    own = f'(() => {{\n"use strict";\n{_OPENING}\n{joined}\n}})();' if modules else ""
    # A library may end without a semicolon.
    return "\n;\n".join([*map(read, libraries), own])


def _add_module(name: str, modules: dict[str, str], above: tuple[str, ...]) -> None:
    """Add a module after its imports. `above` are the modules that import it."""
    if name in modules:
        return
    if name in above:
        raise Unjoinable(f"{' imports '.join((*above, name))}: a bundle has no order for them.")
    # `read` is called before the imports are followed, so that a missing file is named by itself.
    text, exported = read(name), {}

    def take(found: re.Match[str]) -> str:
        other = normpath(join(dirname(name), found[2]))
        _add_module(other, modules, (*above, name))
        return f"const {{{_pairs(found[1])}}} = {_variable(other)};" if found[1] else ""

    def give(found: re.Match[str]) -> str:
        exported[found[1]] = found[1]
        return ""

    def give_list(found: re.Match[str]) -> str:
        exported.update(_read_names(found[1]))
        return ""

    for pattern, replace in ((_IMPORT, take), (_EXPORT, give), (_EXPORTS, give_list)):
        text = pattern.sub(replace, text)
    # A form that the patterns do not know would be a syntax error in the script; a test tries every file.
    if left := _OTHERWISE.search(text):
        raise Unjoinable(f"{name}: {left[0]!r} is a way of importing or exporting that bundles do not know.")
    given = ", ".join(f"{outside}: {inside}" for inside, outside in exported.items())
    variable = _variable(name)
    ending = f"\nObject.assign({variable}, {{{given}}});" if given else ""
    modules[name] = f"const {variable} = {{}};\nattempt(() => {{\n{text}{ending}\n}});"


def _read_names(words: str) -> dict[str, str]:
    """Parse the names in the braces of an import or export: name -> its name on the other side."""
    pairs = [each.split(" as ") for each in words.split(",") if each.strip()]
    return {pair[0].strip(): pair[-1].strip() for pair in pairs}


def _pairs(words: str) -> str:
    return ", ".join(f"{theirs}: {ours}" for theirs, ours in _read_names(words).items())


def _variable(name: str) -> str:
    # No module uses "$" in its names, so they cannot clash.
    return "$" + re.sub(r"\W", "_", name.removeprefix("js/").removesuffix(".js"))
