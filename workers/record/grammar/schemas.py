"""The two functions that a model may call instead of writing tags: run a program, and conclude the task.

Their fields are the parts of a reply. `called` writes a call out as that reply, so no rule needs to know about
calls. Prompts describe the content of each field once, at its tag.
"""

from __future__ import annotations

from typing import Any, get_args

from workers.record.replies import FunctionSchema, HypothesisStatus
from workers.record.tasks import find_task, list_needs

RUN, CONCLUDE = "run_experiment", "conclude"
_RUNS = "Run one program, in place of the tags of a reply. Its result comes in the next message. Call one function."
_TEXT: dict[str, Any] = {"type": "string"}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object with exactly these fields. All are required, because an optional field would
    need two types."""
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


_HYPOTHESES = {
    "type": "array",
    "description": "[HYPOTHESIS LIST]; may be empty.",
    "items": _object(
        {
            "number": {"type": "integer"},
            "text": _TEXT,
            "status": {"type": "string", "enum": [*get_args(HypothesisStatus)]},
            "reason": _TEXT,
        }
    ),
}


def list_functions(task: str, layer: str, *, last: bool = False) -> tuple[FunctionSchema, ...]:
    """Return the functions that a reply about a unit of this layer may call. In the `last` reply, only the
    conclusion."""
    needs = (tags[0] for tags in list_needs(task, layer))
    named = dict.fromkeys([*find_task(task).answer, *("labels" if tag == "LABEL" else tag.lower() for tag in needs)])
    about = "Conclude, in place of the tags of a reply."
    conclude = FunctionSchema(CONCLUDE, about, _object({"hypotheses": _HYPOTHESES} | {it: _field(it) for it in named}))
    if last:
        return (conclude,)
    parts = {"hypotheses": _HYPOTHESES, "code": _TEXT | {"description": "The program of [CODE], without a fence."}}
    if find_task(task).confirms:  # a program that tests statements comes with them
        parts["bias"] = _TEXT | {"description": "[BIAS], if the program tests it; else empty."}
    run = FunctionSchema(RUN, _RUNS, _object(parts))
    return run, conclude


def _field(name: str) -> dict[str, Any]:
    if name == "labels":
        return {"type": "array", "items": _TEXT, "description": '[LABEL]; ["none"] if there is none.'}
    return _TEXT | {"description": f"[{name.upper()}]"}
