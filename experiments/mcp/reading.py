"""Tools that read: what there is to ask about, runs and their experiments, units, labels, evaluations, words."""

from __future__ import annotations

from typing import Annotated, Literal

from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ContentBlock
from pydantic import Field

from experiments.core.params import MAX_INTEGER
from experiments.mcp import entry
from experiments.mcp.content import tell
from experiments.mcp.operations import Operations, admit

Row = Annotated[int, Field(ge=1, le=MAX_INTEGER)]
Limit = Annotated[int, Field(ge=1, le=50)]
Cursor = Annotated[str, Field(description="`next` of the answer before")]
Content = list[ContentBlock]


async def search(words: str, kind: str = "", limit: Limit = 10, cursor: Cursor = "") -> Content:
    """Search all texts: questions, hypotheses, programs, outputs, conclusions, labels, comments. Every word and
    "quoted phrase" must occur. `kind` narrows, as label or hypothesis. Example: {"words": "red ball"}."""
    api = await admit()
    return [tell(await api.get("/search", q=words, kind=kind, limit=limit, cursor=cursor))]
