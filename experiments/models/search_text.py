"""Passages: every piece of text that search looks in, with where it stands. Written by `experiments.search` alone."""

from __future__ import annotations

from django.db import models
from django.utils import timezone


class TextKind(models.TextChoices):
    QUESTION = "question", "Question"
    HYPOTHESIS = "hypothesis", "Hypothesis"
    REPLY = "reply", "Reply"
    CODE = "code", "Program"
    OUTPUT = "output", "Output"
    TITLE = "title", "Image"
    DESCRIPTION = "description", "Conclusion"
    LABEL = "label", "Label"
    NOTE = "note", "Note"
    COMMENT = "comment", "Comment"
    REVIEW = "review", "Review"
    FINAL = "final", "Final verdict"
    TAG = "tag", "Tag"


OPINIONS = (TextKind.COMMENT, TextKind.REVIEW, TextKind.FINAL)
"""What is not for everybody at every moment: see `search.permissions`."""


class SearchText(models.Model):
    """A text of a run or on it, or of a label from elsewhere; long texts are several, each overlapping the next.

    `normalized` is what is compared: see `core.search_index.normalize`. The system stands here again so that a search
    within one unit
    reads nothing else.
    """

    run = models.ForeignKey("experiments.Run", models.CASCADE, null=True, related_name="search_texts", db_index=False)
    model = models.CharField(max_length=200)
    layer = models.CharField(max_length=200)
    unit = models.PositiveIntegerField()
    kind = models.CharField(max_length=12, choices=TextKind.choices)
    seq = models.PositiveIntegerField(
        default=0, help_text="the event it stands in; 0 for questions and labels without one"
    )
    anchor = models.BigIntegerField(
        null=True,
        help_text="number of the experiment, round of the reply or note; key of the observation, label, comment, "
        "review, final verdict",
    )
    time = models.DateTimeField(default=timezone.now)
    text = models.TextField()
    normalized = models.TextField()

    class Meta:
        ordering = ["-pk"]
        indexes = [
            models.Index(fields=["run", "id"], name="search_texts_of_a_run"),
            models.Index(fields=["kind", "id"], name="search_texts_of_a_kind"),
            models.Index(fields=["model", "id"], name="search_texts_of_a_model"),
            models.Index(fields=["model", "layer", "unit", "id"], name="search_texts_of_a_unit"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} of run {self.run_id}: {self.text[:60]}"


class RunSummary(models.Model):
    """What one remembers a run by: its question, system, labels and description, normalized. Lists of runs look in it.

    A row for each run, and short: all can be compared one by one while a page is drawn.
    """

    run = models.OneToOneField("experiments.Run", models.CASCADE, primary_key=True, related_name="summary")
    normalized = models.TextField()

    def __str__(self) -> str:
        return f"summary of run {self.pk}: {self.normalized[:60]}"
