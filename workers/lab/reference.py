"""The reference of `system` and `tools` that the agent is shown, made from their docstrings so that it cannot drift.

Used by whoever writes the instructions of a run.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from textwrap import dedent
from typing import Any

from workers.lab.system import System
from workers.lab.tools import Tools

_METHODS: tuple[tuple[str, Callable[..., Any]], ...] = (
    ("system", System.neuron),
    ("tools", Tools.dataset_exemplars),
    ("tools", Tools.text2image),
    ("tools", Tools.edit_images),
    ("tools", Tools.describe_images),
    ("tools", Tools.summarize_images),
    ("tools", Tools.log_experiment),
    ("tools", Tools.display),
)
_ATTRIBUTES = ("experiment_log", "results_list")
_TYPES = (("Sequence", "list"), ("Image.Image", "Image"), ("ImageOrText", "Image"))
_HEAD = """An Image that you get is a PIL image, a masked image is a Base64 string; wherever a tool takes images it
takes both. NumPy and Pillow can be imported. A wrong argument raises ToolError with the remedy."""
_ALIASES = """Other names: system.call_neuron, tools.text2model and tools.game_engine (text2image), tools.edit_image
(the edits alone), tools.describe, tools.summarize, tools.save_experiment_log."""


def build_reference(vocabulary: str = "", changes: str = "") -> str:
    """The whole reference, Markdown, under 8,000 characters without the last two chapters.

    `vocabulary` is what the image generator can draw, in its own words, and `changes` which the editor can make; "" if
    it does whatever is said.
    """
    attributes = [f"tools.{name}: {inspect.getdoc(getattr(Tools, name))}" for name in _ATTRIBUTES]
    parts = [
        _HEAD,
        f"## system\n\n{inspect.getdoc(System)}",
        *(_method(owner, method) for owner, method in _METHODS[:1]),
        f"## tools\n\n{inspect.getdoc(Tools)}",
        *(_method(owner, method) for owner, method in _METHODS[1:]),
        *([f"## What can be drawn\n\n{vocabulary}"] if vocabulary else []),
        *([f"## What can be changed\n\n{changes}"] if changes else []),
        "\n".join(attributes),
        _ALIASES,
    ]
    return "\n\n".join(parts) + "\n"


def _method(owner: str, method: Callable[..., Any]) -> str:
    text, _, example = (inspect.getdoc(method) or "").partition("Example:\n")
    code = dedent(example).strip()
    return f"### {owner}.{method.__name__}{_signature(method)}\n\n{text.strip()}\n\n```python\n{code}\n```"


def _signature(method: Callable[..., Any]) -> str:
    """As the program calls it: without `self`, in the words for types that the reference uses."""
    signature = inspect.signature(method)
    shown = str(signature.replace(parameters=list(signature.parameters.values())[1:])).replace("'", "")
    for ours, theirs in _TYPES:
        shown = shown.replace(ours, theirs)
    return shown
