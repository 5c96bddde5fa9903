"""Convert a run's row to JSON and back, and identify a run across installations.

Images and events are separate files, see `export_bundle`. Fields that only a working worker needs are not exported.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.contrib.auth.models import User
from django.core.exceptions import ObjectDoesNotExist, ValidationError

from experiments.core.display_name import person
from experiments.core.transcript import strip_unstorable
from experiments.display.label_checks import read_check
from experiments.exchange import run_decoding
from experiments.exchange.decoding import HIGHEST, shorten_value
from experiments.exchange.run_decoding import CHECK_FIGURES, build_type_error, parse_time, require_field
from experiments.exchange.safe_zip import ExchangeError
from experiments.models import ImportedRun, Label, LabelCheck, Run
from workers.record.circuits import ACTIVATION_LAYER, CIRCUIT, decode_members, find_number
from workers.record.decoding import encode
from workers.record.label_checks import CheckResult
from workers.record.limits import QUESTION_CHARS
from workers.record.statuses import Status

Json = Mapping[str, Any]

SCHEMA = 1
ASKED = (
    *("question", "task", "system_kind", "model", "layer", "unit", "options", "toolset"),
    *("backbone", "backbone_model", "limits", "seed", "fork_round"),
)
"""Fields of the query."""
TOLD = (
    *("status", "reason", "rounds", "experiment_count", "observation_count", "prompt_tokens", "completion_tokens"),
    *("cost", "seconds", "exemplar_mean", "best_activation", "versions", "conclusion"),
)
"""Results, which the events give as well. An import takes only the seconds from here."""
TIMES = ("created", "started", "ended")
IDENTIFY = ("question", "task", "system_kind", "model", "layer", "unit", "backbone", "backbone_model", "seed")


def dump_json(data: Any) -> bytes:
    """Return the same bytes for the same data. Keys are sorted, because databases order JSON fields differently."""
    return json.dumps(data, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


def identity(run: Run) -> str:
    """Return the identity, which a run shares with all imports of its bundles, here and elsewhere."""
    if (imported_run := arrival_of(run)) is not None:
        return imported_run.identity
    # The number of the run is not part of it: every installation counts its own.
    known = {name: getattr(run, name) for name in IDENTIFY} | {"created": run.created.isoformat()}
    return hashlib.sha256(dump_json(known)).hexdigest()


def arrival_of(run: Run) -> ImportedRun | None:
    """Return the import that made this run; None for a run made here."""
    try:
        return run.imported_run
    except ObjectDoesNotExist:
        return None


def to_json(run: Run) -> dict[str, Any]:
    """Return the content of run.json."""
    imported_run = arrival_of(run)
    times = {name: at.isoformat() if (at := getattr(run, name)) else None for name in TIMES}
    return {
        "schema": SCHEMA,
        "identity": identity(run),
        "number": imported_run.number if imported_run else run.pk,
        "owner": get_author_name(run),
        "parent": _parent_of(run, imported_run),
        "run": {name: getattr(run, name) for name in (*ASKED, *TOLD)} | times,
        "tags": sorted(run.tags.values_list("name", flat=True)),
        "check": _check_json(run.label_check),
        "labels": [_label_json(label) for label in run.label_set.order_by("position", "pk")],
    }


def get_author_name(run: Run) -> str:
    """Return the name of the person who asked, in the installation where the run was made."""
    imported_run = arrival_of(run)
    # An import keeps its first author, however often it is exported again.
    return (imported_run.owner if imported_run else person(run.owner))[:150]


def _parent_of(run: Run, imported_run: ImportedRun | None) -> dict[str, Any]:
    """Return identity, number and time of the parent; empty if the run is not a fork."""
    if run.parent is None:
        return dict(imported_run.parent) if imported_run else {}
    # The number at the origin of the parent, which may have been imported too.
    above = arrival_of(run.parent)
    created, number = run.parent.created.isoformat(), above.number if above else run.parent.pk
    return {"identity": identity(run.parent), "number": number, "created": created}


def _label_json(label: Label) -> dict[str, Any]:
    """Return a label as JSON. The run's own labels need no units."""
    fields = {name: getattr(label, name) for name in ("text", "source", "position", "scores")}
    if label.source == "run":
        return fields
    units = label.units.values_list("layer__model__name", "layer__name", "number").order_by("pk")
    return fields | {"units": [list(unit) for unit in units]}


def _check_json(check: LabelCheck | None) -> dict[str, Any] | None:
    """Return the result of a label check; None if nothing was measured. The text of the truth and the images are left
    out."""
    if check is None or not check.is_measured:
        return None
    found = read_check(check)
    natural, generated = found.natural, found.generated
    # The text of the truth would answer the question of a review elsewhere
    if natural and natural.ceiling:
        natural = replace(natural, ceiling=replace(natural.ceiling, what="the truth"))
    if natural:
        natural = replace(natural, bright_without=(), dark_with=())
    if generated:
        generated = replace(generated, positive=(), neutral=())
    fields = {name: getattr(check, name) for name in ("text", "dataset", "split", "status", "seconds", *CHECK_FIGURES)}
    return fields | {"result": encode(CheckResult(natural, generated))}


def run_from(data: Json, owner: User) -> Run:
    """Return the unsaved row of a bundle, in the state before its first event. Raises ExchangeError naming the
    field."""
    row = strip_unstorable(require_field(data, "run", dict))
    # In the state of a new run: its events, replayed, bring it to its end.
    run = Run(owner=owner, status=Status.QUEUED, **{name: require_field(row, name, object) for name in ASKED})
    # The time is part of the run's identity
    run.created = parse_time(row, "created") or run.created
    for name in ("question", "model", "layer", "task", "backbone"):
        require_field(row, name, str)
    try:
        # JSON columns have checks of their own, below.
        run.clean_fields(exclude=["owner", "limits", "options", "conclusion", "versions"])
    except ValidationError as error:
        field, problems = next(iter(error.message_dict.items()))
        raise ExchangeError(f"run.json: {field} is {shorten_value(row.get(field))}: {problems[0]}") from None
    for name in ("unit", "fork_round"):
        if (getattr(run, name) or 0) > HIGHEST:
            raise build_type_error(f"run.json: {name}", row[name], "too large")
    if len(run.question) > QUESTION_CHARS:
        raise ExchangeError(
            f"run.json: question has {len(run.question):,} characters, at most {QUESTION_CHARS:,} are possible."
        )
    run.limits, run.options = run_decoding.limits(row["limits"]), run_decoding.options(row["options"])
    _check_circuit(run)
    return run


def _check_circuit(run: Run) -> None:
    """Check that the number of a run on a circuit matches its members. Raises ExchangeError."""
    if run.system_kind != CIRCUIT:
        return
    members = decode_members(run.options.get("members", ()))
    if not members or (run.layer, run.unit) != (ACTIVATION_LAYER, find_number(members)):
        raise ExchangeError(f"run.json: unit is {run.unit}, which is not the number of its circuit's members.")
    run.options.pop("circuit", None)  # Here, another circuit may have this key
