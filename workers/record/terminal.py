"""Make text of programs, agents and files safe for a terminal: it cannot control the terminal or imitate our
messages."""

from __future__ import annotations

import re

# Bidirectional controls could make a text look like another
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""C0 except tab and line feed, DEL, C1, and characters that change the direction of writing."""


def escape_controls(text: str) -> str:
    r"""Write each control character as \u and four digits: JSON that is escaped so still means the same."""
    # As JSON escapes, so that printed JSON stays readable by machines
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
