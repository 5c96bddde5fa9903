"""Questions that are measured once: the row of one, and a worker that answers it."""

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
    """The row of a question, locked in this transaction, and whether it is new; `asked` are its own fields."""
    locked = rows._default_manager.select_for_update(of=("self",))
    return locked.get_or_create(key=key, defaults=dict(asked))


def ask_unless_answered(actor: Actor, row: AskedOnce, kind: JobKind, verb: Verb, **details: str) -> None:
    """Have a worker answer it, unless one has or is about to; one that was stopped or failed begins anew."""
    if row.measured is not None or row.is_moving:
        return
    options = {"row": row.pk}
    row.job = Job.objects.create(kind=kind, subject=str(row)[:500], options=options, asked_by=actor.person)
    row.save(update_fields=["job"])
    audit.record(actor, verb, row, **details)
    queue.ask_for_work(row.job.pk)
