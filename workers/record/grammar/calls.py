"""Read a function call as a program or a conclusion, written out in the form of a reply.

Some models and proxies call functions that were not offered; `offered` reads calls of functions that were. `reply`
parses the written-out text like any other, so a call can do nothing that text could not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from workers.record.grammar.composing import Written, join_lines, write
from workers.record.grammar.programs import is_program
from workers.record.replies import FunctionCall

HOW = (
    "Write plain text: your program behind [CODE]: at the start of a line, in a ```python fence; a conclusion behind "
    "its tags, such as [DESCRIPTION]: and [LABEL]:."
)
READ = f"There are no functions to call here, nor is JSON needed: what yours holds was read as your reply. {HOW}"
UNREAD = (
    "There are no functions to call here, and your call held neither a program (code) nor a conclusion (description, "
    f"label) that could be read. {HOW}"
)
SET_ASIDE = "Your reply could be read without the functions that it called, so the calls were left out."
_CODE = ("code", "program", "python", "python_code")
_WRAPPERS = ("arguments", "parameters", "input", "args")
"""Names under which a call in a reply holds its arguments."""


def read_call(call: FunctionCall) -> str:
    """Return the program or conclusion of a call in the form of a reply; empty if it has neither."""
    given = _parse_json(call.arguments)
    if isinstance(given, str):  # encoded twice
        given = _parse_json(given) or given
    if isinstance(given, dict):
        return read_arguments(given) or read_only_text(given)
    words = given if isinstance(given, str) else call.arguments
    return write(Written(program=words.strip("\n"))) if is_program(words) else ""


def read_object(words: str) -> str:
    """Return the program or conclusion of JSON in a reply: arguments by name, a call with its name, or a list of
    these."""
    found = _parse_json(words)
    objects = found if isinstance(found, list) else [found]
    read = []
    for each in objects:
        # Calls wrap their arguments under several names
        inner = next((each[name] for name in _WRAPPERS if each.get(name)), None) if isinstance(each, dict) else None
        if isinstance(inner, str | dict) and "name" in each:
            read.append(read_call(FunctionCall("", inner if isinstance(inner, str) else json.dumps(inner))))
        # Objects with other fields are data that a reply quotes
        elif isinstance(each, dict) and {name.casefold() for name in each} & {*_CODE, "label", "labels"}:
            read.append(read_arguments(each))
    return "\n\n".join(filter(None, read))


def read_arguments(given: Mapping[str, Any]) -> str:
    """Return the program, or else the conclusion, from named arguments."""
    named = {str(name).casefold(): value for name, value in given.items()}
    code = next((value for name in _CODE if isinstance(value := named.get(name), str) and value.strip()), "")
    if code:  # a description beside a program is the program's
        return write(Written(program=code.strip("\n")))
    description, reasoning, bias = (
        value.strip() if isinstance(value := named.get(name), str) else ""
        for name in ("description", "reasoning", "bias")
    )
    labels = [*list_labels(named.get("label"), ""), *list_labels(named.get("labels"), ",;\n")]
    return write(Written(description=description, reasoning=reasoning, bias=bias, labels=tuple(labels)))


def read_only_text(given: Mapping[str, Any]) -> str:
    """Return the only text argument if it is a program, whatever its name."""
    texts = [value for value in given.values() if isinstance(value, str)]
    return write(Written(program=texts[0].strip("\n"))) if len(texts) == 1 and is_program(texts[0]) else ""


def list_labels(value: Any, separators: str) -> list[str]:
    """Return the labels of a list, or of a text split at these characters."""
    parts = value if isinstance(value, list) else [value]
    if separators and isinstance(value, str):
        # A list in one text; labels themselves may hold commas if there is no separator
        parts = re.split(f"[{separators}]", value)
    return [label for part in parts if isinstance(part, str) and (label := join_lines(part))]


def _parse_json(words: str) -> Any:
    try:
        return json.loads(words, strict=False)  # models write line breaks into texts as they are
    except (ValueError, RecursionError):
        return None
