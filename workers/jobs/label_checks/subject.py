"""The unit that a check is about: its system, its exemplars, its truth where it is known, a label to compare with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

from experiments.models import Label, LabelCheck, Layer
from workers.jobs.laboratory import laboratory
from workers.lab.laboratory import Laboratory
from workers.protocols import Exemplar, Progress
from workers.record.systems import SystemSpec


@dataclass(frozen=True)
class CheckedUnit:
    """See the module. Nothing is measured before it is asked for."""

    check: LabelCheck
    lab: Laboratory
    spec: SystemSpec
    progress: Progress

    @classmethod
    def of(cls, check: LabelCheck, progress: Progress) -> CheckedUnit:
        """Raises UnknownName if the unit does not exist."""
        spec = check.unit.spec(check.dataset)
        laboratory().check(spec)
        return cls(check, laboratory(), spec, progress)

    @cached_property
    def exemplars(self) -> Sequence[Exemplar]:
        return self.lab.subject(self.spec).exemplars(self.progress)

    @property
    def exemplar_mean(self) -> float | None:
        """None for a unit that no image of the dataset activates."""
        found = [each.activation for each in self.exemplars]
        return sum(found) / len(found) if found else None

    @property
    def truth(self) -> str:
        """What a synthetic neuron responds to; "" for others."""
        layer = self.check.unit.layer
        return layer.name_of(self.spec.unit) if self.spec.kind == "synthetic" else ""

    @cached_property
    def other_label(self) -> str:
        """The label of another unit of the model, drawn by the check's key: of its layer, else any, else a class."""
        unit, layer = self.check.unit, self.check.unit.layer
        others = Label.objects.exclude(units=unit).exclude(text__iexact=self.check.text).exclude(text__iexact="none")
        for place in ({"units__layer": layer}, {"units__layer__model": layer.model}):
            texts = sorted(set(others.filter(**place).values_list("text", flat=True)[:1000]))
            if texts:
                return self._draw(texts)
        classes = Layer.objects.filter(model=layer.model, kind="logit").exclude(pk=layer.pk)
        names = [name for each in classes for name in each.names if name.casefold() not in self.check.text.casefold()]
        return self._draw(names) if names else ""

    def _draw(self, among: Sequence[str]) -> str:
        return among[int(sha256(self.check.key.encode()).hexdigest(), 16) % len(among)]
