"""Create runs: from a page, the API, in bulk, the terminal or at the first start; and forks.

The only place that creates runs. Each is checked, saved, audited and enqueued in one transaction.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.core.exceptions import PermissionDenied
from django.db import transaction

from experiments.core import audit, queue
from experiments.core.actors import Actor
from experiments.core.audit import Verb
from experiments.core.clock import database_now
from experiments.core.errors import InvalidFields
from experiments.core.search_index.texts import keep_questions
from experiments.models import Role, Run
from experiments.runs.asking.form import QueryForm, copy_values


def ask(actor: Actor, form: QueryForm, *, enqueue: bool = True) -> Run:
    """Create a run from the form; from a `ForkForm`, a fork. Raises InvalidFields."""
    if not form.is_valid():
        # Plain texts: callers outside of pages know nothing of Django's error lists.
        wrong = {name: [str(each) for each in found] for name, found in form.errors.items()}
        raise InvalidFields("Nothing was asked: some of it needs another look.", wrong)
    return add_run(actor, form.run(actor.person), enqueue=enqueue)


def ask_again(actor: Actor, run: Run) -> Run:
    """Create a run with the query of another, checked again. Raises InvalidFields."""
    return ask(actor, QueryForm(copy_values(run) | {"parent": run.pk}))


@transaction.atomic
def add_runs(actor: Actor, drafts: Sequence[Run]) -> None:
    """Save checked runs of a sweep, for workers to execute. The audit records the sweep."""
    _require_researcher(actor)
    for run in drafts:
        run.owner = actor.person
    for run in drafts:
        # All runs of a sweep wait in one queue: look it up once.
        run.run_queue = drafts[0].run_queue or queue.run_queue_of(run)
    made = Run.objects.bulk_create(drafts)
    Run.objects.filter(pk__in=[run.pk for run in made]).update(due=database_now())  # not by this machine's clock
    keep_questions(made)
    # After the commit: a worker that wakes earlier would not see the rows.
    transaction.on_commit(queue.wake_workers)


def _require_researcher(actor: Actor) -> None:
    if (actor.role or 0) < Role.RESEARCHER:
        raise PermissionDenied("Asking needs the role Researcher.")


@transaction.atomic
def add_run(actor: Actor, run: Run, *, enqueue: bool = True) -> Run:
    """Save a run with a checked query for the actor. Without `enqueue` the caller executes it."""
    _require_researcher(actor)
    run.owner = actor.person
    run.save()
    # A parent without a round means a run that was asked again.
    origin = {"parent": run.parent_id, "round": run.fork_round} if run.fork_round else {"again": run.parent_id}
    audit.record(actor, Verb.RUN_FORKED if run.fork_round else Verb.RUN_ASKED, run, **origin if run.parent_id else {})
    if enqueue:
        queue.enqueue(run.pk)
    return run
