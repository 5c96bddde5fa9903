"""Decode run.json into typed records and check all limits, before anything is saved or locked.

Errors are `ExchangeError`s that name the field, its value and what is expected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from experiments.core import tagging
from experiments.core.errors import InvalidInput
from experiments.exchange.decoding import HIGHEST, BundleStruct, Count, decode, is_time, shorten_value
from experiments.exchange.safe_zip import ExchangeError
from experiments.models.evaluation import PROBE
from experiments.models.stored import StoredMember
from workers.record.circuits import decode_members, find_size_problem
from workers.record.decoding import is_of_type

MAX_TAGS = 50
"""Maximum number of tags of a run, an experiment or an image."""
MAX_LABELS, LABEL_CHARS = 1_000, 10_000
MAX_UNITS, MAX_LABELLED = 1_000, 10_000
"""Maximum number of units per label, and of all labels together."""
MAX_SCORES, NAME_CHARS, PLACE_CHARS = 100, 80, 200
MAX_OPTIONS, OPTION_CHARS = 20, 500
MAX_LIMIT = {"rounds": 10**6, "tokens": 10**12, "cost": 10**6, "seconds": 10**8}
"""Maximum limits of a run, as in the forms."""

_MEMBER = {"model", "layer", "unit"}

Json = Mapping[str, Any]

CHECK_FIGURES = (
    *("pearson", "pearson_low", "pearson_high", "p_value", "auprc", "auprc_low", "auprc_high"),
    *("base_rate", "generated_auc"),
)
"""Figures of a label check that have columns."""


_Figure = Annotated[float, Meta(ge=-HIGHEST, le=HIGHEST)] | None
_Option = Annotated[str, Meta(max_length=OPTION_CHARS)] | bool | int | float | None
_Place = Annotated[str, Meta(max_length=PLACE_CHARS)]
_FieldName = Annotated[str, Meta(min_length=1, max_length=NAME_CHARS)]
_RunNumber = Annotated[int, Meta(ge=0, le=2**63 - 1)]
_Limits: Any = msgspec.defstruct(
    "_Limits",
    [(name, Annotated[float, Meta(gt=0, le=most)] | None, None) for name, most in MAX_LIMIT.items()],
    forbid_unknown_fields=True,
)
_Check: Any = msgspec.defstruct(
    "_Check",
    [
        ("text", Annotated[str, Meta(max_length=4_000)]),
        ("dataset", Annotated[str, Meta(max_length=500)]),
        ("split", Any, ""),  # the bundle may be of before there were splits
        ("status", Any, None),
        ("result", Any, None),
        *((name, _Figure, None) for name in ("seconds", *CHECK_FIGURES)),
    ],
)


class LabelTold(BundleStruct, frozen=True, kw_only=True):
    """A label with the units it is of, each as (model, layer, number)."""

    text: Annotated[str, Meta(max_length=LABEL_CHARS)]
    source: Annotated[str, Meta(min_length=1, max_length=40)]
    position: Count
    scores: Annotated[dict[_FieldName, float], Meta(max_length=MAX_SCORES)]
    units: Annotated[list[tuple[_Place, _Place, Count]], Meta(max_length=MAX_UNITS)] = []


class _Parent(BundleStruct, frozen=True, kw_only=True):
    identity: str
    number: _RunNumber | None = None
    created: str


class _Row(BundleStruct, frozen=True, kw_only=True):
    seconds: Annotated[float, Meta(ge=0, le=HIGHEST)] = 0.0
    started: str | None = None
    ended: str | None = None


class _Details(BundleStruct, frozen=True, kw_only=True):
    run: _Row
    owner: Annotated[str, Meta(max_length=150)]
    number: _RunNumber | None = None
    parent: Any = None
    tags: list[Any]
    labels: Annotated[list[LabelTold], Meta(max_length=MAX_LABELS)]
    check: Any = None


@dataclass(frozen=True)
class RunDetails:
    """Fields of run.json other than the query."""

    owner: str
    number: int | None
    """Number of the run where it was made; None for a MAIA transcript."""
    parent: Json
    """Identity, number and time of the parent; empty if the run is not a fork."""
    seconds: float
    started: datetime | None
    ended: datetime | None
    tags: Sequence[str]
    labels: Sequence[LabelTold]
    check: Json | None
    """Result of the label check of the conclusion; None if the bundle has none, as old ones."""


def decode_details(data: Json) -> RunDetails:
    """Decode run.json apart from its query. Raises ExchangeError, also for too many units in all."""
    told = decode(data, _Details, "run.json")
    if (count := sum(len(each.units) for each in told.labels)) > MAX_LABELLED:
        raise ExchangeError(f"run.json: labels name {count:,} units, at most {MAX_LABELLED:,} are possible.")
    return RunDetails(
        owner=told.owner,
        number=told.number,
        parent=_read_parent(told.parent),
        seconds=told.run.seconds,
        started=datetime.fromisoformat(told.run.started) if told.run.started else None,
        ended=datetime.fromisoformat(told.run.ended) if told.run.ended else None,
        tags=tags(told.tags, "run.json"),
        labels=told.labels,
        check=None if told.check is None else _read_check(told.check),
    )


def _read_parent(given: Any) -> dict[str, Any]:
    """Return the parent; empty if there is none, or if it has no identity."""
    if not given:
        return {}
    told = decode(given, _Parent, "run.json: parent")
    return {**msgspec.to_builtins(told), "identity": told.identity[:64]} if told.identity else {}


def _read_check(given: Any) -> dict[str, Any]:
    """Return the text, figures and details of a label check."""
    found: dict[str, Any] = msgspec.to_builtins(decode(given, _Check, "run.json: check"))
    split, result = found["split"], found["result"]
    # Any other split counts as unknown: its figures prove nothing.
    return found | {"split": PROBE if split == PROBE else "", "result": result if isinstance(result, dict) else {}}


def limits(given: Any, where: str = "run.json: limits") -> dict[str, float | None]:
    """Check limits: numbers above 0 within what the forms take, or null. Raises ExchangeError."""
    decode(given, _Limits, where)
    return dict(given)


def options(given: Any) -> dict[str, Any]:
    """Check the options of a run: a few short words and numbers. Raises ExchangeError."""
    wanted: Any = Annotated[dict[_FieldName, Any], Meta(max_length=MAX_OPTIONS)]
    found: dict[str, Any] = decode(given, wanted, "run.json: options")
    for name, value in found.items():
        if name != "members":
            kind: Any = Annotated[str, Meta(max_length=OPTION_CHARS)] if name == "dataset" else _Option
            decode(value, kind, f"run.json: the option {shorten_value(name)}")
        elif not _is_circuit(value):
            raise build_type_error("run.json: the option members", value, "no list of members of a circuit")
    return found


def _is_circuit(given: Any) -> bool:
    """True if this is a valid option "members" of a run on a circuit."""
    if not is_of_type(given, list[StoredMember]) or any(each.keys() != _MEMBER for each in given):
        return False
    short = all(len(each[name]) <= PLACE_CHARS for each in given for name in ("model", "layer"))
    return short and all(each["unit"] <= HIGHEST for each in given) and not find_size_problem(decode_members(given))


def tags(given: Any, where: str) -> list[str]:
    """Return the cleaned tags without duplicates. Raises ExchangeError."""
    # A loose limit first, since cleaning may merge tags
    if not isinstance(given, list) or len(given) > 20 * MAX_TAGS:
        raise ExchangeError(f"{where}: tags is no list of at most {MAX_TAGS} tags.")
    found = []
    for name in given:
        try:
            found.append(tagging.clean_tag(name if isinstance(name, str) else ""))
        except InvalidInput:
            raise ExchangeError(f"{where}: {shorten_value(name)} is no tag.") from None
    if len(kept := list(dict.fromkeys(found))) > MAX_TAGS:
        raise ExchangeError(f"{where} has {len(kept):,} tags, at most {MAX_TAGS} are possible.")
    return kept


# --- fields ---------------------------------------------------------------------------------------------


def require_field(data: Json, name: str, kind: type) -> Any:
    """Return a required field. Raises ExchangeError if it is missing or of another type."""
    if name not in data:
        raise ExchangeError(f"run.json has no field {name}.")
    if not isinstance(data[name], kind):
        raise build_type_error(f"run.json: {name}", data[name], f"no {kind.__name__}")
    return data[name]


def is_number(value: Any) -> bool:
    # A bool is an int in Python
    return isinstance(value, int | float) and not isinstance(value, bool)


def parse_time(data: Json, name: str) -> datetime | None:
    """Return a time with its zone, or None. Raises ExchangeError."""
    return None if data.get(name) is None else check_time(data[name], f"run.json: {name}")


def check_time(value: Any, where: str) -> datetime:
    """Return a time with its zone. Raises ExchangeError for anything else."""
    if not is_time(value):
        raise build_type_error(where, value, "no time such as 2026-01-31T12:00:00+00:00")
    return datetime.fromisoformat(value)


def build_type_error(where: str, value: Any, wanted: str) -> ExchangeError:
    """Build the error for a value other than the one wanted."""
    return ExchangeError(f"{where} is {shorten_value(value)}, and that is {wanted}.")
