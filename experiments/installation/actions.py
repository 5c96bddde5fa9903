"""Requests to workers from the settings pages: add models and datasets, index, train auto-encoders, and control
jobs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from django.db import transaction

from experiments.core import audit, notify, queue
from experiments.core.actors import Actor
from experiments.core.audit import Verb
from experiments.core.errors import InvalidInput, StateConflict
from experiments.installation.sparse import SparseWish, check_wish
from experiments.models import Dataset, Job, Role, SparseAutoencoderRow, VisionModelRow
from experiments.models.job import MOVING, JobKind, JobStatus

NAME_CHARS, PATH_CHARS, LABEL_CHARS = 200, 480, 200
NEEDS = {
    JobKind.MODEL: Role.ADMIN,
    JobKind.DATASET: Role.ADMIN,
    JobKind.INDEX: Role.RESEARCHER,
    JobKind.EXPORT: Role.ADMIN,
    JobKind.IMPORT: Role.RESEARCHER,
    JobKind.JUDGE: Role.REVIEWER,
    JobKind.EVALUATION: Role.RESEARCHER,
    JobKind.SWEEP: Role.RESEARCHER,
    JobKind.SPARSE: Role.RESEARCHER,
    JobKind.MEASURE: Role.RESEARCHER,
    JobKind.CAUSAL: Role.RESEARCHER,
    JobKind.GRAPH: Role.RESEARCHER,
    JobKind.CIRCUIT: Role.RESEARCHER,
}
"""Lowest role that may stop and resume such a job.

Adding a model or a dataset makes a worker read a path that the user names, so it takes an admin. An export belongs
to the user who asked for it.
"""
STEPS = {JobKind.EVALUATION: "evaluation", JobKind.SWEEP: "sweep"}
"""Jobs that are one step of something larger, which has its own state: stopping the step alone would leave it
waiting."""


# --- work of any kind ---


def start_job(actor: Actor, job: Job, **details: str) -> Job:
    """Save a new job and enqueue it once the transaction is committed. The audit log stores the details."""
    job.asked_by = actor.person
    job.save()
    audit.record(actor, Verb(f"{job.kind}.asked"), job, **details)
    queue.ask_for_work(job.pk)
    return job


@transaction.atomic
def _ask(actor: Actor, kind: JobKind, subject: str, /, **options: Any) -> Job:
    """Create a job, or return an identical one that is queued or running."""
    same = Job.objects.filter(kind=kind, subject=subject, options=options, status__in=MOVING).first()
    return same or start_job(actor, Job(kind=kind, subject=subject, options=options))


def _require_own(actor: Actor, job: Job) -> None:
    """Raise PermissionDenied if the user's role is too low for such a job and it is not the user's own export."""
    if job.kind != JobKind.EXPORT or job.asked_by_id != actor.person.pk:
        actor.require(NEEDS[JobKind(job.kind)])


def _refuse_step(job: Job, act: str) -> None:
    """Raise StateConflict for a job that is stopped and resumed as part of something larger."""
    if whole := STEPS.get(JobKind(job.kind)):
        raise StateConflict(f"Job {job.pk} is a step of the {whole} “{job.subject}”: {act} the {whole} itself.")


@transaction.atomic
def stop_job(actor: Actor, job: Job) -> None:
    """Stop a job. A running one stops after its current step; its finished work is kept. An ended job is left
    unchanged.

    Raises StateConflict for a step of a sweep or an evaluation.
    """
    _require_own(actor, job)
    _refuse_step(job, "stop")
    # A queued job has no worker that could read the request, so its status changes here
    waiting = Job.objects.filter(pk=job.pk, status=JobStatus.QUEUED)
    running = Job.objects.filter(pk=job.pk, status=JobStatus.RUNNING)
    if waiting.update(status=JobStatus.STOPPED, result="Stopped before it began.") or running.update(
        stop_requested=True
    ):
        audit.record(actor, Verb.JOB_STOPPED, job)


@transaction.atomic
def resume_job(actor: Actor, job: Job) -> None:
    """Enqueue a stopped or failed job again. Raises StateConflict for other jobs."""
    _require_own(actor, job)
    _refuse_step(job, "resume")
    ended = Job.objects.filter(pk=job.pk, status__in=[JobStatus.STOPPED, JobStatus.FAILED])
    if not ended.update(status=JobStatus.QUEUED, stop_requested=False, result=""):
        raise StateConflict(f"Job {job.pk} is {job.status}: it would have to be stopped or failed.")
    audit.record(actor, Verb.JOB_RESUMED, job)
    queue.ask_for_work(job.pk)


# --- models, datasets, indexes ---


def add_model(actor: Actor, name: str) -> Job:
    """Make a worker inspect a model, named by hub id or folder."""
    if not 0 < len(name) <= NAME_CHARS:
        words = "Write a hub id such as hf:microsoft/resnet-50, or the path of a folder, in at most 200 characters."
        raise InvalidInput(words, "name")
    return _ask(actor, JobKind.MODEL, name)


def add_dataset(actor: Actor, path: str, label: str, *, follow_links: bool = False) -> Job:
    """Make a worker inspect a folder on its disks. `follow_links` also reads targets of links outside the folder."""
    if not 0 < len(path) <= PATH_CHARS:
        words = "Write the full path of a folder on the worker's machine, such as /data/photographs, in at most 480 "
        raise InvalidInput(f"{words}characters.", "place")
    if len(label) > LABEL_CHARS:
        raise InvalidInput(f"The name has {len(label):,} characters. Write at most {LABEL_CHARS}.", "label")
    links = {"follow_links": True} if follow_links else {}
    return _ask(actor, JobKind.DATASET, path, label=label, **links)


@transaction.atomic
def remove(actor: Actor, row: VisionModelRow | Dataset) -> None:
    """Remove a model or dataset that a user added; its runs and images stay. Raises StateConflict for a built-in
    one."""
    if row.added is None:
        raise StateConflict(f"“{row}” belongs to the program and stays.")
    audit.record(actor, Verb.MODEL_REMOVED if isinstance(row, VisionModelRow) else Verb.DATASET_REMOVED, row)
    row.delete()


def add_index(actor: Actor, dataset: str, model: str, layers: Sequence[str], *, insist: bool = False) -> Job:
    """Make a worker measure all units of some layers over a dataset."""
    if not Dataset.objects.filter(key=dataset, available=True).exists():
        raise InvalidInput("Choose a dataset of the list that can be used.", "dataset")
    row = VisionModelRow.objects.filter(name=model, available=True).first()
    if row is None:
        raise InvalidInput("Choose a model of the list that can be used.", "model")
    if not layers:
        raise InvalidInput("Choose at least one layer.", "layers")
    if unknown := {*layers} - {*row.layers.values_list("name", flat=True)}:
        raise InvalidInput(f"{model} has no layer “{min(unknown)}”. Choose from its list.", "layers")
    return _ask(actor, JobKind.INDEX, dataset, model=model, layers=list(layers), **({"insist": True} if insist else {}))


def train_sparse(actor: Actor, wish: SparseWish) -> Job:
    """Make a worker train a sparse auto-encoder, unless an identical job is queued or running."""
    options = asdict(check_wish(wish))
    return _ask(actor, JobKind.SPARSE, options.pop("model"), **options)


@transaction.atomic
def train_several(actor: Actor, wishes: Iterable[SparseWish]) -> list[Job]:
    """Train several auto-encoders, such as one for each k. If one cannot be trained, none is."""
    return [train_sparse(actor, each) for each in wishes]


def measure_autoencoder(actor: Actor, row: SparseAutoencoderRow) -> Job:
    """Make a worker measure a sparse auto-encoder on held-out images. Raises StateConflict if its model is not
    installed."""
    if not row.model.available:
        raise StateConflict(f"“{row.model}” cannot be used yet. {row.model.remedy}")
    return _ask(actor, JobKind.MEASURE, row.model.name)


@transaction.atomic
def refresh_catalogue(actor: Actor) -> None:
    """Make a worker check every plug-in again, for example after weights were downloaded."""
    audit.record(actor, Verb.CATALOGUE_ASKED)
    queue.ask_for("write_catalogue")
    # So that pages show at once that it was asked for
    notify.keep_report("catalogue", "Waiting for a worker", 0, 1, seconds=30)
