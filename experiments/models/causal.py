"""Causal checks: how a model's output changes when units of a layer are ablated or scaled."""

from __future__ import annotations

from django.db import models
from django.urls import reverse

from experiments.models import stored
from experiments.models.asked_once import AskedOnce, hash_question
from experiments.models.catalogue import Layer
from experiments.models.dataset import Dataset
from workers.record.causal import CausalQuestion


class CausalCheck(AskedOnce):
    """A causal question about units of one layer; `result` is a workers.record.causal.CausalReport."""

    layer = models.ForeignKey("experiments.Layer", models.CASCADE, related_name="causal_checks")
    dataset = models.ForeignKey("experiments.Dataset", models.CASCADE, related_name="causal_checks")
    units = stored.ShapedJSONField(shape=list[int], default=list, help_text="numbers, ascending")
    changed_units = models.ManyToManyField(
        "experiments.Unit", related_name="causal_checks", help_text="the same as rows, so that each finds its checks"
    )
    factor = models.FloatField(help_text="0 ablates, 2 doubles")
    reference = models.CharField(max_length=10, help_text="zero, or the mean of each unit over all places")
    seed = models.PositiveIntegerField(default=0, help_text="of the draw of control units")
    impossible = models.TextField(blank=True, help_text="why no unit of the layer can be checked, as a worker found")

    class Meta(AskedOnce.Meta):
        verbose_name = "causal check"

    def __str__(self) -> str:
        words = {0.0: "ablated", 2.0: "doubled"}.get(self.factor, f"times {self.factor:g}")
        some = ", ".join(map(str, self.units[:3])) + (f" and {len(self.units) - 3} more" if len(self.units) > 3 else "")
        towards = " towards the mean" if self.reference == "mean" else ""
        return f"{self.layer} / {self.layer.noun} {some} {words}{towards}"

    def get_absolute_url(self) -> str:
        address = reverse("unit", args=[self.layer.model.name, self.layer.name, self.units[0] if self.units else 0])
        return f"{address}?causal={self.pk}#causal"

    @property
    def question(self) -> CausalQuestion:
        return CausalQuestion(tuple(self.units), self.factor, self.reference, self.seed)

    @staticmethod
    def key_of(layer: Layer, dataset: Dataset, question: CausalQuestion) -> str:
        """Return a key that is equal for the same question about the same weights and images."""
        # Revisions are part of it: other weights or images are another question.
        of = [layer.pk, layer.model.revision, dataset.key, dataset.revision]
        asked = [list(question.units), float(question.factor), question.reference, question.seed]
        return hash_question(*of, *asked)
