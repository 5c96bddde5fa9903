"""How runs come about: asked on a page, by API, in bulk, from the terminal or at the first start; forked.

The only maker of runs. Each is checked, saved, audited and enqueued in one transaction.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.core.exceptions import PermissionDenied
from django.db import transaction

from experiments.core import audit, queue
from experiments.core.actors import Actor
from experiments.core.audit import Verb
from experiments.core.clock import tell_time
from experiments.core.errors import InvalidFields
from experiments.core.search_index.texts import keep_questions
from experiments.models import Role, Run
from experiments.runs.asking.form import QueryForm, copy_values


def ask(actor: Actor, form: QueryForm, *, enqueue: bool = True) -> Run:
    """A new run of what the form says; of a `ForkForm`, a fork. Raises InvalidFields."""
    if not form.is_valid():
        wrong = {name: [str(each) for each in found] for name, found in form.errors.items()}
        raise InvalidFields("Nothing was asked: some of it needs another look.", wrong)
    return add_run(actor, form.run(actor.person), enqueue=enqueue)


def ask_again(actor: Actor, run: Run) -> Run:
    """A new run with the query of another, checked anew. Raises InvalidFields."""
    return ask(actor, QueryForm(copy_values(run) | {"parent": run.pk}))


@transaction.atomic
def add_runs(actor: Actor, drafts: Sequence[Run]) -> None:
    """Save runs of a sweep, whose query was checked, and have workers play them. The audit has the sweep."""
    _require_researcher(actor)
    for run in drafts:
        run.owner = actor.person
    for run in drafts:
        run.flow = drafts[0].flow or queue.flow_of(run)
    made = Run.objects.bulk_create(drafts)
    Run.objects.filter(pk__in=[run.pk for run in made]).update(due=tell_time())  # not by this machine's clock
    keep_questions(made)
    transaction.on_commit(queue.ring)


def _require_researcher(actor: Actor) -> None:
    if (actor.role or 0) < Role.RESEARCHER:
        raise PermissionDenied("Asking needs the role Researcher.")


@transaction.atomic
def add_run(actor: Actor, run: Run, *, enqueue: bool = True) -> Run:
    """Save a run whose query was checked, as the actor's. Without `enqueue` it is played by whoever asked."""
    _require_researcher(actor)
    run.owner = actor.person
    run.save()
    origin = {"parent": run.parent_id, "round": run.fork_round} if run.fork_round else {"again": run.parent_id}
    audit.record(actor, Verb.RUN_FORKED if run.fork_round else Verb.RUN_ASKED, run, **origin if run.parent_id else {})
    if enqueue:
        queue.enqueue(run.pk)
    return run
