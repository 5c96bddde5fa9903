"""Datasets, and what each shows of the units that were asked about. Workers write, pages read."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone

from experiments.models import stored
from experiments.models.mapped import MappedImage
from experiments.models.plugin import PluginRow
from workers.record.figures import figure


class Dataset(PluginRow):
    """Images in a fixed order from which exemplars are taken."""

    key = models.CharField(
        max_length=500, unique=True, help_text="as in the registry: toybox, folder:/path, saved:/path"
    )
    revision = models.CharField(max_length=100, blank=True)
    images = models.PositiveIntegerField(default=0)
    broken = stored.ShapedJSONField(
        shape=list[stored.Unreadable],
        default=list,
        blank=True,
        help_text="the first files that cannot be read, and why",
    )
    broken_count = models.PositiveIntegerField(default=0, help_text="files that were left out when it was indexed")
    added_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")
    added = models.DateTimeField(null=True, blank=True, help_text="empty for datasets of the registry and the settings")

    class Meta:
        ordering = ["pk"]
        verbose_name = "dataset"

    def __str__(self) -> str:
        return self.key


class LayerIndex(models.Model):
    """A layer whose units have all been measured over a dataset; the figures are in the state folder."""

    dataset = models.ForeignKey(Dataset, models.CASCADE, related_name="indexes")
    layer = models.ForeignKey("experiments.Layer", models.CASCADE, related_name="indexes")
    written = models.DateTimeField(default=timezone.now)
    dead = stored.ShapedJSONField(
        shape=list[int], null=True, help_text="numbers of the units that no image activates; null if not measured"
    )

    class Meta:
        ordering = ["layer"]
        verbose_name_plural = "indexes"
        constraints = [models.UniqueConstraint(fields=["dataset", "layer"], name="one_index_per_layer")]

    def __str__(self) -> str:
        return f"{self.layer} over {self.dataset}"


class UnitProfile(models.Model):
    """One unit over one dataset. The row is created when the unit is first asked about; the figures come with its
    exemplars."""

    unit = models.ForeignKey("experiments.Unit", models.CASCADE, related_name="profiles")
    dataset = models.ForeignKey(Dataset, models.CASCADE, related_name="profiles")
    quantile = models.FloatField(null=True, help_text="0.99 quantile of its spatial activations")
    mean = models.FloatField(null=True, help_text="of its activations, one for each image")
    maximum = models.FloatField(null=True)
    active = models.FloatField(null=True, help_text="share of the images with an activation above 0")
    histogram = stored.ShapedJSONField(
        shape=stored.Histogram, default=dict, blank=True, help_text="images by activation: start, width, counts"
    )
    written = models.DateTimeField(null=True, help_text="empty until a worker has written the exemplars")
    problem = models.TextField(blank=True, help_text="why the last attempt to write them failed")
    note = models.TextField(blank=True, help_text="what to know of the exemplars: published ones of other weights")
    neighbours = stored.ShapedJSONField(
        shape=stored.Neighbours,
        default=dict,
        blank=True,
        help_text="the units most like it: measure, images, same, others; or problem",
    )
    compared = models.DateTimeField(null=True, help_text="when a worker looked for the neighbours")

    class Meta:
        ordering = ["unit", "dataset"]
        constraints = [models.UniqueConstraint(fields=["unit", "dataset"], name="one_profile_per_dataset")]

    def __str__(self) -> str:
        return f"{self.unit} over {self.dataset}"


class Exemplar(MappedImage):
    """A dataset image that maximally activates a unit, raw and masked, with its activation map."""

    profile = models.ForeignKey(UnitProfile, models.CASCADE, related_name="exemplars")
    rank = models.PositiveIntegerField()
    activation = models.FloatField()
    image = models.ForeignKey("experiments.Image", models.PROTECT, related_name="exemplars")
    masked = models.ForeignKey("experiments.Image", models.PROTECT, related_name="masked_exemplars")

    class Meta:
        ordering = ["profile", "rank"]
        constraints = [models.UniqueConstraint(fields=["profile", "rank"], name="one_exemplar_per_rank")]

    def __str__(self) -> str:
        return f"{self.profile} exemplar {self.rank}: {figure(self.activation)}"
