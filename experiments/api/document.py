"""Complete the OpenAPI document: problems that every operation may answer, and response headers."""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

from pydantic.json_schema import models_json_schema

from experiments.api.idempotency import HEADER, MAX_KEY_CHARS
from experiments.api.problems import MEDIA_TYPE, Problem

Json = dict[str, Any]

ANY = (400, 401, 403, 404, 413, 422, 429, 500, 503)
"""Status codes that any operation may answer."""
WITH_BODY = (411,)
CONFLICTS = frozenset(
    {
        *(
            "try_run_again",
            "ask_for_exemplars",
            "ask_for_layer_exemplars",
            "stop_job",
            "resume_job",
            "edit_label",
            "delete_label",
        ),
        *("set_role", "deactivate_person", "remove_person"),
        *("create_view", "edit_view", "delete_model", "delete_dataset"),
        *("reserve_next_item", "save_review", "submit_review"),
        *("put_run_up", "give_final_verdict"),
        *("save_reply", "send_reply", "stop_program", "hand_run_over", "create_share"),
        *("pause_run", "resume_run", "send_note", "change_limits", "fork_run"),
        *("edit_comment", "delete_comment", "create_answer", "close_judging", "read_results"),
        *("stop_evaluation", "resume_evaluation", "repair_evaluation", "delete_evaluation", "ask_for_check"),
    }
)
ONCE = frozenset(
    {
        *("create_run", "ask_again", "create_export", "create_label", "create_queue", "create_view"),
        *("add_model", "add_dataset", "add_index", "start_thread", "reply_in_thread"),
        "start_evaluation",
    }
)
EDITS = frozenset(
    {
        *("edit_label", "delete_label", "edit_view", "delete_view", "edit_comment", "delete_comment"),
        *("set_tags", "set_experiment_tags", "resolve_thread", "change_limits"),
        *("save_review", "submit_review", "save_reply", "send_reply"),
    }
)
RATE = ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")


def complete_document(document: Json) -> Json:
    """Add problems and headers to the document, and return it."""
    schemas = document["components"]["schemas"]
    _, defined = models_json_schema([(Problem, "serialization")], ref_template="#/components/schemas/{model}")
    schemas.update(defined["$defs"])
    for _, method, operation in operations(document):
        complete(operation["operationId"], method, operation)
    return document


def operations(document: Json) -> Iterator[tuple[str, str, Json]]:
    """Yield address, method and description of each operation."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def complete(name: str, method: str, operation: Json) -> None:
    # What the operation itself answers, with headers.
    responses = {str(status): part for status, part in operation["responses"].items()}
    for response in responses.values():
        response["headers"] = {header: integer() for header in RATE}
        if method == "get":
            response["headers"]["ETag"] = {"schema": {"type": "string"}}
        elif name in ONCE:
            response["headers"]["Location"] = {"schema": {"type": "string"}, "description": "of what was made"}
    if method == "get":
        responses["304"] = {"description": "Nothing has changed since you read it"}
        operation["parameters"].append(header("If-None-Match", "the ETag of what you have"))
    if name in ONCE:
        text = "of your choice: sent again within a day, the same request makes nothing new"
        operation["parameters"].append(header(HEADER, text, maxLength=MAX_KEY_CHARS, pattern=r"^[\x21-\x7e]*$"))
    if name in EDITS:
        operation["parameters"].append(header("If-Match", "the ETag of what you edit"))
    # Problems.
    statuses = [*ANY, *(WITH_BODY if "requestBody" in operation else ()), *((409,) if name in CONFLICTS else ())]
    responses |= {str(status): problem(status) for status in [*statuses, *((412, 428) if name in EDITS else ())]}
    operation["responses"] = dict(sorted(responses.items()))


def header(name: str, description: str, **schema: Any) -> Json:
    part = {"in": "header", "name": name, "required": False, "description": description}
    return part | {"schema": {"type": "string", **schema}}


def integer() -> Json:
    return {"schema": {"type": "integer"}}


def problem(status: int) -> Json:
    part: Json = {
        "description": HTTPStatus(status).phrase,
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    if status in (429, 503):
        part["headers"] = {"Retry-After": integer()}
    return part
