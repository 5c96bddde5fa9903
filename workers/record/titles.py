"""The title of a program: the first line of its docstring as one line of plain text.

Programs are untrusted text. Nothing is parsed as code, and only the start is read.
"""

from __future__ import annotations

import re
import unicodedata

MAX_TITLE_CHARS = 72
"""Maximum length of a title."""
HEAD = 4_000
"""Characters of a program that are searched for its docstring."""
_WORDS = r"[rRuU]?(?P<quote>\"\"\"|'''|\"|')(?P<words>.*?)(?P=quote)"
_OPENING = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\n)*" + _WORDS, re.DOTALL)
_FUNCTION = re.compile(r"^def[ \t]+run_experiment\b[^\n]*:[ \t]*\n\s*" + _WORDS, re.DOTALL | re.MULTILINE)
_COUNTED = re.compile(r"(?:step|experiment|round)[ \t]+[\w-]{1,24}[ \t]*[:.,\u2013\u2014-][ \t]*", re.IGNORECASE)
"""A counter such as "Step 3:", which is dropped because the number is shown beside the title."""


def read_title(program: str) -> str:
    """Return the program's own title in few words; "" if it has none."""
    # A program may be long; its docstring is at the start
    head = program[:HEAD]
    # A docstring of the program itself, else that of its entry point
    found = _OPENING.match(head) or _FUNCTION.search(head)
    lines = found["words"].strip().splitlines() if found else []
    return shorten(_COUNTED.sub("", lines[0].strip(), count=1)) if lines else ""


def shorten(text: str) -> str:
    """Return one line that begins with a capital and ends with a complete word, without invisible characters."""
    # Category C: controls and format characters, which may reorder or hide text
    seen = "".join(each for each in text if unicodedata.category(each)[0] != "C" or each.isspace())
    words = " ".join(seen.split()).rstrip(" .:;,")
    if len(words) > MAX_TITLE_CHARS:
        # Cut at a space, with room for the dots
        words = words[: MAX_TITLE_CHARS - 1].rsplit(" ", 1)[0].rstrip(" .:;,") + "…"
    return words[:1].upper() + words[1:]
