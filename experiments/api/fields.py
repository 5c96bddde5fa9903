"""Field types that several operations use: keys of rows, storable text, keys of images."""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import Annotated, Any, Self, TypeVar

from django.contrib.auth.models import User
from django.db.models import Model, QuerySet
from ninja import Path, Schema
from ninja.schema import DjangoGetter
from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    StringConstraints,
    ValidationInfo,
    model_validator,
)

from experiments.api.problems import Refusal
from experiments.core import notify
from experiments.core.display_name import person
from experiments.core.params import MAX_COUNT, MAX_INTEGER
from experiments.models import Job
from workers.record.limits import DEFAULT_LIMITS

NO_NUL = r"^[^\x00]*$"
KEY = r"^[0-9a-f]{64}$"

Id = Annotated[int, Path(ge=1, le=MAX_INTEGER)]
Number = Annotated[int, Path(ge=0, le=MAX_COUNT)]
ImageKey = Annotated[str, Path(pattern=KEY, description="SHA-256 of the pixels, in lower-case hex")]

Words = Annotated[str, Field(max_length=200, pattern=NO_NUL)]
Name = Annotated[str, Field(min_length=1, max_length=200, pattern=NO_NUL)]
OwnName = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=60, pattern=NO_NUL)]
"""Name that a user gives to a row of their own."""
Finite = Annotated[float, Field(allow_inf_nan=False)]
RowNumber = Annotated[int, Field(ge=1, le=MAX_INTEGER)]
Whole = Annotated[int, Field(ge=0, le=MAX_COUNT)]
UnitNumber = Whole
Amount = Annotated[int, Field(ge=-MAX_INTEGER, le=MAX_INTEGER)]
"""An integer that is checked later; every database can store it."""

Row = TypeVar("Row", bound=Model)


def _check_day(written: Any) -> Any:
    """Accept only text like 2026-11-21 as a day; pydantic would accept seconds too."""
    # ASCII only: `\d` would also take digits of other scripts.
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", str(written), re.ASCII):
        raise ValueError("Write a day as 2026-11-21.")
    return written


Day = Annotated[date, BeforeValidator(_check_day)]


UserName = Annotated[str, BeforeValidator(lambda user: user.get_username() if isinstance(user, User) else user)]
"""The user name of a row's person, by which scripts know them."""
FullName = Annotated[str, BeforeValidator(lambda user: user if isinstance(user, str) else person(user))]
"""The display name of the same person."""
Given = Annotated[str | None, BeforeValidator(lambda text: text or None)]
"""Null in place of an empty text."""


class RowOut(Schema):
    """Base of schemas that read a row, field by field by its own name, or by its `validation_alias`."""

    model_config = ConfigDict(populate_by_name=True)

    @model_validator(mode="wrap")
    @classmethod
    def _run_root_validator(cls, values: Any, handler: ModelWrapValidatorHandler[Self], info: ValidationInfo) -> Self:
        """Validate as the base class does, but do not read again what was read already."""
        # Ninja would wrap a finished schema once more, and look for the columns of a row in it.
        return values if isinstance(values, cls) else handler(DjangoGetter(values, cls, info.context))


class Progress(Schema):
    """The progress of a worker."""

    what: str
    done: int
    total: int


JobProgress = Annotated[
    Progress | None, BeforeValidator(lambda job: notify.read_progress(job) if isinstance(job, Job) else job)
]


class AskedOnceOut(RowOut):
    """A question that is measured once; `measured` is null until a worker has answered it."""

    id: int
    dataset: str = Field(validation_alias="dataset.key")
    status: str = Field(description="queued, running, stopped, failed or done")
    problem: str = Field(description="why it was stopped or failed")
    progress: JobProgress = Field(validation_alias="job")
    created: datetime
    measured: datetime | None


class Body(Schema):
    """What a client sends. Unknown fields and other types are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class RunLimitsIn(Body):
    """Limits of a run; null for no limit."""

    rounds: Amount | None = int(DEFAULT_LIMITS["rounds"])
    tokens: Amount | None = int(DEFAULT_LIMITS["tokens"])
    cost: Annotated[float, Field(description="US dollars", allow_inf_nan=False)] | None = float(DEFAULT_LIMITS["cost"])
    seconds: Amount | None = int(DEFAULT_LIMITS["seconds"])


def find(rows: QuerySet[Row], **which: Any) -> Row:
    """Return the row, or raise a problem that names what is missing."""
    row = rows.filter(**which).first()
    if row is None:
        noun, named = rows.model._meta.verbose_name, ", ".join(str(value) for value in which.values())
        raise Refusal("missing", f"There is no {noun} {named}.")
    return row


def binary(*media_types: str) -> dict[str, Any]:
    """Return the document's description of a response that is a file."""
    schema = {"schema": {"type": "string", "format": "binary"}}
    return {"responses": {200: {"content": dict.fromkeys(media_types, schema)}}}
