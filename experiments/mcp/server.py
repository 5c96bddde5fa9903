"""The tools as the SDK serves them: one server, over HTTP (`door`) and over stdio (`manage.py mcp`)."""

from __future__ import annotations

from functools import cache
from typing import Any

from mcp.server.mcpserver import MCPServer

from experiments.mcp import reading

INSTRUCTIONS = (
    "MAIA Web asks questions about units of trained vision models and answers them by experiments."
)
READING = (reading.search,)


@cache
def make_server() -> MCPServer[Any]:
    """The server of this process."""
    server: MCPServer[Any] = MCPServer("maia-web", title="MAIA Web", instructions=INSTRUCTIONS, log_level="WARNING")
    for tool in READING:
        server.tool(structured_output=False)(tool)
    return server
