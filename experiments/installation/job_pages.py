"""Work that people ask of a worker on the settings pages: asking, how far it is, stopping it and going on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST

from experiments.core import access, audit, notify, queue
from experiments.core.audit import Verb
from experiments.models import Job
from experiments.models.job import MOVING, JobKind, JobStatus
from experiments.models.member import Role

SHOWN = 6
"""Pieces of work that a page lists, the newest first."""
PAGES = {
    JobKind.MODEL: "settings-models",
    JobKind.DATASET: "settings-datasets",
    JobKind.INDEX: "settings-datasets",
    JobKind.EXPORT: "exports",
    JobKind.IMPORT: "imports",
    JobKind.JUDGE: "pairwise",
}
NEEDS = {
    JobKind.MODEL: Role.ADMIN,
    JobKind.DATASET: Role.ADMIN,
    JobKind.INDEX: Role.RESEARCHER,
    JobKind.EXPORT: Role.ADMIN,
    JobKind.IMPORT: Role.RESEARCHER,
    JobKind.JUDGE: Role.REVIEWER,
}
"""Who may stop and resume such work. Adding has a worker read a place that somebody names, so it takes an admin; an
export belongs to whoever asked for it.
"""


@dataclass(frozen=True)
class Told:
    """A piece of work, and how far a worker says it is."""

    job: Job
    progress: dict[str, Any] | None
    may_change: bool


def listed(kinds: Sequence[JobKind], role: Role) -> dict[str, Any]:
    """The newest work of these kinds, for a template; `moving` says whether to look again."""
    found = [
        Told(
            job,
            notify.reported(job.topic) if job.status == JobStatus.RUNNING else None,
            role >= NEEDS[JobKind(job.kind)],
        )
        for job in Job.objects.filter(kind__in=kinds).select_related("asked_by")[:SHOWN]
    ]
    return {"jobs": found, "moving": any(each.job.is_moving for each in found)}


@transaction.atomic
def ask(request: HttpRequest, kind: JobKind, subject: str, **options: Any) -> Job:
    """Have a worker do it; the same thing that is under way already is not asked for twice."""
    same = Job.objects.filter(kind=kind, subject=subject, options=options, status__in=MOVING).first()
    if same:
        return same
    return begin(request, Job(kind=kind, subject=subject, options=options))


def begin(request: HttpRequest, job: Job, **details: str) -> Job:
    """Save new work of the person who asks, and have a worker do it once the transaction is committed. The audit keeps
    the details."""
    assert isinstance(request.user, User)
    job.asked_by = request.user
    job.save()
    audit.record(request, Verb(f"{job.kind}.asked"), job, **details)
    queue.ask_for_work(job.pk)
    return job


@require_POST
@transaction.atomic
def stop(request: HttpRequest, pk: int) -> HttpResponse:
    """End it; one that runs ends at its next step. What was done is kept."""
    job = allowed(request, pk)
    waiting = Job.objects.filter(pk=job.pk, status=JobStatus.QUEUED)
    running = Job.objects.filter(pk=job.pk, status=JobStatus.RUNNING)
    if waiting.update(status=JobStatus.STOPPED, result="Stopped before it began.") or running.update(
        stop_requested=True
    ):
        audit.record(request, Verb.JOB_STOPPED, job)
    return redirect(PAGES[JobKind(job.kind)])


@require_POST
def go_on(request: HttpRequest, pk: int) -> HttpResponse:
    """Have work that was stopped, or failed, done after all."""
    job = allowed(request, pk)
    ended = Job.objects.filter(pk=job.pk, status__in=[JobStatus.STOPPED, JobStatus.FAILED])
    with transaction.atomic():
        if ended.update(status=JobStatus.QUEUED, stop_requested=False, result=""):
            audit.record(request, Verb.JOB_RESUMED, job)
            queue.ask_for_work(job.pk)
    return redirect(PAGES[JobKind(job.kind)])


def allowed(request: HttpRequest, pk: int) -> Job:
    """The job, for a member who may ask for such work, or has asked for this export."""
    user = access.require(request)
    job = get_object_or_404(Job, pk=pk)
    if job.kind != JobKind.EXPORT or job.asked_by_id != user.pk:
        access.require(request, NEEDS[JobKind(job.kind)])
    return job
