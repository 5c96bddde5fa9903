"""What kind of program the agent wrote, read from its text alone. Nothing is executed here.

Used by the host, and by whoever builds the tools: their answers have other shapes in a free-form script.
"""

from __future__ import annotations

import ast
from typing import Literal

ENTRY_POINTS = ("run_experiment", "execute_command")
"""Functions of (system, tools) that are called once the program is defined (paper, appendix A; code of 2024)."""

PROGRAM_CHARS = 1_000_000
"""Longer programs are refused: parsing takes a hundred times their size in memory."""

ProgramStyle = Literal["function", "script"]


def program_style(program: str) -> ProgramStyle:
    """ "function" if an entry point is defined at top level, else "script"; what cannot be parsed is a script."""
    if len(program) > PROGRAM_CHARS:
        return "script"
    try:
        tree = ast.parse(program)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return "script"
    return "function" if find_entry_points(tree) else "script"


def find_entry_points(tree: ast.Module) -> list[ast.FunctionDef]:
    """The entry points defined at top level, in the order of the text."""
    return [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in ENTRY_POINTS]
