"""One terminal for many processes: each line begins with the name of its process, coloured on a terminal."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from typing import TextIO

from workers.record.terminal import escape_controls

OURS = "maia"
COLOURS = {OURS: "1", "web": "36", "worker": "33", "beat": "35", "redis": "32"}
"""Name of a process -> ANSI code."""


@dataclass
class SupervisorConsole:
    """Prints lines of the supervisor and its children."""

    stream: TextIO = field(default_factory=lambda: sys.stdout)

    def say(self, text: str, who: str = OURS) -> None:
        """Print the text, with `who` at the start of every line."""
        try:
            for line in escape_controls(text).splitlines() or [""]:
                self.stream.write(f"{self.lead(who)} {line}\n")
            self.stream.flush()
        except OSError:
            pass  # the terminal was closed: nothing can be printed

    def lead(self, who: str) -> str:
        name = f"{who:>6} |"
        if not self.stream.isatty() or os.environ.get("NO_COLOR"):
            return name
        return f"\x1b[{COLOURS.get(who.partition('-')[0], '0')}m{name}\x1b[0m"
