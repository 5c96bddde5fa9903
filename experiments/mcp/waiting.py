"""Wait for a run with progress reports, and describe its state."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

import anyio
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError

from experiments.core import notify, transcript
from experiments.core.compatibility import PERSON
from experiments.core.visibility import visible_to
from experiments.mcp import entry
from experiments.mcp.entry import Asker
from experiments.mcp.operations import Operations
from experiments.models import Run
from workers.record.statuses import ACTIVE

MAX_WAIT = 600
"""Maximum seconds of one call. The run continues, and another call can wait."""
MAX_WAITING = 8
"""Maximum number of waiting calls per token in this process."""
LOOK_EVERY, MAX_LOOK_EVERY = 0.4, 2.0
"""Interval between checks in seconds, at first and at most."""
REPORT_EVERY = 4.0
"""Interval between equal reports in seconds: some clients time out without reports."""


@dataclass(frozen=True)
class Standing:
    """The state of a run."""

    is_moving: bool
    words: str
    facts: dict[str, Any]

    @property
    def awaits_reply(self) -> bool:
        """True if a person must write the next round."""
        return bool(self.facts["awaits_reply_of_round"])


def read_standing(run_id: int) -> Standing:
    """Return the state. Raises ToolError if the run does not exist."""
    run = visible_to(Run.objects.filter(pk=run_id)).first()
    if run is None:
        raise ToolError(f"There is no run {run_id}.")
    # A run of an agent may wait as well, but not for the caller's reply.
    awaits = run.backbone == PERSON and transcript.awaits_reply(run)
    is_moving, (draft, report) = run.status in ACTIVE, notify.current(run_id)
    facts = {
        "run": run_id,
        "status": run.status,
        "reason": "" if awaits else run.reason,
        "rounds": run.rounds,
        "max_rounds": run.limits.get("rounds"),
        "awaits_reply_of_round": run.rounds + 1 if awaits else None,
        "backbone": run.backbone,
        "page": run.get_absolute_url(),
    }
    words = f"{run.get_status_display()}, {run.rounds} rounds played"
    if is_moving and report:
        words += f"; {report['what']} {report['done']}/{report['total']}"
    elif is_moving and draft:
        words += f"; {len(draft)} characters of the next reply"
    return Standing(is_moving, words, facts)


# A counter of this process alone: it protects the process, not the installation.
_waiting: Counter[Asker] = Counter()


async def wait_for(api: Operations, ctx: Context[Any, Any], run_id: int, seconds: float = MAX_WAIT) -> Standing:
    """Wait until the run waits, is paused or has ended, or until `seconds` are over. Reports while the token is valid.

    Raises ToolError if too many calls of the token are waiting.
    """
    # Without headers, so that all clients of a token share the limit
    who = Asker(api.asker.token)
    if _waiting[who] >= MAX_WAITING:
        raise ToolError(f"{MAX_WAITING} calls of this token already wait for runs. The run continues: try again later.")
    _waiting[who] += 1
    try:
        return await _follow(api, ctx, run_id, seconds)
    finally:
        _waiting[who] -= 1
        if not _waiting[who]:
            # Otherwise every token that ever waited would stay in memory.
            del _waiting[who]


async def _follow(api: Operations, ctx: Context[Any, Any], run_id: int, seconds: float) -> Standing:
    begun, told, told_at = time.monotonic(), "", 0.0
    while True:
        standing = await entry.run_in_thread(read_standing, run_id)
        passed = time.monotonic() - begun
        # The state is read before the time is checked, so that the answer is current.
        if not standing.is_moving or passed >= seconds:
            return standing
        if standing.words != told or passed - told_at > REPORT_EVERY:
            # The token may have been revoked meanwhile
            await api.require_allowed()
            told, told_at = standing.words, passed
            await ctx.report_progress(round(passed, 2), None, told)
        # Less often the longer it takes
        await anyio.sleep(min(LOOK_EVERY + passed / 30, MAX_LOOK_EVERY))
