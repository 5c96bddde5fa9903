"""Index what people said of a run: comments, reviews, final verdicts, imported opinions and tags.

Signals index rows as soon as they are saved by a form, a command, the API or an import. The app loads this module.
Only the latest wording is found, and nothing that was withdrawn. `search.permissions` decides who may find it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.signals import m2m_changed, post_delete, post_save
from django.dispatch import receiver

from experiments.core.search_index.texts import keep_questions, split_texts, write
from experiments.models import (
    Adjudication,
    Comment,
    Experiment,
    ImportedOpinions,
    Observation,
    Review,
    ReviewState,
    Run,
    SearchText,
    Tag,
    TextKind,
)

Opinion = Comment | Review | Adjudication
Tagged = Run | Experiment | Observation
KINDS: Mapping[type[Opinion], TextKind] = {
    Comment: TextKind.COMMENT,
    Review: TextKind.REVIEW,
    Adjudication: TextKind.FINAL,
}
CHANGES = frozenset({"post_add", "post_remove", "post_clear"})


def _keep_brought(brought: ImportedOpinions) -> None:
    """Index the opinions that came with an imported run."""
    # What the file contains, without anchors: these opinions have no rows.
    texts = [(TextKind.COMMENT, None, each["text"]) for thread in brought.threads for each in thread["comments"]]
    for each in brought.reviews:
        texts += [(TextKind.REVIEW, None, each["corrected_label"]), (TextKind.REVIEW, None, each["note"])]
    for each in brought.finals:
        texts += [(TextKind.FINAL, None, each["corrected_label"]), (TextKind.FINAL, None, each["reason"])]
    replace(
        SearchText.objects.filter(run=brought.run_id, kind__in=KINDS.values(), anchor=None),
        split_texts(brought.run, texts),
    )


def _keep_tags(row: Tagged) -> None:
    """Index the tags of a run, of all experiments of a run, or of an image."""
    run = row if isinstance(row, Run) else row.run
    tags = SearchText.objects.filter(kind=TextKind.TAG, run=run)
    if isinstance(row, Run):
        replace(tags.filter(seq=0), split_texts(run, [(TextKind.TAG, None, tag.name) for tag in row.tags.all()]))
    elif isinstance(row, Experiment):
        replace(tags.filter(seq__gt=0, anchor=None), _of_experiment_tags(run))
    else:
        replace(tags.filter(anchor=row.pk), _of_image_tags(run, pk=row.pk))


def keep_tags_within(run: Run) -> None:
    """Index the tags of all experiments and images of a run in a few queries, after many were tagged at once."""
    tags = SearchText.objects.filter(kind=TextKind.TAG, run=run.pk, seq__gt=0)
    replace(tags, [*_of_experiment_tags(run), *_of_image_tags(run)])


@transaction.atomic
def replace(old: QuerySet[SearchText], new: Iterable[SearchText]) -> None:
    old.delete()
    write(new)


def _find_texts(opinion: Opinion) -> QuerySet[SearchText]:
    return SearchText.objects.filter(kind=KINDS[type(opinion)], anchor=opinion.pk)


def _make_texts(opinion: Opinion) -> list[SearchText]:
    """Return unsaved passages. None for a deleted comment, whose text is empty; for a draft, which only its writer
    may see; and for the reason why an item was declined."""
    fields: dict[str, Any]
    match opinion:
        case Comment():
            run, texts = opinion.thread.run, [opinion.text]
            fields = {"seq": opinion.thread.seq or 0, "time": opinion.edited or opinion.created}
        case Review():
            # A review that is taken back becomes a draft, and its passages go.
            is_read = opinion.state == ReviewState.SUBMITTED
            run, texts = opinion.item.run, [opinion.corrected_label, opinion.note] if is_read else []
            fields = {"time": opinion.submitted or opinion.saved}
        case Adjudication():
            run, texts = opinion.item.run, [opinion.corrected_label, opinion.reason]
            fields = {"time": opinion.created}
    return split_texts(run, [(KINDS[type(opinion)], opinion.pk, text) for text in texts], **fields)


def _of_experiment_tags(run: Run) -> list[SearchText]:
    """Return the passages of all tagged experiments of the run."""
    rows = run.experiments.filter(tags__isnull=False).order_by("number", "tags__name").values_list("seq", "tags__name")
    return [passage for seq, name in rows for passage in split_texts(run, [(TextKind.TAG, None, name)], seq=seq)]


def _of_image_tags(run: Run, **which: int) -> list[SearchText]:
    """Return the passages of all tagged images of the run, or of the chosen ones."""
    rows = run.observations.filter(tags__isnull=False, **which).order_by("pk", "tags__name")
    tagged = rows.values_list("pk", "experiment__seq", "tags__name")
    return [passage for pk, seq, name in tagged for passage in split_texts(run, [(TextKind.TAG, pk, name)], seq=seq)]


# --- signals: as soon as rows are saved ---


@receiver(post_save, sender=Run)
def note_question(instance: Run, *, created: bool, raw: bool, **_: Any) -> None:
    """Index the question once for each run; rows from a fixture come with their passages."""
    if created and not raw:
        keep_questions([instance])


def _note_opinion(instance: Opinion, *, raw: bool, **_: Any) -> None:
    if not raw:
        replace(_find_texts(instance), _make_texts(instance))


def _forget_opinion(instance: Opinion, **_: Any) -> None:
    _find_texts(instance).delete()


for model in KINDS:
    post_save.connect(_note_opinion, sender=model)
    post_delete.connect(_forget_opinion, sender=model)


@receiver(post_save, sender=ImportedOpinions)
def note_brought(instance: ImportedOpinions, *, raw: bool, **_: Any) -> None:
    if not raw:
        _keep_brought(instance)


@receiver(m2m_changed, sender=Tag.runs.through)
@receiver(m2m_changed, sender=Tag.experiments.through)
@receiver(m2m_changed, sender=Tag.observations.through)
def note_tags(instance: Any, action: str, reverse: bool, model: Any, pk_set: set[int] | None, **_: Any) -> None:
    """Index changed tags. `reverse`: the row was given tags, rather than the tag rows."""
    if action in CHANGES:
        # A cleared relation sends no keys.
        for row in [instance] if reverse else model.objects.filter(pk__in=pk_set or ()):
            _keep_tags(row)


@receiver(post_delete, sender=Tag)
def forget_tag(instance: Tag, **_: Any) -> None:
    SearchText.objects.filter(kind=TextKind.TAG, text=instance.name).delete()
