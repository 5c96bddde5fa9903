"""Read a call of an offered function field by field as a reply, and report its errors.

A call whose fields have no meaning is read like any other call (see `calls`), so that no round is lost to a wrong
name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, get_args

from workers.record.grammar.calls import list_labels, read_arguments, read_call, read_only_text
from workers.record.grammar.composing import Written, join_lines, write
from workers.record.grammar.schemas import RUN
from workers.record.replies import FunctionCall, FunctionSchema, Hypothesis, HypothesisStatus

_FENCED = re.compile(r"\s{0,8}(`{3,9})\w{0,20}\n(.*?)\n?\1\s*", re.DOTALL)
"""Code in a fence, although there is a field for it."""
_MAX_QUOTED = 80
_KINDS = {str: "text", bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "an object"}
_UNSTORABLE = (
    "Your call held zero bytes or half characters, which were replaced by “\ufffd”. Compute such characters in the "
    "program, as by chr(0)."
)


def read_offered(call: FunctionCall, offered: Sequence[FunctionSchema]) -> tuple[str, tuple[str, ...]]:
    """Return a call in the form of a reply, empty if it has no effect, and its errors for the author."""
    # 1. Which function is meant
    schema = next((each for each in offered if each.name == call.name), None)
    if schema is None:
        others = " or ".join(f"{each.name}({', '.join(each.parameters['properties'])})" for each in offered)
        read, problems = read_call(call), [f"there is no function {_quote(call.name)} here; call {others}"]
    else:
        # 2. Its arguments, field by field
        given, wrong = _load(call.arguments)
        if isinstance(given, dict):
            read, problems = _read_fields(given, schema)
        else:
            read, problems = read_call(call), [wrong or f"the arguments are {_name_kind(given)}, not an object"]
    # 3. What the author should know
    remarks = []
    if problems:
        end = "What it holds was read even so." if read else "Nothing was done. Correct this and call it again."
        remarks.append(f"Of your call of {_quote(call.name)}: {'; '.join(problems)}. {end}")
    # Replacement characters that the author did not write
    if "\ufffd" in read and "\ufffd" not in call.arguments:
        remarks.append(_UNSTORABLE)
    return read, tuple(remarks)


def _load(arguments: str) -> tuple[Any, str]:
    """Return the arguments, which may be encoded twice, and what is wrong with them as JSON."""
    try:
        given = json.loads(arguments, strict=False)  # models write line breaks into texts as they are
        # Some models encode the arguments a second time
        return (json.loads(given, strict=False) if isinstance(given, str) else given), ""
    except RecursionError:
        return None, "the arguments are nested too deeply to be read"
    except ValueError as error:
        end = _quote(arguments[-_MAX_QUOTED:])
        return None, f"the arguments ({len(arguments):,} characters, which end in {end}) are no whole JSON ({error})"


def _read_fields(given: dict[str, Any], schema: FunctionSchema) -> tuple[str, list[str]]:
    """Read the call by its fields, or by other names that models use. Returns the reply and the errors."""
    known, problems = schema.parameters["properties"], list[str]()
    texts = {}
    for name in (each for each in known if known[each]["type"] == "string"):
        value = given.get(name, "")
        texts[name] = value.strip() if isinstance(value, str) else ""
        if not isinstance(value, str):
            problems.append(f"`{name}` is {_name_kind(value)} ({_quote(value)}), not text")
    # Models often put a fence into the field for code
    if isinstance(code := given.get("code"), str) and "code" in texts:
        fenced = _FENCED.fullmatch(code)
        texts["code"] = (fenced[2] if fenced else code).rstrip().strip("\n")
    labels = list_labels(given.get("labels"), ",;\n") if "labels" in known else []
    if "labels" in known and given.get("labels") and not labels:
        problems.append(f"`labels` is {_name_kind(given['labels'])} ({_quote(given['labels'])}), not a list of texts")
    # A run without a program means nothing, whatever else it holds
    meant = any(texts.values()) or labels if schema.name != RUN else texts["code"]
    # Other names for the fields are tried before the call is given up
    if not meant:
        other = read_arguments(given) or read_only_text(given)
        empty = "`code` is empty" if schema.name == RUN else "no field holds a conclusion"
        return other, problems or [f"{empty}; its fields are {', '.join(known)}"]
    hypotheses = _read_hypotheses(given.get("hypotheses"), problems)
    # The program is no text of a conclusion: it has its own field
    program = texts.pop("code", "")
    return write(Written(hypotheses=hypotheses, program=program, labels=tuple(labels), **texts)), problems


def _read_hypotheses(given: Any, problems: list[str]) -> tuple[Hypothesis, ...]:
    """Return the readable hypotheses and add errors of the others to `problems`."""
    if not isinstance(given, list):
        if given:
            problems.append(f"`hypotheses` is {_name_kind(given)} ({_quote(given)}), not a list")
        return ()
    found = []
    for place, each in enumerate(given, 1):
        # Some models give a list of texts
        row = each if isinstance(each, dict) else {"text": each}
        text, number, status, reason = (row.get(name) for name in ("text", "number", "status", "reason"))
        if not (isinstance(text, str) and text.strip()):
            problems.append(f"number {place} of `hypotheses` ({_quote(each)}) has no text")
            continue
        numbered = int(number) if isinstance(number, int) and 0 < number < 10_000 else place  # True is an int
        # An unknown status counts as open, so that the hypothesis is not lost
        known: HypothesisStatus = next((each for each in get_args(HypothesisStatus) if each == status), "open")
        why = join_lines(reason) if isinstance(reason, str) else ""
        found.append(Hypothesis(numbered, join_lines(text), known, why))
    return tuple(found)


def _name_kind(value: Any) -> str:
    # JSON has no other kinds: what is left is null
    return _KINDS.get(type(value), "null")


def _quote(value: Any) -> str:
    """Return a value as JSON, shortened."""
    shown = json.dumps(value, ensure_ascii=False)
    return shown if len(shown) <= _MAX_QUOTED else shown[: _MAX_QUOTED - 1] + "…"
