"""The unit that a check is about: its system, its exemplars, its truth where it is known, a label to compare with."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

from experiments.models import Label, LabelCheck, Layer
from workers.jobs.laboratory import laboratory
from workers.lab.laboratory import Laboratory
from workers.protocols import Exemplar, Progress
from workers.record.systems import SystemSpec

MAX_OTHERS = 20
"""Labels of other units that are drawn: more than are used as floors, since not every label can be tested."""


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

    @property
    def other_label(self) -> str:
        """The label of another unit of the model; "" where there is none."""
        return self.other_labels[0] if self.other_labels else ""

    @cached_property
    def other_labels(self) -> Sequence[str]:
        """Labels of other units of the model, up to `MAX_OTHERS`, drawn by the check's key: of its layer first, then
        of any, then names of classes. The same words occur once, whatever their capitals."""
        unit, layer = self.check.unit, self.check.unit.layer
        others = Label.objects.exclude(units=unit).exclude(text__iexact=self.check.text).exclude(text__iexact="none")
        found: dict[str, str] = {}
        for place in ({"units__layer": layer}, {"units__layer__model": layer.model}):
            texts = sorted(set(others.filter(**place).values_list("text", flat=True)[:1000]))
            self._draw(texts, found)
        if len(found) < MAX_OTHERS:
            rows = Layer.objects.filter(model=layer.model, kind="logit").exclude(pk=layer.pk)
            own = self.check.text.casefold()
            self._draw([name for each in rows for name in each.names if name.casefold() not in own], found)
        return list(found.values())

    def _draw(self, among: Sequence[str], found: dict[str, str]) -> None:
        """Fill up what is found, by folded text. The first is that of checks from before several were drawn."""
        if not among or len(found) >= MAX_OTHERS:
            return
        first = among[int(sha256(self.check.key.encode()).hexdigest(), 16) % len(among)]
        rng = random.Random(self.check.key)
        for text in [first, *rng.sample(among, min(len(among), 4 * MAX_OTHERS))]:
            if len(found) < MAX_OTHERS:
                found.setdefault(text.casefold(), text)
