"""run.json as a typed record: every field is decoded and bounded here, before anything is saved or locked.

Raises `ExchangeError` naming the field, its value and what is wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from experiments.core import tagging
from experiments.core.errors import InvalidInput
from experiments.exchange.decoding import HIGHEST, is_time, shorten_value
from experiments.exchange.safe_zip import ExchangeError
from experiments.models.evaluation import PROBE
from experiments.models.stored import StoredMember
from workers.record.circuits import decode_members, find_size_problem
from workers.record.decoding import fits
from workers.record.limits import DEFAULT_LIMITS

MAX_TAGS = 50
"""Tags of a run, an experiment or an image."""
MAX_LABELS, LABEL_CHARS = 1_000, 10_000
MAX_UNITS, MAX_LABELLED = 1_000, 10_000
"""Units that one label is of."""
MAX_SCORES, NAME_CHARS, PLACE_CHARS = 100, 80, 200
MAX_OPTIONS, OPTION_CHARS = 20, 500
MAX_LIMIT = {"rounds": 10**6, "tokens": 10**12, "cost": 10**6, "seconds": 10**8}
"""What the forms take too."""

_MEMBER = {"model", "layer", "unit"}

T = TypeVar("T")
Json = Mapping[str, Any]

CHECK_FIGURES = (
    *("pearson", "pearson_low", "pearson_high", "p_value", "auprc", "auprc_low", "auprc_high"),
    *("base_rate", "generated_auc"),
)
"""Of a check, in its row."""


@dataclass(frozen=True)
class LabelTold:
    """A label with the units it is of, each as (model, layer, number)."""

    text: str
    source: str
    position: int
    scores: Mapping[str, float]
    units: Sequence[tuple[str, str, int]]


@dataclass(frozen=True)
class RunDetails:
    """What run.json says beside the query."""

    owner: str
    number: int | None
    """Of the run where it took place; None of a MAIA transcript."""
    parent: Json
    """Identity, number and time of what the run was forked from; empty if it is no fork."""
    seconds: float
    started: datetime | None
    ended: datetime | None
    tags: Sequence[str]
    labels: Sequence[LabelTold]
    check: Json | None
    """What a check of the conclusion found; None where a bundle tells of none, as old ones do."""


def decode_details(data: Json) -> RunDetails:
    """Raises ExchangeError."""
    row = require_field(data, "run", dict)
    value = row.get("seconds", 0)
    if not is_number(value) or not 0 <= value <= HIGHEST:
        raise unlike("run.json: seconds", value, f"no number from 0 to {HIGHEST:,}")
    return RunDetails(
        owner=text(data, "owner", 150),
        number=number_of(data, "number"),
        parent=parent(data.get("parent") or {}),
        seconds=float(value),
        started=parse_time(row, "started"),
        ended=parse_time(row, "ended"),
        tags=tags(require_field(data, "tags", list), "run.json"),
        labels=labels(require_field(data, "labels", list)),
        check=check(data.get("check")),
    )


def check(given: Any) -> dict[str, Any] | None:
    """What a bundle tells of a check: its text, figures that are numbers or null, and what it found. Raises
    ExchangeError."""
    if given is None:
        return None
    if not isinstance(given, dict):
        raise ExchangeError(f"run.json: check is {shorten_value(given)}: it is an object, or null.")
    found: dict[str, Any] = {name: text(given, name, most) for name, most in (("text", 4_000), ("dataset", 500))}
    for name in ("seconds", *CHECK_FIGURES):
        value = given.get(name)
        if value is not None and not (is_number(value) and -HIGHEST <= value <= HIGHEST):
            raise unlike(f"run.json: check: {name}", value, "no number and not null")
        found[name] = value
    result = given.get("result")
    found["split"] = PROBE if given.get("split") == PROBE else ""  # the bundle may be of before there were splits
    return found | {"result": result if isinstance(result, dict) else {}, "status": given.get("status")}


def limits(given: Any, where: str = "run.json: limits") -> dict[str, float | None]:
    """Limits as they came: numbers above 0 within what the forms take, or null. Raises ExchangeError."""
    if not isinstance(given, dict) or not given.keys() <= DEFAULT_LIMITS.keys():
        raise ExchangeError(
            f"{where} is {shorten_value(given)}: it holds rounds, tokens, cost and seconds, and nothing else."
        )
    for name, value in given.items():
        if value is not None and not (is_number(value) and 0 < value <= MAX_LIMIT[name]):
            most = f"{MAX_LIMIT[name]:,}"
            raise ExchangeError(
                f"{where}: {name} is {shorten_value(value)}: a limit is null, or a number above 0 up to {most}."
            )
    return given


def options(given: Any) -> dict[str, Any]:
    """Options of a run: a few short words and numbers. Raises ExchangeError."""
    if not isinstance(given, dict) or len(given) > MAX_OPTIONS:
        raise ExchangeError(
            f"run.json: options is {shorten_value(given)}: it holds at most {MAX_OPTIONS} names and values."
        )
    for name, value in given.items():
        plain = value is None or isinstance(value, bool) or is_number(value)
        short = isinstance(value, str) and len(value) <= OPTION_CHARS
        if name == "members":
            if not _is_circuit(value):
                raise unlike("run.json: the option members", value, "no list of members of a circuit")
            continue
        if not name or len(name) > NAME_CHARS or not (plain or short) or (name == "dataset" and not short):
            raise unlike(f"run.json: the option {shorten_value(name)}", value, "no value of one")
    return given


def _is_circuit(given: Any) -> bool:
    """Whether it is the option "members" of a run on a circuit."""
    if not fits(given, list[StoredMember]) or any(each.keys() != _MEMBER for each in given):
        return False
    short = all(len(each[name]) <= PLACE_CHARS for each in given for name in ("model", "layer"))
    return short and all(each["unit"] <= HIGHEST for each in given) and not find_size_problem(decode_members(given))


def tags(given: Any, where: str) -> list[str]:
    """Each once, as tags are kept. Raises ExchangeError."""
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


def labels(given: Any) -> Sequence[LabelTold]:
    """Raises ExchangeError, also for more units in all than are taken."""
    found = decode_list(given, label, "run.json: labels", MAX_LABELS)
    if (count := sum(len(each.units) for each in found)) > MAX_LABELLED:
        raise ExchangeError(f"run.json: labels name {count:,} units, at most {MAX_LABELLED:,} are possible.")
    return found


def label(given: Any) -> LabelTold:
    """Raises ExchangeError for what is no label."""
    if not isinstance(given, dict) or any(not isinstance(given.get(name), str) for name in ("text", "source")):
        raise ExchangeError(f"run.json: {shorten_value(given)} is no label.")
    name = shorten_value(given["text"])
    if len(given["text"]) > LABEL_CHARS or not 0 < len(given["source"]) <= 40:
        raise ExchangeError(f"run.json: the label {name} is too long, or has no source of at most 40 characters.")
    units = decode_list(given.get("units", []), unit, f"run.json: the label {name}: units", MAX_UNITS)
    position = check_count(given.get("position"), f"run.json: the label {name}: position")
    return LabelTold(given["text"], given["source"], position, scores(given.get("scores"), name), units)


def scores(given: Any, name: str) -> dict[str, float]:
    if not isinstance(given, dict) or len(given) > MAX_SCORES:
        raise ExchangeError(f"run.json: the label {name} has no scores: names and numbers, {MAX_SCORES} at most.")
    for key, value in given.items():
        if not 0 < len(key) <= NAME_CHARS or not is_number(value):
            raise unlike(f"run.json: the label {name}: {shorten_value(key)}", value, "no score")
    return given


def unit(given: Any) -> tuple[str, str, int]:
    if not isinstance(given, list) or len(given) != 3 or not all(isinstance(each, str) for each in given[:2]):
        raise ExchangeError(f"run.json: {shorten_value(given)} is no unit such as [model, layer, number].")
    return given[0][:200], given[1][:200], check_count(given[2], f"run.json: the unit {shorten_value(given)}")


def parent(given: Any) -> dict[str, Any]:
    if not given:
        return {}
    if not isinstance(given, dict) or any(not isinstance(given.get(name), str) for name in ("identity", "created")):
        raise unlike("run.json: parent", given, "no run")
    check_time(given["created"], "run.json: created of parent")
    if not given["identity"]:
        return {}
    number = number_of(given, "number of parent")
    return {"identity": given["identity"][:64], "number": number, "created": given["created"]}


def number_of(given: Json, what: str) -> int | None:
    """The number of a run, if it has one."""
    return None if given.get("number") is None else check_count(given["number"], f"run.json: {what}", 2**63 - 1)


# --- fields ---------------------------------------------------------------------------------------------


def decode_list(given: Any, read: Callable[[Any], T], what: str, most: int) -> list[T]:
    """The things of a list. Raises ExchangeError."""
    if not isinstance(given, list) or len(given) > most:
        many = f"{len(given):,} things" if isinstance(given, list) else shorten_value(given)
        raise ExchangeError(f"{what} is {many} where a list of at most {most:,} is wanted.")
    return [read(each) for each in given]


def require_field(data: Json, name: str, kind: type) -> Any:
    """A field that must be there. Raises ExchangeError."""
    if name not in data:
        raise ExchangeError(f"run.json has no field {name}.")
    if not isinstance(data[name], kind):
        raise unlike(f"run.json: {name}", data[name], f"no {kind.__name__}")
    return data[name]


def text(data: Json, name: str, most: int) -> str:
    found = require_field(data, name, str)
    if len(found) > most:
        raise ExchangeError(f"run.json: {name} is {shorten_value(found)}, and that has over {most} characters.")
    return str(found)


def check_count(value: Any, what: str, most: int = HIGHEST) -> int:
    """A whole number from 0. Raises ExchangeError."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise unlike(what, value, f"no whole number from 0 to {most:,}")
    return value


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def parse_time(data: Json, name: str) -> datetime | None:
    """A time with its zone, or None. Raises ExchangeError."""
    return None if data.get(name) is None else check_time(data[name], f"run.json: {name}")


def check_time(value: Any, where: str) -> datetime:
    """Raises ExchangeError for what is no time with a zone."""
    if not is_time(value):
        raise unlike(where, value, "no time such as 2026-01-31T12:00:00+00:00")
    return datetime.fromisoformat(value)


def unlike(where: str, value: Any, wanted: str) -> ExchangeError:
    """What is raised for a value that is not what is wanted."""
    return ExchangeError(f"{where} is {shorten_value(value)}, and that is {wanted}.")
