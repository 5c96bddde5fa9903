"""Studies to publish: chosen units and runs in order, with a title, a text and captions."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.urls import reverse
from django.utils import timezone

from experiments.models.catalogue import Layer


class Study(models.Model):
    """A study."""

    title = models.CharField(max_length=120)
    text = models.TextField(blank=True)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="studies")
    created = models.DateTimeField(default=timezone.now)
    updated = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-pk"]
        verbose_name_plural = "studies"

    def __str__(self) -> str:
        return self.title

    def get_absolute_url(self) -> str:
        return reverse("study", args=[self.pk])


class StudyItem(models.Model):
    """A run or a unit of a study. The unit's name stays when it, its layer or its model is deleted."""

    study = models.ForeignKey(Study, models.CASCADE, related_name="items")
    position = models.PositiveIntegerField()
    caption = models.TextField(blank=True)
    run = models.ForeignKey("experiments.Run", models.CASCADE, null=True, blank=True, related_name="study_items")
    unit = models.ForeignKey("experiments.Unit", models.SET_NULL, null=True, blank=True, related_name="study_items")
    model = models.CharField(max_length=200, blank=True)
    layer = models.CharField(max_length=200, blank=True)
    number = models.PositiveIntegerField(null=True, blank=True)

    class Meta:
        ordering = ["study", "position", "pk"]
        constraints = [
            models.CheckConstraint(
                condition=Q(run__isnull=False, unit=None, number=None) | Q(run=None, number__isnull=False),
                name="study_item_is_a_run_or_a_unit",
            ),
            models.UniqueConstraint(fields=["study", "run"], name="one_study_item_per_run"),
            models.UniqueConstraint(fields=["study", "model", "layer", "number"], name="one_study_item_per_unit"),
        ]
        verbose_name = "item of a study"

    def __str__(self) -> str:
        return f"run {self.run_id}" if self.run_id else f"{self.model} / {self.layer} / unit {self.number}"

    @property
    def place(self) -> tuple[Layer, int] | None:
        """Return layer and number of its unit; None for a run, or if the catalogue no longer has the unit."""
        if self.unit is None or self.unit.number >= self.unit.layer.units:
            return None
        return self.unit.layer, self.unit.number
