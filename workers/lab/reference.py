"""Build the reference of `system` and `tools` that the agent is shown, from their docstrings so that it cannot drift.

Used by the code that writes the instructions of a run.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from textwrap import dedent
from typing import Any

from workers.lab.function_calls import FunctionSystem, FunctionTools
from workers.lab.program_api import CIRCUIT_NAMES, FUNCTION_NAMES, NAMES
from workers.lab.system import System
from workers.lab.tools import Tools

_OWNERS: dict[str, type] = {"system": System, "tools": Tools}
_TYPES = (("Sequence", "list"), ("Image.Image", "Image"), ("ImageOrText", "Image"))
_HEAD = """An Image that you get is a PIL image, a masked image is a Base64 string; wherever a tool takes images it
takes both. NumPy and Pillow can be imported. A wrong argument raises ToolError with the remedy."""
_ALIASES = {
    "game_engine": "tools.text2model (game_engine)",
    "edit_images": "tools.edit_image\n(the edits alone)",
}
"""Other names of tools that a toolset may lack."""


_LACKS = (
    """This run is without some tools, on purpose: {words}. Whatever else you are told of them does not hold here."""
)
_WORDS = {"dataset_exemplars": "no exemplars of the dataset", "text2image": "no drawing", "edit_images": "no edits"}


def build_reference(
    vocabulary: str = "",
    changes: str = "",
    lacks: frozenset[str] = frozenset(),
    *,
    extras: str = "",
    ablation: bool = False,
    is_circuit: bool = False,
) -> str:
    """Return the whole reference, Markdown: under 8,000 characters without the last two chapters, `system.ablate` and
    `system.circuit`.

    `vocabulary` is what the image generator can draw, in its own words, and `changes` which the editor can make; "" if
    there is no limit. `extras` is what only the game engine can draw, "" if nothing. What the run `lacks` (names of
    `program_api.NAMES`) is mentioned without its name. `system.ablate` is described if the run asks for `ablation`.
    """
    # Hidden unless the run asks for it, as any tool that the toolset lacks.
    lacks = lacks if ablation else lacks | {"ablate"}
    attributes = [f"{name}: {inspect.getdoc(value)}" for name, value in _entries() if isinstance(value, property)]
    served = [(name, value) for name, value in _entries() if name.partition(".")[2] not in lacks]
    methods = {name: _method(name, value, lacks) for name, value in served if not isinstance(value, property)}
    words = [words for name, words in _WORDS.items() if name in lacks]
    parts = [_HEAD, *([_LACKS.format(words=", ".join(words))] if words else [])]
    for owner, holder in _OWNERS.items():
        parts.append(f"## {owner}\n\n{inspect.getdoc(holder)}")
        parts += [text for name, text in methods.items() if name.startswith(f"{owner}.")]
        if owner == "system" and is_circuit:
            parts += [_method(f"system.{name}", getattr(System, name), lacks) for name in CIRCUIT_NAMES]
    parts += [f"## What can be drawn\n\n{vocabulary}"] if vocabulary and "text2image" not in lacks else []
    parts += [f"## What the game engine can draw\n\n{extras}"] if extras and "game_engine" not in lacks else []
    parts += [f"## What can be changed\n\n{changes}"] if changes and "edit_images" not in lacks else []
    return "\n\n".join([*parts, "\n".join(attributes), _name_others(lacks)]) + "\n"


def build_function_reference() -> str:
    """Return the reference for a run that studies a function, Markdown."""
    owners: dict[str, type] = {"system": FunctionSystem, "tools": FunctionTools}
    parts = ["NumPy can be imported. A wrong argument raises ToolError with the remedy."]
    attributes: list[str] = []
    for owner, names in FUNCTION_NAMES.items():
        parts.append(f"## {owner}\n\n{inspect.getdoc(owners[owner])}")
        members = {name: getattr(owners[owner], name) for name in names}
        for name, each in members.items():
            if isinstance(each, property):
                attributes.append(f"{owner}.{name}: {inspect.getdoc(each)}")
            elif each.__name__ == name:
                parts.append(_method(f"{owner}.{name}", each, frozenset()))
    return "\n\n".join([*parts, *attributes, "Other names: tools.save_experiment_log."]) + "\n"


def _entries() -> Iterator[tuple[str, Any]]:
    """List what programs may use, by name: attributes, and methods that have an example. The others are aliases."""
    for owner, names in NAMES.items():
        for name in names:
            member = getattr(_OWNERS[owner], name)
            # Aliases are the same function under another name, so `__name__` differs.
            is_method = getattr(member, "__name__", "") == name and "Example:\n" in (inspect.getdoc(member) or "")
            if isinstance(member, property) or is_method:
                yield f"{owner}.{name}", member


def _name_others(lacks: frozenset[str]) -> str:
    """Say under which other names tools can be called."""
    some = [words for name, words in _ALIASES.items() if name not in lacks]
    names = ["system.call_neuron", *some, "tools.describe", "tools.summarize", "tools.save_experiment_log"]
    return f"Other names: {', '.join(names)}."


def _method(name: str, method: Callable[..., Any], lacks: frozenset[str]) -> str:
    """Return the method's part of the reference, without an example that needs a missing tool."""
    text, _, example = (inspect.getdoc(method) or "").partition("Example:\n")
    code = dedent(example).strip()
    # The signature as the program calls it: without `self`, and with the reference's names for types
    signature = inspect.signature(method)
    # `self` is the first parameter; quotes come from annotations kept as text.
    shown = str(signature.replace(parameters=list(signature.parameters.values())[1:])).replace("'", "")
    for ours, theirs in _TYPES:
        shown = shown.replace(ours, theirs)
    # An example that calls a missing tool would mislead.
    if any(f"tools.{each}" in code for each in lacks):
        return f"### {name}{shown}\n\n{text.strip()}"
    return f"### {name}{shown}\n\n{text.strip()}\n\n```python\n{code}\n```"
