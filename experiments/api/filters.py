"""Take the filters of a list as query parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ninja import Schema
from pydantic import Field, create_model

from experiments.display.narrowing import Filter

Taken = TypeVar("Taken", bound=Schema)


def with_filters(filters: Mapping[str, Filter]) -> Callable[[type[Taken]], type[Taken]]:
    """Return a decorator that adds a parameter for each filter to a schema. All are optional."""
    fields: dict[str, Any] = {
        name: (each.accepts | None, Field(None, description=each.description or None)) for name, each in filters.items()
    }

    def add_fields(schema: type[Taken]) -> type[Taken]:
        return create_model(
            schema.__name__, __base__=schema, __module__=schema.__module__, __doc__=schema.__doc__, **fields
        )

    return add_fields


def read_filters(taken: Schema) -> dict[str, str]:
    """Return the filters of a request as texts, as in the address of the page."""
    given = taken.model_dump(exclude_none=True, mode="json")
    return {name: str(value) for name, value in given.items()}
