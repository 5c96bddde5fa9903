"""One terminal for many processes: each line is led by the name of who said it, coloured on a terminal."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from typing import TextIO

from workers.record.terminal import escape_controls

OURS = "maia"
COLOURS = {OURS: "1", "web": "36", "worker": "33", "beat": "35", "redis": "32"}
"""Who speaks -> ANSI code."""


@dataclass
class Console:
    """Where the supervisor and its children speak."""

    stream: TextIO = field(default_factory=lambda: sys.stdout)

    def say(self, text: str, who: str = OURS) -> None:
        """Write the text, led by `who` on every line."""
        try:
            for line in escape_controls(text).splitlines() or [""]:
                self.stream.write(f"{self.lead(who)} {line}\n")
            self.stream.flush()
        except OSError:
            pass  # the terminal was closed: there is nobody to tell

    def lead(self, who: str) -> str:
        name = f"{who:>6} |"
        if not self.stream.isatty() or os.environ.get("NO_COLOR"):
            return name
        return f"\x1b[{COLOURS.get(who.partition('-')[0], '0')}m{name}\x1b[0m"
