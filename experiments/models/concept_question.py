"""Natural images that people judge for the label check, and their answers."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone


class ConceptChoice(models.TextChoices):
    YES = "yes", "Shows it"
    NO = "no", "Does not show it"
    UNSURE = "unsure", "Cannot tell"


class ConceptQuestion(models.Model):
    """Does this image show what the label says? Natural images of a weighted sample, mixed with known cases."""

    # `db_index=False`: the constraint below begins with this column.
    label_check = models.ForeignKey("experiments.LabelCheck", models.CASCADE, related_name="questions", db_index=False)
    position = models.PositiveIntegerField(help_text="counts the check's questions from 1, in an order drawn by lot")
    image = models.ForeignKey("experiments.Image", models.CASCADE, related_name="concept_questions")
    probe_position = models.PositiveBigIntegerField(
        null=True, help_text="where the image stands in the dataset; empty for a known case"
    )
    draws = models.PositiveIntegerField(default=1, help_text="how often the weighted sample drew it")
    weight = models.FloatField(default=1.0, help_text="importance weight p/q, over its draws")
    expected = models.BooleanField(null=True, help_text="of a known case: whether it shows what the label says")

    class Meta:
        ordering = ["label_check", "position"]
        constraints = [
            models.UniqueConstraint(fields=["label_check", "position"], name="one_concept_question_per_position")
        ]

    def __str__(self) -> str:
        return f"image {self.position} of check {self.label_check_id}"


class ConceptAnswer(models.Model):
    """One person's answer about one image, given once."""

    question = models.ForeignKey(ConceptQuestion, models.CASCADE, related_name="answers", db_index=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="concept_answers")
    answer = models.CharField(max_length=6, choices=ConceptChoice.choices)
    seconds = models.FloatField(null=True, help_text="from the image on screen to the answer, as the browser measured")
    created = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["question", "user"], name="one_concept_answer_per_person_and_question")
        ]

    def __str__(self) -> str:
        return f"{self.question}: {self.answer}"
