"""Draw the API's documentation from its own document and the notebook of the Python client. Loads nothing from
elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseNotFound
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from experiments.api import document, problems
from experiments.api.example import build_python, curl
from experiments.core import access
from experiments.models import TokenScope

Json = Mapping[str, Any]
SCOPES = [scope.label for scope in TokenScope]
NOTEBOOK = settings.BASE_DIR / "static/client/maia.ipynb"


@dataclass(frozen=True)
class Value:
    """An input or output value of an operation."""

    name: str
    place: str
    kind: str
    required: bool
    description: str
    default: str


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """Show every operation by noun; each GET can be tried in the user's own session."""
    access.require(request)
    site = request.build_absolute_uri(reverse("overview")).rstrip("/")
    about, groups = _describe_all(site)
    chosen = request.GET.get("operation", "")
    if request.headers.get("HX-Request"):
        found = [each for operations in groups.values() for each in operations if each["name"] == chosen]
        return render(request, "api/operation_inside.html", {"each": found[0]}) if found else HttpResponseNotFound()
    context = {
        "groups": groups,
        "chosen": chosen,
        "about": about,
        "problems": [(kind, status, title) for kind, (status, title) in problems.KINDS.items()],
        "base": request.build_absolute_uri(reverse("api:root")),
        "scopes": SCOPES,
        "python": build_python(site),
    }
    return render(request, "api/docs.html", context)


@require_safe
def notebook(request: HttpRequest) -> HttpResponse:
    """Show the notebook that does the main job with the Python client, cell by cell."""
    access.require(request)
    cells = json.loads(NOTEBOOK.read_bytes())["cells"]
    shown = [{"is_code": each["cell_type"] == "code", "source": "".join(each["source"])} for each in cells]
    return render(request, "api/notebook.html", {"cells": shown})


@lru_cache(maxsize=4)
def _describe_all(site: str) -> tuple[str, dict[str, list[Json]]]:
    """Return the API's description, and its operations by noun, with examples for the site's address."""
    from experiments.api.interface import api  # imported here, since it lists this page among its addresses

    schema = api.get_openapi_schema()
    groups: dict[str, list[Json]] = {}
    for path, method, operation in document.operations(schema):
        shown = _describe_operation(schema, path, method, operation, site)
        groups.setdefault(operation["tags"][0], []).append(shown)
    return schema["info"]["description"], groups


def _describe_operation(schema: Json, path: str, method: str, operation: Json, site: str) -> Json:
    """Return an operation as the page shows it."""
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    taken = [parameter(schema, each) for each in operation["parameters"]]
    # Each operation has one successful answer.
    good = next(node for status, node in operation["responses"].items() if status.startswith("2"))
    answer = good.get("content", {}).get("application/json", {}).get("schema", {})
    return {
        "name": operation["operationId"],
        "method": method.upper(),
        "path": path,
        "address": settings.PREFIX + path,
        "summary": operation["summary"],
        "description": operation.get("description", ""),
        "takes": taken + (list(fields(schema, body, "body")) if body else []),
        "gives": list(fields(schema, answer, "")),
        "answers": [(status, node["description"]) for status, node in operation["responses"].items()],
        "curl": curl(site + path, method.upper(), example(schema, body) if body else None),
        # A stream never ends, and a file is no text to show.
        "can_try": method == "get" and not path.endswith(("/stream", "/file")),
    }


def parameter(schema: Json, node: Json) -> Value:
    inner = node["schema"]
    default = json.dumps(inner["default"]) if inner.get("default") is not None else ""
    named = kind(schema, inner).removesuffix(" or null")  # optional values are left out rather than null
    return Value(node["name"], node["in"], named, node["required"], node.get("description", ""), default)


def fields(schema: Json, of: Json, place: str) -> Iterator[Value]:
    """Yield the fields of an object; for a page of a list, those of its items."""
    properties = resolve(schema, of).get("properties", {})
    required = resolve(schema, of).get("required", [])
    # All lists have this shape: their items are what a reader looks for.
    if set(properties) == {"items", "next"}:
        yield from fields(schema, properties["items"]["items"], "item")
        return
    for name, node in properties.items():
        default = json.dumps(node["default"]) if node.get("default") not in (None, "", [], {}) else ""
        yield Value(name, place, kind(schema, node), name in required, node.get("description", ""), default)


def resolve(schema: Json, node: Json) -> Json:
    """Return what a reference refers to, also if it has a default beside it."""
    if len(node.get("allOf", ())) == 1:
        node = node["allOf"][0]
    if "$ref" in node:
        return schema["components"]["schemas"][node["$ref"].rpartition("/")[2]]
    return node


def kind(schema: Json, node: Json) -> str:
    """Return the type in words."""
    inner = resolve(schema, node)
    if "anyOf" in inner:
        return " or ".join(dict.fromkeys(kind(schema, each) for each in inner["anyOf"]))
    if "enum" in inner or "const" in inner:
        return ", ".join(map(str, inner.get("enum", [inner.get("const")])))
    if inner.get("type") == "array":
        return f"list of {kind(schema, inner.get('items', {}))}"
    return str(inner.get("format") or inner.get("type") or "anything")


def example(schema: Json, body: Json) -> dict[str, Any]:
    """Return a body with all required fields."""
    node = resolve(schema, body)
    return {name: value(schema, node["properties"][name]) for name in node.get("required", [])}


def value(schema: Json, node: Json) -> Any:
    inner = resolve(schema, node)
    if examples := node.get("examples"):
        return examples[0]
    if inner.get("type") == "array":
        return [value(schema, inner["items"])]
    if inner.get("type") == "object":
        return example(schema, inner)
    return {"integer": 1, "number": 1.0}.get(inner.get("type", ""), "…")
