"""Rows as no writer of ours leaves them: every field missing, empty, of another type, huge, or named like a method."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.apps import apps
from django.db import models
from django.db.models import Value

METHODS = ("items", "keys", "values", "get", "count", "index", "pop", "copy", "update", "labels", "number")
LONG = "<b>items</b> " * 400
HUGE = 10**12
LEFT = {"auditentry", "passage", "gram", "session"}
"""Tables that the database itself keeps from being changed, or that nothing is drawn from."""
STEERED = {"kind", "status", "verb", "expires", "closed", "created", "time", "fence", "last_seq", "seq", "round"}
STEERED |= {"units", "reviewers_per_item"}
"""What decides which page there is, rather than what stands on it."""


def without(half: int) -> Callable[[Any], Any]:
    """Every other key left out, and every other item."""

    def leave(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: leave(each) for n, (key, each) in enumerate(sorted(value.items())) if n % 2 == half}
        return [leave(each) for each in value] if isinstance(value, list) else value

    return leave


def turned(value: Any) -> Any:
    """Everything inside is of another type."""
    if isinstance(value, dict):
        return {key: turned(each) for key, each in value.items()} | {"more": [1]}
    if isinstance(value, list):
        return {"0": value[:1]}
    return {str: 7, bool: "yes", int: "seven", float: ["0.5"]}.get(type(value), {"items": 1})


def enlarged(value: Any) -> Any:
    """Of everything very much."""
    if isinstance(value, dict):
        return {key: enlarged(each) for key, each in value.items()} | {LONG: LONG}
    if isinstance(value, list):
        return [enlarged(each) for each in value] * 6
    return {str: LONG, int: HUGE, float: 1e300}.get(type(value), value)


def like_methods(value: Any) -> Any:
    """Every key that a template might take for a method."""
    inside = {name: n for n, name in enumerate(METHODS)}
    if isinstance(value, dict):
        return {key: like_methods(each) for key, each in value.items()} | inside
    return [like_methods(each) for each in value] if isinstance(value, list) else value


JSON: Mapping[str, Callable[[Any], Any]] = {
    "no object": lambda _: {},
    "a list": lambda _: [[1], "two", None],
    "words": lambda _: "items",
    "null": lambda _: None,
    "half of it": without(0),
    "the other half": without(1),
    "other types": turned,
    "huge": enlarged,
    "named like methods": like_methods,
}
"""What becomes of each JSON field."""


def spoil_json(change: Callable[[Any], Any]) -> None:
    """Change every JSON field of every row."""
    for model in apps.get_app_config("experiments").get_models():
        fields = [each for each in model._meta.concrete_fields if isinstance(each, models.JSONField)]
        if not fields or model._meta.model_name in LEFT:
            continue
        for row in model.objects.all():  # type: ignore[attr-defined]
            odd = {each.name: change(getattr(row, each.name)) for each in fields}
            kept = {name: Value(value, models.JSONField()) for name, value in odd.items()}
            type(row).objects.filter(pk=row.pk).update(**kept)


def spoil_columns(huge: bool) -> None:
    """Empty, or fill, every column that is no key, no choice and no JSON."""
    for model in apps.get_app_config("experiments").get_models():
        if model._meta.model_name in LEFT:
            continue
        odd = {each.name: odd_column(each, huge) for each in model._meta.concrete_fields if may_be_odd(model, each)}
        if odd:
            model.objects.update(**odd)  # type: ignore[attr-defined]


def may_be_odd(model: type[models.Model], field: models.Field[Any, Any]) -> bool:
    unique = {name for names in model._meta.unique_together for name in names}
    unique |= {name for each in model._meta.total_unique_constraints for name in each.fields}
    constrained = isinstance(field, models.ForeignKey | models.JSONField | models.BooleanField | models.BinaryField)
    return not (constrained or field.primary_key or field.unique or field.choices or field.name in unique | STEERED)


def odd_column(field: models.Field[Any, Any], huge: bool) -> Any:
    if isinstance(field, models.CharField | models.TextField):
        return (LONG * 4)[: field.max_length or len(LONG)] if huge else ""
    if field.null and not huge:
        return None
    if isinstance(field, models.DateTimeField):
        return models.F(field.name)
    if isinstance(field, models.FloatField):
        return 1e300 if huge else 0.0
    return (HUGE if "Big" in type(field).__name__ else 2_000_000_000) if huge else 0
