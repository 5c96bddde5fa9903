"""Passages: every text that can be searched, with its place. Written only by `core.search_index`."""

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
"""Passages that not everyone may see at all times: see `search.permissions`."""


class SearchText(models.Model):
    """A text of a run, on a run, or of a label from elsewhere. A long text is several passages, each overlapping the
    next.

    `normalized` is what is compared: see `core.search_index.normalize`.
    """

    run = models.ForeignKey("experiments.Run", models.CASCADE, null=True, related_name="search_texts", db_index=False)
    # The system is repeated here, so that a search within one unit reads no other table.
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
    """A run's question, system, labels and description, normalized, for lists of runs with a filter for words.

    One short row for each run, so that a page can compare them all.
    """

    run = models.OneToOneField("experiments.Run", models.CASCADE, primary_key=True, related_name="summary")
    normalized = models.TextField()

    def __str__(self) -> str:
        return f"summary of run {self.pk}: {self.normalized[:60]}"
