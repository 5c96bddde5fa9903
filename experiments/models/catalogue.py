"""What exists to be studied: models, layers, units and their exemplars. Written by workers, read by pages."""

from __future__ import annotations

from django.db import models


class Model(models.Model):
    """A vision model that a worker has loaded at least once."""

    name = models.CharField(max_length=200, unique=True)
    label = models.CharField(max_length=200, blank=True)
    revision = models.CharField(max_length=100)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Layer(models.Model):
    """A named place in a model; `name` is stable, `path` is where it is in the network."""

    model = models.ForeignKey(Model, models.CASCADE, related_name="layers")
    position = models.PositiveIntegerField()
    name = models.CharField(max_length=200)
    path = models.CharField(max_length=200)
    kind = models.CharField(max_length=10)
    units = models.PositiveIntegerField()

    class Meta:
        ordering = ["model", "position"]
        constraints = [models.UniqueConstraint(fields=["model", "name"], name="one_layer_per_name")]

    def __str__(self) -> str:
        return f"{self.model} / {self.name}"


class Unit(models.Model):
    """One channel, neuron or logit. The row appears when somebody first asks about the unit."""

    layer = models.ForeignKey(Layer, models.CASCADE, related_name="unit_set")
    number = models.PositiveIntegerField()
    quantile = models.FloatField(null=True, help_text="0.99 quantile of its spatial activations over the data set")
    indexed = models.BooleanField(default=False, help_text="its exemplars have been written")

    class Meta:
        ordering = ["layer", "number"]
        constraints = [models.UniqueConstraint(fields=["layer", "number"], name="one_unit_per_number")]

    def __str__(self) -> str:
        return f"{self.layer} / unit {self.number}"


class Exemplar(models.Model):
    """A data set image that maximally activates a unit, raw and masked."""

    unit = models.ForeignKey(Unit, models.CASCADE, related_name="exemplars")
    rank = models.PositiveIntegerField()
    activation = models.FloatField()
    image = models.ForeignKey("experiments.Image", models.PROTECT, related_name="exemplars")
    masked = models.ForeignKey("experiments.Image", models.PROTECT, related_name="masked_exemplars")

    class Meta:
        ordering = ["unit", "rank"]
        constraints = [models.UniqueConstraint(fields=["unit", "rank"], name="one_exemplar_per_rank")]

    def __str__(self) -> str:
        return f"{self.unit} exemplar {self.rank}: {self.activation:.2f}"
