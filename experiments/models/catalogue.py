"""Models, their layers and units, which workers write; and labels of units, from anywhere."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.conf import settings
from django.db import models

from experiments.models import stored
from experiments.models.plugin import PluginRow
from workers import registry
from workers.record import tasks
from workers.record.circuits import CIRCUIT
from workers.record.systems import SystemSpec

_NOUNS = {
    "logit": ("unit", "classes"),
    "concept": ("unit", "neurons"),
    "latent": ("unit", "latents"),
    CIRCUIT: ("circuit", "circuits"),
    tasks.FUNCTION: ("function", "functions"),
}
"""Kind of a layer -> what one of its units is called before its number, and the plural."""


class VisionModelRow(PluginRow):
    """A vision model of the registry, or one that an admin added. Its layers are known once a worker has loaded it."""

    name = models.CharField(
        max_length=200, unique=True, help_text="its key in the registry, as hf:microsoft/resnet-152"
    )
    revision = models.CharField(max_length=100, blank=True, help_text="of its weights, when its layers were listed")
    about = models.TextField(blank=True, help_text="which weights they are, as far as the worker could tell")
    base = models.CharField(max_length=200, blank=True, help_text="key of the model that it is laid over, if it is")
    added_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")
    added = models.DateTimeField(null=True, blank=True, help_text="empty for models of the registry")

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def other_name(self) -> str:
        """Return what a page shows beside the name: the key of an added model, else the label."""
        return self.name if self.added else self.label

    @property
    def weights(self) -> str:
        """Return which weights it has; a warning if publications mean other weights by this name."""
        return registry.weights_warning(self.name) or self.about

    @property
    def note(self) -> str:
        """Return the form's note beside the name."""
        return " · ".join(each for each in (self.other_name, self.weights) if each)


class _ListedLayers(models.Manager["Layer"]):
    """The layers of a network, without those that its circuits are studied as."""

    def get_queryset(self) -> models.QuerySet[Layer]:
        return super().get_queryset().exclude(kind=CIRCUIT)


class Layer(models.Model):
    """A named place in a model; `name` is stable, `path` is its place in the network."""

    model = models.ForeignKey(VisionModelRow, models.CASCADE, related_name="layers")
    position = models.PositiveIntegerField()
    name = models.CharField(max_length=200)
    path = models.CharField(max_length=200)
    kind = models.CharField(max_length=10)
    units = models.PositiveIntegerField()
    names = stored.ShapedJSONField(
        shape=tuple[str, ...],
        default=list,
        blank=True,
        help_text="of the units: classes or concepts, where they have some",
    )

    scale = models.CharField(
        max_length=10, blank=True, help_text="how logits become probabilities: softmax or sigmoid; empty for others"
    )

    # The first manager is Django's default: circuits are left out unless they are asked for.
    objects = _ListedLayers()
    with_circuits: models.Manager[Layer] = models.Manager()

    class Meta:
        ordering = ["model", "position"]
        constraints = [models.UniqueConstraint(fields=["model", "name"], name="one_layer_per_name")]

    def __str__(self) -> str:
        return f"{self.model} / {self.name}"

    @property
    def measure(self) -> str:
        """Return what the activation of its units measures, if that needs an explanation."""
        return registry.SCALES.get(self.scale, "")

    @property
    def noun(self) -> str:
        """Return what one of its units is called before its number."""
        return _NOUNS.get(self.kind, ("unit", "units"))[0]

    @property
    def plural(self) -> str:
        """Return what several of its units are called."""
        return _NOUNS.get(self.kind, ("unit", "units"))[1]

    @property
    def takes_images(self) -> bool:
        """Return False for functions, which have no exemplars and no activations."""
        return self.kind != tasks.FUNCTION

    def spec(self, number: int, dataset: str = "") -> SystemSpec:
        """Return the system of one of its units, over a dataset if one is given."""
        options = {"dataset": dataset} if dataset else {}
        return SystemSpec(registry.system_of(self.kind), self.model.name, self.name, number, options)

    def name_of(self, number: int) -> str:
        """Return the class or concept of a unit; "" if it has none."""
        names: list[Any] = self.names
        return str(names[number]) if 0 <= number < len(names) else ""


class Unit(models.Model):
    """One channel, neuron, logit or synthetic neuron. The row is created when the unit is first asked about."""

    layer = models.ForeignKey(Layer, models.CASCADE, related_name="unit_set")
    number = models.PositiveIntegerField()
    members = stored.ShapedJSONField(
        shape=list[stored.StoredMember],
        null=True,
        blank=True,
        help_text="of a circuit, whose number stands for them; empty for others",
    )

    class Meta:
        ordering = ["layer", "number"]
        constraints = [models.UniqueConstraint(fields=["layer", "number"], name="one_unit_per_number")]

    def __str__(self) -> str:
        if self.members is not None:
            return f"{self.layer.model} / circuit of {len(self.members)} members"
        return f"{self.layer} / unit {self.number}"

    def spec(self, dataset: str = "") -> SystemSpec:
        """Return its system, over a dataset if one is given."""
        spec = self.layer.spec(self.number, dataset)
        return spec if self.members is None else replace(spec, options={**spec.options, "members": self.members})


class Label(models.Model):
    """A short text that says what a unit responds to, with its source."""

    units = models.ManyToManyField("experiments.Unit", related_name="labels")
    text = models.TextField()
    source = models.CharField(max_length=40, help_text="run, person, import or baseline")
    run = models.ForeignKey("experiments.Run", models.CASCADE, null=True, related_name="label_set")
    position = models.PositiveIntegerField(default=1)
    scores = stored.ShapedJSONField(shape=dict[str, stored.Scalar], default=dict, blank=True)
    label_check = models.ForeignKey(
        "experiments.LabelCheck", models.SET_NULL, null=True, blank=True, related_name="labels"
    )

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return self.text
