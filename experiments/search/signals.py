"""Has a question found as soon as its run is saved, whoever asks: the form, a command, the API, an import."""

from __future__ import annotations

from typing import Any

from django.db.models.signals import post_save
from django.dispatch import receiver

from experiments.models import Run
from experiments.search.passages import keep_questions


@receiver(post_save, sender=Run)
def note_question(instance: Run, *, created: bool, raw: bool, **_: Any) -> None:
    """Once for each run; rows that a fixture brings come with their passages."""
    if created and not raw:
        keep_questions([instance])
