"""The scientist's view of a case: trials weighed, hints and labels ranked, and the rng for the next design."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cached_property

from workers.toybox.scientist.hints import suggest_concepts
from workers.toybox.scientist.reading import ConversationState
from workers.toybox.scientist.scoring import ENOUGH, Label, LabelScore, TrialEvidence, normalize_label, search_labels
from workers.toybox.scientist.trials import read_exemplars, read_trials
from workers.toybox.world.concepts import Concept, parse_label, phrase_label
from workers.toybox.world.scenes import Scene

ATTEMPTS = 2
"""How often a step that fails is tried."""
LEADING = 3


@dataclass(frozen=True)
class ScientistView:
    """The case, and what follows from it. The same case and seed give the same view."""

    case: ConversationState
    seed: int

    @cached_property
    def evidence(self) -> TrialEvidence:
        return TrialEvidence(read_trials(self.case))

    @cached_property
    def tests(self) -> dict[Label, TrialEvidence]:
        """Labels that were put to a test, each with the trials drawn for tests since: it was chosen knowing none."""
        tested: dict[Label, TrialEvidence] = {}
        validations = [report for report in self.case.reports if report.step == "validate"]
        for report in validations:
            since = [
                each for each in self.evidence.trials if each.step == "validate" and each.experiment >= report.number
            ]
            for note in report.notes:
                label = normalize_label(parse_label(note))
                if label and phrase_label(label) == note:
                    tested.setdefault(label, TrialEvidence(since))
        return tested

    def tested(self, label: Label) -> LabelScore | None:
        """What the tests say of a label; None if it was not put to one, or too little was seen."""
        found = self.tests[label].measure(label) if label in self.tests else None
        return found if found and min(found.count, found.others) >= ENOUGH else None

    @cached_property
    def exemplars(self) -> list[tuple[Scene, float]]:
        return read_exemplars(self.case)

    @cached_property
    def hints(self) -> list[tuple[Concept, int]]:
        """What the exemplars share, with the number of exemplars that do."""
        return suggest_concepts([scene for scene, _ in self.exemplars])

    @cached_property
    def labels(self) -> list[Label]:
        """Every label worth weighing, best first; what the exemplars suggest, where nothing was drawn yet."""
        hints = [concept for concept, _ in self.hints]
        if not len(self.evidence):
            return [normalize_label((concept,)) for concept in hints]
        return search_labels(self.evidence, hints)

    @property
    def leading(self) -> list[Label]:
        return self.labels[:LEADING]

    @property
    def silent(self) -> bool:
        """Whether the unit never answered: no exemplars, and the same activation for everything drawn."""
        activations = self.evidence.activations
        return not self.exemplars and len(activations) > 0 and float(activations.max() - activations.min()) < 1e-9

    def rng(self, step: str) -> random.Random:
        """For the design of a step; another attempt has other rng."""
        return random.Random(f"scripted scientist {self.seed} {step} {self.case.tried(step)}")

    def due(self, step: str, times: int = 1) -> bool:
        """Whether a step is still to be done, and has not failed too often."""
        return self.case.done(step) < times and self.case.tried(step) - self.case.done(step) < ATTEMPTS

    def fewer(self, step: str, count: int) -> int:
        """So many, or half of it after a failure."""
        return count if self.case.tried(step) == self.case.done(step) else max(1, count // 2)
