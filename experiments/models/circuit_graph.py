"""Graphs of circuits: the effect of each member on a class and on the members of later layers."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import models
from django.urls import reverse

from experiments.models import stored
from experiments.models.asked_once import AskedOnce, hash_question
from experiments.models.circuit import Circuit, CircuitMemberRow
from experiments.models.dataset import Dataset
from workers.record.circuits import CircuitMember


class CircuitGraph(AskedOnce):
    """A question about a circuit; `result` is a workers.record.circuit_graphs.CircuitGraphReport."""

    circuit = models.ForeignKey("experiments.Circuit", models.CASCADE, related_name="graphs")
    dataset = models.ForeignKey("experiments.Dataset", models.CASCADE, related_name="circuit_graphs")
    target = models.CharField(
        max_length=200, blank=True, help_text="name or number of a class; empty: the one that the circuit moves most"
    )
    members = stored.ShapedJSONField(
        shape=list[stored.StoredMember], default=list, help_text="of the circuit, when asked"
    )

    class Meta(AskedOnce.Meta):
        verbose_name = "graph of a circuit"

    def __str__(self) -> str:
        return f"Graph of {self.circuit.name}" + (f", {self.target}" if self.target else "")

    def get_absolute_url(self) -> str:
        return f"{reverse('circuit', args=[self.circuit_id])}?graph={self.pk}#graph"

    @property
    def asked_members(self) -> list[CircuitMember]:
        return [CircuitMember(each["model"], each["layer"], each["unit"]) for each in self.members]

    @staticmethod
    def key_of(circuit: Circuit, members: Sequence[CircuitMemberRow], dataset: Dataset, target: str) -> str:
        """Return a key that is equal for the same question about the same members, weights and images."""
        places = [(each.member, each.place[0].model.revision if each.place else "") for each in members]
        asked = [[each.model, each.layer, each.unit, revision] for each, revision in places]
        base = circuit.base.revision if circuit.base else ""
        return hash_question(circuit.pk, circuit.network, base, asked, dataset.key, dataset.revision, target)
