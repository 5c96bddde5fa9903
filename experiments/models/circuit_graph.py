"""Graphs of circuits: what each member does to a class and to the members of later layers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import TypedDict

from django.db import models
from django.urls import reverse
from django.utils import timezone

from experiments.models import stored
from experiments.models.circuit import Circuit, CircuitMemberRow
from experiments.models.dataset import Dataset
from workers.record.circuits import CircuitMember


class StoredMember(TypedDict):
    model: str
    layer: str
    unit: int


class CircuitGraph(models.Model):
    """One question, asked once; a worker writes the answer. How far it is, its job says."""

    circuit = models.ForeignKey("experiments.Circuit", models.CASCADE, related_name="graphs")
    dataset = models.ForeignKey("experiments.Dataset", models.CASCADE, related_name="circuit_graphs")
    target = models.CharField(
        max_length=200, blank=True, help_text="name or number of a class; empty: the one that the circuit moves most"
    )
    members = stored.ShapedJSONField(shape=list[StoredMember], default=list, help_text="of the circuit, when asked")
    key = models.CharField(max_length=64, unique=True, help_text="hash of all that the answer depends on")
    created = models.DateTimeField(default=timezone.now)
    job = models.ForeignKey("experiments.Job", models.SET_NULL, null=True, related_name="circuit_graphs")
    result = stored.ShapedJSONField(
        default=dict, blank=True, help_text="see workers.record.circuit_graphs.CircuitGraphReport"
    )
    measured = models.DateTimeField(null=True, help_text="empty until a worker has measured it")

    class Meta:
        ordering = ["-pk"]
        verbose_name = "graph of a circuit"

    def __str__(self) -> str:
        return f"Graph of {self.circuit.name}" + (f", {self.target}" if self.target else "")

    def get_absolute_url(self) -> str:
        return f"{reverse('circuit', args=[self.circuit_id])}?graph={self.pk}#graph"

    @property
    def asked_members(self) -> list[CircuitMember]:
        return [CircuitMember(each["model"], each["layer"], each["unit"]) for each in self.members]

    @property
    def status(self) -> str:
        """That of its job; "done" once it is measured."""
        return "done" if self.measured else self.job.status if self.job else "stopped"

    @property
    def is_moving(self) -> bool:
        return self.measured is None and self.job is not None and self.job.is_moving

    @staticmethod
    def key_of(circuit: Circuit, members: Sequence[CircuitMemberRow], dataset: Dataset, target: str) -> str:
        """The same for the same question of the same members, weights and images."""
        places = [(each.member, each.place[0].model.revision if each.place else "") for each in members]
        asked = [[each.model, each.layer, each.unit, revision] for each, revision in places]
        base = circuit.base.revision if circuit.base else ""
        of = [circuit.pk, circuit.network, base, asked, dataset.key, dataset.revision, target]
        return hashlib.sha256(json.dumps(of).encode()).hexdigest()
