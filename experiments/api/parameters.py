"""Refuse unknown or repeated query parameters: a misspelt filter would return all rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest
from django.utils.datastructures import MultiValueDict
from ninja import Schema
from ninja.parser import Parser

from experiments.core.errors import InvalidFields

Operation = Callable[..., Any]


class OnceEach(Parser):
    """Parse the query of an address."""

    def parse_querydict(
        self, data: MultiValueDict[str, Any], list_fields: list[str], request: HttpRequest
    ) -> dict[str, Any]:
        twice = [name for name, values in data.lists() if len(values) > 1 and name not in list_fields]
        if twice:
            raise InvalidFields("A parameter came twice: see errors.", dict.fromkeys(twice, "Give it once."))
        return super().parse_querydict(data, list_fields, request)


def refuse_unknown(operation: Operation) -> Operation:
    """Make an operation refuse parameters that it does not take, and return it."""

    @wraps(operation)
    def asked(request: HttpRequest, **taken: Any) -> Any:
        unknown = set(request.GET) - names(taken)
        if unknown and request.method == "GET":
            offered = ", ".join(sorted(names(taken))) or "none"
            words = f"There is no such parameter. Offered: {offered}."
            raise InvalidFields("Parameters are not known: see errors.", dict.fromkeys(unknown, words))
        return operation(request, **taken)

    return asked


def names(taken: dict[str, Any]) -> set[str]:
    """Return the names of an operation's parameters: fields of schemas, and separate arguments."""
    schemas = {name: value for name, value in taken.items() if isinstance(value, Schema)}
    return {field for schema in schemas.values() for field in type(schema).model_fields} | (taken.keys() - schemas)
