"""Circuits: named sets of units and latents of one network."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.urls import reverse
from django.utils import timezone

from experiments.models.catalogue import Layer
from workers.record.circuits import CircuitMember


class Circuit(models.Model):
    """A named set of units of one network, and latents of auto-encoders on top of it."""

    name = models.CharField(max_length=80)
    network = models.CharField(max_length=200, help_text="key of the model; it outlives the model")
    base = models.ForeignKey(
        "experiments.VisionModelRow", models.SET_NULL, null=True, blank=True, related_name="circuits"
    )
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="circuits")
    created = models.DateTimeField(default=timezone.now)
    note = models.TextField(blank=True)

    class Meta:
        ordering = ["-pk"]
        indexes = [models.Index(fields=["network", "id"], name="circuits_by_network")]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("circuit", args=[self.pk])


class CircuitMemberRow(models.Model):
    """A member of a circuit. Its name stays when its unit, layer or model is deleted."""

    circuit = models.ForeignKey(Circuit, models.CASCADE, related_name="members")
    position = models.PositiveIntegerField()
    unit = models.ForeignKey("experiments.Unit", models.SET_NULL, null=True, blank=True, related_name="circuit_members")
    model = models.CharField(max_length=200)
    layer = models.CharField(max_length=200)
    number = models.PositiveIntegerField()
    revision = models.CharField(max_length=100, blank=True, help_text="of the weights, when it was added")
    label = models.TextField(blank=True, help_text="what it was called where the circuit comes from")

    class Meta:
        ordering = ["circuit", "position", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["circuit", "model", "layer", "number"], name="one_member_per_unit")
        ]
        indexes = [models.Index(fields=["model", "layer", "number"], name="members_by_unit")]
        verbose_name = "member of a circuit"

    def __str__(self) -> str:
        return str(self.member)

    @property
    def place(self) -> tuple[Layer, int] | None:
        """Return its layer and number; None if the catalogue no longer has the unit."""
        if self.unit is None or self.unit.number >= self.unit.layer.units:
            return None
        return self.unit.layer, self.unit.number

    @property
    def member(self) -> CircuitMember:
        """Return its current name, or its stored name if it was deleted."""
        if self.place is None:
            return CircuitMember(self.model, self.layer, self.number)
        layer, number = self.place
        return CircuitMember(layer.model.name, layer.name, number)

    @property
    def has_other_weights(self) -> bool:
        """True if the model here has other weights than when the member was added."""
        return self.place is not None and bool(self.revision) and self.place[0].model.revision != self.revision
