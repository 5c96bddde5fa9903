"""The MCP server with its tools, for HTTP (`door`) and stdio (`manage.py mcp`)."""

from __future__ import annotations

from functools import cache
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations

from experiments.mcp import reading, rounds

INSTRUCTIONS = (
    "MAIA Web answers questions about units of trained vision models by experiments. Read what is known of a unit with "
    "read_unit; to experiment yourself, start a run with ask, play rounds with run_experiment, end it with conclude."
)
READING = (
    *(reading.list_models, reading.search, reading.list_runs, reading.read_run, reading.read_experiment),
    *(reading.read_unit, reading.find_labels, reading.read_evaluation, rounds.wait_for_run),
)
CHANGING = (rounds.ask, rounds.take_over_run, rounds.run_experiment, rounds.conclude)


@cache
def make_server() -> MCPServer[Any]:
    """Return the server of this process."""
    server: MCPServer[Any] = MCPServer("maia-web", title="MAIA Web", instructions=INSTRUCTIONS, log_level="WARNING")
    # Clients may run tools marked read-only without asking
    for tool in (*READING, *CHANGING):
        kind = ToolAnnotations(read_only_hint=tool in READING, destructive_hint=False)
        # Answers are text and images, for which a schema of the output says nothing.
        server.tool(structured_output=False, annotations=kind)(tool)
    return server
