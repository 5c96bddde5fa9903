"""Discussion of a run: threads, each attached to something, and their comments."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.urls import reverse
from django.utils import timezone

TEXT_CHARS = 10_000
"""Maximum length of a comment."""
QUOTE_CHARS = 600
"""Maximum length of the text that a thread is attached to."""
NEARBY_CHARS = 60
"""Characters kept of the text before and after it, to tell it from the same words elsewhere."""


class On(models.TextChoices):
    RUN = "run", "The run"
    EVENT = "event", "An event"
    EXPERIMENT = "experiment", "An experiment"
    IMAGE = "image", "An image"
    WORDS = "words", "Some words"


NEEDS: dict[str, tuple[str, ...]] = {
    On.RUN: (),
    On.EVENT: ("seq",),
    On.EXPERIMENT: ("experiment",),
    On.IMAGE: ("experiment", "observation"),
    On.WORDS: ("seq",),
}
"""What a thread is attached to -> the columns that identify it; the others are empty."""


def _has_one_place() -> Q:
    """Return the condition that exactly the columns which identify the place are filled."""
    condition = Q()
    for on, needed in NEEDS.items():
        empty: dict[str, Any] = {f"{name}__isnull": name not in needed for name in ("seq", "experiment", "observation")}
        condition |= Q(on=on, **empty)
    return condition


class Thread(models.Model):
    """Comments on one thing."""

    run = models.ForeignKey("experiments.Run", models.CASCADE, related_name="threads")
    on = models.CharField(max_length=10, choices=On.choices)
    seq = models.PositiveIntegerField(null=True, help_text="the event, where it hangs on one or on words of it")
    experiment = models.ForeignKey("experiments.Experiment", models.CASCADE, null=True, related_name="threads")
    observation = models.ForeignKey("experiments.Observation", models.CASCADE, null=True, related_name="threads")
    # The text around the quote finds it again when an event is redrawn.
    quote = models.TextField(blank=True)
    before = models.TextField(blank=True)
    after = models.TextField(blank=True)
    place = models.PositiveIntegerField(default=0, help_text="characters of the event's text before the quote")
    created = models.DateTimeField(default=timezone.now)
    resolved = models.DateTimeField(null=True)
    resolved_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+")

    class Meta:
        ordering = ["pk"]
        constraints = [models.CheckConstraint(condition=_has_one_place(), name="thread_hangs_somewhere")]

    def __str__(self) -> str:
        return f"thread {self.pk} on run {self.run_id}"


class Comment(models.Model):
    """A person's comment. Of a deleted comment only author and time remain."""

    thread = models.ForeignKey(Thread, models.CASCADE, related_name="comments")
    author = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="comments")
    text = models.TextField()
    created = models.DateTimeField(default=timezone.now)
    edited = models.DateTimeField(null=True)
    deleted = models.DateTimeField(null=True)
    mentions = models.ManyToManyField(settings.AUTH_USER_MODEL, related_name="mentioned_in")

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"comment {self.pk}"

    def get_absolute_url(self) -> str:
        return reverse("comment", args=[self.pk])


class Wording(models.Model):
    """The text of a comment before its author changed it."""

    comment = models.ForeignKey(Comment, models.CASCADE, related_name="wordings")
    text = models.TextField()
    replaced = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"earlier wording of comment {self.comment_id}"
