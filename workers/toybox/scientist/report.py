"""What the scientist says: the form of a reply, and the sentences in it. Decides nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from workers.toybox.scientist import hypothesis_list
from workers.toybox.scientist.reading import ListedHypothesis


@dataclass(frozen=True)
class PlannedReply:
    """One reply: words, then either a program or what is concluded, as (tag, text)."""

    prose: str
    hypotheses: Sequence[ListedHypothesis] = ()
    code: str = ""
    conclusion: Sequence[tuple[str, str]] = ()


def format_reply(move: PlannedReply) -> str:
    """The reply in the published grammar."""
    parts = [move.prose]
    if move.hypotheses:
        parts.append(f"[HYPOTHESIS LIST]:\n{hypothesis_list.format_list(move.hypotheses)}")
    if move.code:
        parts.append(f"[CODE]:\n```python\n{move.code}\n```")
    parts += [f"[{tag}]: {text}" for tag, text in move.conclusion]
    return "\n\n".join(part for part in parts if part)
