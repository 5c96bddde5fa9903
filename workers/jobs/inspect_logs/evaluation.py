"""Write an evaluation as an Inspect log for viewing: one sample per item, its figures with intervals as metrics.

A sample shows the same columns as the item's row in a table, hidden from the same people.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import IO, Any

from django.contrib.auth.models import User
from django.db.models import QuerySet

from experiments.core.system_names import SystemNameMasker
from experiments.core.visibility import visible_to
from experiments.evaluations import lists
from experiments.evaluations.files import describe_progress
from experiments.evaluations.results import read_result
from experiments.exchange.export_bundle import packing_log
from experiments.exchange.image_services import Progress
from experiments.exchange.tables import EVALUATIONS
from experiments.models import Evaluation, EvaluationItem, ItemStatus, Job, Run
from experiments.models.job import JobStatus
from workers.jobs.inspect_logs import sample, scores
from workers.jobs.inspect_logs.log import Log
from workers.jobs.inspect_logs.pieces import Json
from workers.jobs.inspect_logs.sample import LogSample
from workers.jobs.inspect_logs.transcript import error_json
from workers.record.evaluations import CAVEAT

STATUSES = {
    ItemStatus.DONE: "success",
    ItemStatus.LACKING: "success",
    ItemStatus.FAILED: "error",
}
"""Status of an item -> Inspect's status; "started" for others."""
OF_JOBS = {JobStatus.DONE: "success", JobStatus.FAILED: "error", JobStatus.STOPPED: "cancelled"}
"""Status of the job -> Inspect's status of the log."""


def write_evaluation(
    items: QuerySet[EvaluationItem], target: IO[bytes], progress: Progress, viewer: User | None = None
) -> int:
    """Write the log of the evaluation that these items belong to. Return the number of items."""
    names, count = SystemNameMasker(viewer), items.count()
    row = lists.with_progress(Evaluation.objects.filter(pk=items.values_list("evaluation")[:1])).get()
    with packing_log(target) as pack:
        log = Log(pack)
        # In parts, so that memory does not grow with the number of items.
        for done, item in enumerate(EVALUATIONS.prepared(items).iterator(chunk_size=sample.AT_ONCE)):
            progress(f"Item {item.position}", done, count)
            log.add(_build_sample(item, EVALUATIONS.row(item, names), _find_run(item, names)))
        result = read_result(row, lists.list_hidden(row, names))
        log.finish(
            row.created,
            spec=_name(row),
            status=_status(row.job),
            scores=scores.build_figures(result.figures, row.kind),
            error=error_json(row.job.result) if row.job and row.job.status == JobStatus.FAILED else None,
        )
    return count


def _name(row: Any) -> Json:
    told = {"evaluation": row.pk, "options": row.options, "seed": row.seed, "note": CAVEAT}
    return {
        "task": row.kind,
        "task_display_name": row.name,
        "metadata": {**told, "progress": describe_progress(row)},
        "config": {"cost_limit": row.cost_limit} if row.cost_limit is not None else {},
    }


def _status(job: Job | None) -> str:
    return OF_JOBS.get(JobStatus(job.status), "started") if job else "success"


def _find_run(item: EvaluationItem, names: SystemNameMasker) -> Run | None:
    """Return the item's run, if the viewer may see it and its system."""
    if item.run_id is None:
        return None
    runs = visible_to(Run.objects.filter(pk=item.run_id)).select_related("owner", "parent", "label_check")
    run = runs.first()
    return None if run is None or names.is_masked(run) else run


def _build_sample(item: EvaluationItem, told: Mapping[str, Any], run: Run | None) -> LogSample:
    """Return the item's run with the item's scores; without a run, the label as the only answer."""
    label = told["label"] or ""
    figures = {"pearson": told["pearson"], "auprc": told["auprc"], **(told["scores"] or {})}
    found: dict[str, Json] = {scores.LABEL: {"value": label, "answer": label}} if label else {}
    found |= scores.build_values(figures, label)
    metadata = {name: _plain(value) for name, value in told.items() if name not in {"scores", "label"}}
    # Derived, so that exporting again gives the same sample
    uuid = hashlib.sha256(f"{item.evaluation_id} {item.pk}".encode()).hexdigest()[:22]
    shared: Json = {
        "id": item.position,
        "uuid": uuid,
        "status": STATUSES.get(ItemStatus(item.status), "started"),
        "task": item.evaluation.kind,
    }
    error = error_json(item.reason) if item.status == ItemStatus.FAILED else None
    if run is None:
        return LogSample(model=item.source, scores=found, **_answer(item, told, metadata, error, uuid), **shared)
    whole = sample.build_sample(run)
    # The item's columns win: they are what the table shows.
    body = {**whole.body, "metadata": {**whole.body["metadata"], **metadata}, "error": whole.body["error"] or error}
    known = {**whole.known, "uuid": uuid}
    return replace(whole, scores={**whole.scores, **found}, known=known, body=body, **shared)


def _answer(
    item: EvaluationItem, told: Mapping[str, Any], metadata: Json, error: Json | None, uuid: str
) -> dict[str, Any]:
    """Return the fields of a sample without a transcript."""
    place = " ".join(str(told[name]) for name in ("model", "layer", "unit") if told[name] not in ("", None))
    asked = f"What does {place or 'this unit'} respond to?"
    message = {"role": "assistant", "content": told["label"] or "", "model": item.source}
    question = {"role": "user", "content": asked}
    body = {
        "metadata": metadata,
        "message_count": 2,
        "error": error,
        "limit": None,
        "output": {"model": item.source, "choices": [{"message": message, "stop_reason": "stop"}]},
        "messages": [question, message],
        "events": [],
    }
    known = {"input": asked, "target": "", "uuid": uuid, "working_time": item.seconds}
    return {"known": known, "body": body}


def _plain(value: Any) -> Any:
    """Return a value of a table as JSON can hold it."""
    return value if isinstance(value, str | int | float | bool | list | dict | None) else str(value)
