"""Questions that are measured only once: find or create the row, and ask a worker to answer it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from experiments.core import audit, queue
from experiments.core.actors import Actor
from experiments.core.audit import Verb
from experiments.models import Job
from experiments.models.asked_once import AskedOnce
from experiments.models.job import JobKind

_Row = TypeVar("_Row", bound=AskedOnce)


def find_or_add(rows: type[_Row], key: str, asked: Mapping[str, Any]) -> tuple[_Row, bool]:
    """Return the row of a question, locked in this transaction, and True if it is new; `asked` holds its fields."""
    # Locked, so that two people who ask at once get one job.
    locked = rows._default_manager.select_for_update(of=("self",))
    return locked.get_or_create(key=key, defaults=dict(asked))


def ask_unless_answered(actor: Actor, row: AskedOnce, kind: JobKind, verb: Verb, **details: str) -> None:
    """Ask a worker to answer the question, unless it is answered or pending. A stopped or failed one starts again."""
    if row.measured is not None or row.is_moving:
        return
    options = {"row": row.pk}
    row.job = Job.objects.create(kind=kind, subject=str(row)[:500], options=options, asked_by=actor.person)
    row.save(update_fields=["job"])
    audit.record(actor, verb, row, **details)
    queue.ask_for_work(row.job.pk)
