"""Has texts found as soon as their rows are saved, whoever saves them: a form, a command, the API, an import."""

from __future__ import annotations

from typing import Any

from django.db.models.signals import m2m_changed, post_delete, post_save
from django.dispatch import receiver

from experiments.core.search_index import opinions
from experiments.core.search_index.texts import keep_questions
from experiments.models import Adjudication, Comment, ImportedOpinions, Review, Run, SearchText, Tag
from experiments.models.search_text import TextKind

OPINIONS = [Comment, Review, Adjudication]
CHANGES = frozenset({"post_add", "post_remove", "post_clear"})


@receiver(post_save, sender=Run)
def note_question(instance: Run, *, created: bool, raw: bool, **_: Any) -> None:
    """Once for each run; rows that a fixture brings come with their passages."""
    if created and not raw:
        keep_questions([instance])


def note_opinion(instance: opinions.Opinion, *, raw: bool, **_: Any) -> None:
    if not raw:
        opinions.keep(instance)


def forget_opinion(instance: opinions.Opinion, **_: Any) -> None:
    opinions.forget(instance)


for model in OPINIONS:
    post_save.connect(note_opinion, sender=model)
    post_delete.connect(forget_opinion, sender=model)


@receiver(post_save, sender=ImportedOpinions)
def note_brought(instance: ImportedOpinions, *, raw: bool, **_: Any) -> None:
    if not raw:
        opinions.keep_brought(instance)


@receiver(m2m_changed, sender=Tag.runs.through)
@receiver(m2m_changed, sender=Tag.experiments.through)
@receiver(m2m_changed, sender=Tag.observations.through)
def note_tags(instance: Any, action: str, reverse: bool, model: Any, pk_set: set[int] | None, **_: Any) -> None:
    """`reverse`: the row was given tags, rather than the tag rows."""
    if action in CHANGES:
        for row in [instance] if reverse else model.objects.filter(pk__in=pk_set or ()):
            opinions.keep_tags(row)


@receiver(post_delete, sender=Tag)
def forget_tag(instance: Tag, **_: Any) -> None:
    SearchText.objects.filter(kind=TextKind.TAG, text=instance.name).delete()
