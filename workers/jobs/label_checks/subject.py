"""The unit of a label check: its system, exemplars, known truth, and labels of other units."""

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
"""Number of labels of other units that are drawn: more than are used as floors, because some cannot be tested."""


@dataclass(frozen=True)
class CheckedUnit:
    """The unit of a check. Nothing is measured before it is accessed."""

    check: LabelCheck
    lab: Laboratory
    spec: SystemSpec
    progress: Progress

    @classmethod
    def of(cls, check: LabelCheck, progress: Progress) -> CheckedUnit:
        """Return the unit of a check. Raises UnknownName if it does not exist."""
        spec = check.unit.spec(check.dataset)
        laboratory().check(spec)
        return cls(check, laboratory(), spec, progress)

    @cached_property
    def exemplars(self) -> Sequence[Exemplar]:
        return self.lab.subject(self.spec).exemplars(self.progress)

    @property
    def exemplar_mean(self) -> float | None:
        """Return the mean activation of the exemplars; None if no image of the dataset activates the unit."""
        found = [each.activation for each in self.exemplars]
        return sum(found) / len(found) if found else None

    @property
    def truth(self) -> str:
        """Return what a synthetic neuron responds to; "" for other units."""
        layer = self.check.unit.layer
        return layer.name_of(self.spec.unit) if self.spec.kind == "synthetic" else ""

    @property
    def other_label(self) -> str:
        """Return the label of another unit of the model; "" if there is none."""
        return self.other_labels[0] if self.other_labels else ""

    @cached_property
    def other_labels(self) -> Sequence[str]:
        """Return up to `MAX_OTHERS` labels of other units: of the same layer, then of the model, then names of
        classes."""
        # Drawn by the check's key, so that a repeated check gets the same ones.
        unit, layer = self.check.unit, self.check.unit.layer
        # "none" is no label, and the label itself no floor.
        others = Label.objects.exclude(units=unit).exclude(text__iexact=self.check.text).exclude(text__iexact="none")
        found: dict[str, str] = {}
        for place in ({"units__layer": layer}, {"units__layer__model": layer.model}):
            # Sorted before drawing, since the order of a database is arbitrary.
            texts = sorted(set(others.filter(**place).values_list("text", flat=True)[:1000]))
            self._draw(texts, found)
        if len(found) < MAX_OTHERS:
            rows = Layer.objects.filter(model=layer.model, kind="logit").exclude(pk=layer.pk)
            own = self.check.text.casefold()
            self._draw([name for each in rows for name in each.names if name.casefold() not in own], found)
        return list(found.values())

    def _draw(self, among: Sequence[str], found: dict[str, str]) -> None:
        """Add labels to `found` until it is full."""
        if not among or len(found) >= MAX_OTHERS:
            return
        # The one that older checks drew comes first, so that their results can be compared.
        first = among[int(sha256(self.check.key.encode()).hexdigest(), 16) % len(among)]
        rng = random.Random(self.check.key)
        for text in [first, *rng.sample(among, min(len(among), 4 * MAX_OTHERS))]:
            if len(found) < MAX_OTHERS:
                # By the folded text: labels that differ only in case are one.
                found.setdefault(text.casefold(), text)
