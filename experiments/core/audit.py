"""Write the audit log: who did what to which row, from where. This module is its only writer.

Call it in the transaction of the change, so that neither is kept without the other.
"""

from __future__ import annotations

import math
from enum import StrEnum

from django.contrib.auth.models import User
from django.db import models
from django.http import HttpRequest

from experiments.core.actors import Actor
from experiments.core.params import clean_text
from experiments.models import AuditEntry
from experiments.models.audit import AGENT_CHARS, NAME_CHARS, WORDS_CHARS


class Verb(StrEnum):
    """What can be done, as a noun and a past participle."""

    AUDIT_EXPORTED = "audit.exported"
    CATALOGUE_ASKED = "catalogue.asked"
    CAUSAL_ASKED = "causal.asked"
    CIRCUIT_CHANGED = "circuit.changed"
    CIRCUIT_CREATED = "circuit.created"
    CIRCUIT_DELETED = "circuit.deleted"
    CIRCUIT_EXTENDED = "circuit.extended"
    CIRCUIT_REDUCED = "circuit.reduced"
    CIRCUIT_RENAMED = "circuit.renamed"
    CIRCUIT_SEARCHED = "circuit.searched"
    COMMENT_DELETED = "comment.deleted"
    COMMENT_EDITED = "comment.edited"
    COMMENT_WRITTEN = "comment.written"
    DATASET_ASKED = "dataset.asked"
    DATASET_REMOVED = "dataset.removed"
    DELIVERY_REPEATED = "delivery.repeated"
    EVALUATION_DELETED = "evaluation.deleted"
    EVALUATION_RESUMED = "evaluation.resumed"
    EVALUATION_STARTED = "evaluation.started"
    EVALUATION_STOPPED = "evaluation.stopped"
    EXEMPLARS_ASKED = "exemplars.asked"
    EXPERIMENT_TAGGED = "experiment.tagged"
    EXPERIMENT_UNTAGGED = "experiment.untagged"
    EXPORT_ASKED = "export.asked"
    EXPORT_DELETED = "export.deleted"
    GRAPH_ASKED = "graph.asked"
    IMAGE_JUDGED = "image.judged"
    IMPORT_ASKED = "import.asked"
    INDEX_ASKED = "index.asked"
    INVITATION_ACCEPTED = "invitation.accepted"
    INVITATION_MADE = "invitation.made"
    INVITATION_REVOKED = "invitation.revoked"
    JOB_RESUMED = "job.resumed"
    JOB_STOPPED = "job.stopped"
    JUDGE_ASKED = "judge.asked"
    JUDGE_STOPPED = "judge.stopped"
    JUDGEMENT_UNDONE = "judgement.undone"
    JUDGING_FINISHED = "judging.finished"
    LABEL_CHECKED = "label.checked"
    LABEL_CREATED = "label.created"
    LABEL_DELETED = "label.deleted"
    LABEL_EDITED = "label.edited"
    MODEL_ASKED = "model.asked"
    MODEL_REMOVED = "model.removed"
    OBSERVATION_TAGGED = "observation.tagged"
    OBSERVATION_UNTAGGED = "observation.untagged"
    PASSWORD_CHANGED = "password.changed"  # noqa: S105 - a verb
    PERSON_ADMITTED = "person.admitted"
    PERSON_DEACTIVATED = "person.deactivated"
    PERSON_REACTIVATED = "person.reactivated"
    PERSON_REMOVED = "person.removed"
    PERSON_RENAMED = "person.renamed"
    PERSON_ROLE_CHANGED = "person.role-changed"
    PERSON_SIGNED_IN = "person.signed-in"
    PERSON_SIGNED_OUT = "person.signed-out"
    PRESET_CHANGED = "preset.changed"
    PRESET_DELETED = "preset.deleted"
    PRESET_SAVED = "preset.saved"
    PROGRAM_STOPPED = "program.stopped"
    QUEUE_CLOSED = "queue.closed"
    QUEUE_CREATED = "queue.created"
    REPLY_SENT = "reply.sent"
    REVIEW_ADJUDICATED = "review.adjudicated"
    REVIEW_DECLINED = "review.declined"
    REVIEW_SUBMITTED = "review.submitted"
    REVIEW_WITHDRAWN = "review.withdrawn"
    RUN_ASKED = "run.asked"
    RUN_FORKED = "run.forked"
    RUN_HANDED_OVER = "run.handed-over"
    RUN_LIMITED = "run.limited"
    RUN_PAUSED = "run.paused"
    RUN_PUT_UP = "run.put_up"
    RUN_NOTED = "run.noted"
    RUN_RESUMED = "run.resumed"
    RUN_SHARED = "run.shared"
    RUN_STOPPED = "run.stopped"
    RUN_TAGGED = "run.tagged"
    RUN_UNSHARED = "run.unshared"
    RUN_UNTAGGED = "run.untagged"
    SESSIONS_ENDED = "sessions.ended"
    SIGN_IN_LINK_MADE = "sign-in-link.made"
    SIGN_IN_FAILED = "sign-in.failed"
    SIGN_ON_CONNECTED = "sign-on.connected"
    SIGN_ON_DISCONNECTED = "sign-on.disconnected"
    SPARSE_ASKED = "sparse.asked"
    SPARSE_MEASURED = "measure.asked"
    STUDY_CHANGED = "study.changed"
    STUDY_CREATED = "study.created"
    STUDY_DELETED = "study.deleted"
    STUDY_EXTENDED = "study.extended"
    STUDY_REDUCED = "study.reduced"
    STUDY_SHARED = "study.shared"
    STUDY_UNSHARED = "study.unshared"
    SWEEP_CHANGED = "sweep.changed"
    SWEEP_PAUSED = "sweep.paused"
    SWEEP_RESUMED = "sweep.resumed"
    SWEEP_RETRIED = "sweep.retried"
    SWEEP_STARTED = "sweep.started"
    SWEEP_STOPPED = "sweep.stopped"
    THREAD_REOPENED = "thread.reopened"
    THREAD_RESOLVED = "thread.resolved"
    TOKEN_MADE = "token.made"  # noqa: S105
    TOKEN_REVOKED = "token.revoked"  # noqa: S105
    TRIAL_CLOSED = "trial.closed"
    TRIAL_MADE = "trial.made"
    VIEW_DELETED = "view.deleted"
    VIEW_RENAMED = "view.renamed"
    VIEW_SAVED = "view.saved"
    VOTE_CAST = "vote.cast"
    VOTE_UNDONE = "vote.undone"
    WEBHOOK_ADDED = "webhook.added"
    WEBHOOK_CHANGED = "webhook.changed"
    WEBHOOK_DELETED = "webhook.deleted"
    WEBHOOK_PAUSED = "webhook.paused"
    WEBHOOK_RENEWED = "webhook.renewed"
    WEBHOOK_RESUMED = "webhook.resumed"
    WEBHOOK_TESTED = "webhook.tested"


Detail = str | int | float | bool | None
MAX_DETAIL_CHARS = 1_000
"""Maximum characters of one detail; longer ones are cut."""


def record(actor: Actor | HttpRequest, verb: Verb, row: models.Model | None = None, **details: Detail) -> None:
    """Record what the actor did. Record the deletion of a row before you delete it."""
    # A request whose user may not be signed in, as at a failed sign-in.
    if isinstance(actor, HttpRequest):
        actor = Actor.behind(actor, actor.user if isinstance(actor.user, User) else None)
    AuditEntry(
        user=actor.user,
        name=clean_text(actor.user.get_username(), NAME_CHARS) if actor.user else "",
        verb=verb,
        row_kind=str(row._meta.verbose_name) if row is not None else "",
        # Keys of images and sessions are texts.
        row_pk=row.pk if row is not None and isinstance(row.pk, int) else None,
        row_words=clean_text(str(row), WORDS_CHARS) if row is not None else "",
        details={name: _clean_detail(value) for name, value in details.items()},
        address=actor.address,
        agent=clean_text(actor.agent, AGENT_CHARS),
        token=clean_text(actor.token, WORDS_CHARS),
    ).save()


def list_authors(row: models.Model, *verbs: Verb) -> list[int | None]:
    """Return the keys of the people who did one of these to the row; for rows that have no column for it."""
    found = AuditEntry.objects.filter(row_kind=str(row._meta.verbose_name), row_pk=row.pk, verb__in=verbs)
    return list(found.values_list("user_id", flat=True).distinct())


def _clean_detail(value: Detail) -> Detail:
    """Return a detail in a form that the JSON of every database accepts."""
    # PostgreSQL refuses NaN and infinity, which JSON does not have.
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return clean_text(str(value), MAX_DETAIL_CHARS) if isinstance(value, str) else value
