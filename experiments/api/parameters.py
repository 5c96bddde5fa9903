"""Parameters of an address that are not known, or come twice, are refused: a slip in a filter would show all rows."""

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
    """Reads the query of an address."""

    def parse_querydict(
        self, data: MultiValueDict[str, Any], list_fields: list[str], request: HttpRequest
    ) -> dict[str, Any]:
        twice = [name for name, values in data.lists() if len(values) > 1 and name not in list_fields]
        if twice:
            raise InvalidFields("A parameter came twice: see errors.", dict.fromkeys(twice, "Give it once."))
        return super().parse_querydict(data, list_fields, request)


def refuse_unknown(operation: Operation) -> Operation:
    """The same operation, for addresses with parameters that it takes."""

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
    """What an operation takes: fields of schemas, and arguments by themselves."""
    schemas = {name: value for name, value in taken.items() if isinstance(value, Schema)}
    return {field for schema in schemas.values() for field in type(schema).model_fields} | (taken.keys() - schemas)
