"""Label checks of synthetic neurons without run, agent or database: all neurons share one look at each image.

Labels are the truth, or wrong by one property: too narrow, or too broad. Used to test the rule of reflection.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL.Image import Image

from workers.lab.image_tools import derive_seed
from workers.metrics.generated import score_generated
from workers.metrics.natural import score_natural
from workers.protocols import Detection, LabSettings
from workers.record.label_checks import CheckImage, CheckResult, GeneratedResult, NaturalResult, Reference
from workers.toybox.dataset import LENGTH, ToyboxScenes
from workers.toybox.detector import load
from workers.toybox.fresh_neurons import draw_neurons
from workers.toybox.images import ToyboxGenerator
from workers.toybox.label_reading import read_label
from workers.toybox.world import splits
from workers.toybox.world.scenes import COLOURS, NOUNS, SIZES
from workers.vision_models.synthetic.neuron import ConceptMask, Neuron, build_table

EXEMPLARS, PROBE, PROMPTS, REPEATED, SEEDS = 15, 1_000, 10, 7, 3
AT_ONCE = 32
TRUE = "true"
Sight = Mapping[str, ConceptMask]
"""Concepts that were seen in an image."""
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Case:
    """A label of a neuron."""

    neuron: Neuron
    kind: str
    """What is wrong with the label: "true", "colour added", "size added", "dropped", "forgotten", "foreign"."""
    label: str


def draw_cases(seed: int) -> Iterator[Case]:
    """The labels of all neurons of a seed: each true one, and those that are wrong by one property."""
    for neuron in (each for some in build_table(**draw_neurons(seed)).values() for each in some):
        rng = random.Random(f"wrong labels of {neuron.name} {seed}")
        yield Case(neuron, TRUE, _phrase(neuron.kind, neuron.concepts))
        for kind, label in _misname(neuron, rng):
            yield Case(neuron, kind, label)


def _misname(neuron: Neuron, rng: random.Random) -> Iterator[tuple[str, str]]:
    first, *others = neuron.concepts
    colour, noun = _cut(first)
    if not colour:
        yield "colour added", _phrase(neuron.kind, (f"{rng.choice(COLOURS)} {noun}", *others))
    yield "size added", _phrase(neuron.kind, (f"{rng.choice(SIZES)} {first.removeprefix('something ')}", *others))
    if colour and noun:
        yield "colour dropped", noun
    if neuron.kind == "conditional":
        yield "partner dropped", first
    elif neuron.kind == "or":
        yield "forgotten", rng.choice(neuron.concepts)
    if neuron.kind != "conditional":
        foreign = rng.choice([each for each in NOUNS if each not in first and each not in others])
        yield "foreign added", _phrase("or", (*neuron.concepts, foreign))


def _cut(concept: str) -> tuple[str, str]:
    """Colour and toy; "" for either that it does not name."""
    *words, noun = concept.split()
    return ("", noun) if not words else (noun, "") if words == ["something"] else (words[0], noun)


def _phrase(kind: str, concepts: Sequence[str]) -> str:
    named = [f"{each} things" if each.split()[-1] in COLOURS else each for each in concepts]
    named = [each.removeprefix("something ") for each in named]
    return (" with a " if kind == "conditional" else " OR ").join(named)


class Eyes:
    """What the detector sees in the dataset and in the probe set; a look at each image serves all neurons."""

    def __init__(self, state: Path, seeds: Sequence[int], dataset: int = LENGTH, probe: int = PROBE) -> None:
        self._detector = load(LabSettings(state))
        neurons = [each for seed in seeds for some in build_table(**draw_neurons(seed)).values() for each in some]
        self._concepts = list(dict.fromkeys(concept for neuron in neurons for concept in neuron.concepts))
        shown = ToyboxScenes(state)
        held_out = shown.held_out("probe")
        self._scenes = [splits.scene("probe", number) for number in range(probe)]
        self._probe = self._look_at((held_out[number].image for number in range(probe)), self._concepts)
        self._dataset = self._look_at((shown[number].image for number in range(dataset)), self._concepts)

    def check(self, case: Case, draw: bool = False) -> CheckResult:
        """The label check, as `jobs.label_checks` makes it; images are drawn for it where `draw`."""
        brightest = np.sort(_respond(case.neuron, self._dataset))[-EXEMPLARS:]
        activations = _respond(case.neuron, self._probe)
        natural = self._check_natural(case, activations)
        return CheckResult(natural, self._check_generated(case, float(brightest.mean()), draw))

    def _check_natural(self, case: Case, activations: Floats) -> NaturalResult:
        truth = _phrase(case.neuron.kind, case.neuron.concepts)
        said, true = (self._judge(label) for label in (case.label, truth))
        scores = score_natural(activations, said, resamples=0)
        best = score_natural(activations, true, resamples=0)
        return NaturalResult(
            images=len(activations),
            base_rate=scores.base_rate,
            pearson=scores.r,
            auprc=scores.auprc,
            ceiling=Reference("the truth", best.r.value, best.auprc.value),
            activations=tuple(activations.tolist()),
            expected=tuple(said.tolist()),
        )

    def _judge(self, label: str) -> Floats:
        read = read_label(label)
        return np.array([read.is_present(scene) for scene in self._scenes], np.float64)

    def _check_generated(self, case: Case, mean: float, draw: bool) -> GeneratedResult:
        if not draw:
            return GeneratedResult(exemplar_mean=mean, problem="No images were drawn.")
        positive, neutral = (
            [self._draw(case, prompt, at) for at, prompt in enumerate(prompts)]
            for prompts in (
                read_label(case.label).positive_prompts(PROMPTS, 0),
                read_label(case.label).neutral_prompts(PROMPTS, 0),
            )
        )
        rows = [
            np.array([[each.activation for each in images] for images in side[:REPEATED]])
            for side in (positive, neutral)
        ]
        auc = score_generated(*rows).auc
        positives, neutrals = (tuple(each for images in side for each in images) for side in (positive, neutral))
        return GeneratedResult(auc=auc, exemplar_mean=mean, positive=positives, neutral=neutrals)

    def _draw(self, case: Case, prompt: str, place: int) -> list[CheckImage]:
        """All seeds of the first prompts, one of the others."""
        seeds = [derive_seed(0, "label check", at) for at in range(SEEDS if place < REPEATED else 1)]
        drawn = [each.image for each in ToyboxGenerator().generate([prompt] * len(seeds), seeds)]
        found = _respond(case.neuron, self._look_at(drawn, case.neuron.concepts))
        return [CheckImage("", "", float(a), 0.0, prompt, seed) for a, seed in zip(found, seeds, strict=True)]

    def _look_at(self, images: Iterable[Image], concepts: Sequence[str]) -> list[Sight]:
        waiting, found = iter(images), list[Sight]()
        while some := list(islice(waiting, AT_ONCE)):
            found += [
                {concept: _as_mask(here) for concept, here in places.items() if here}
                for places in self._detector.detect(some, concepts)
            ]
        return found


def _as_mask(places: Sequence[Detection]) -> ConceptMask:
    """Where it is does not matter here."""
    return ConceptMask(sum(each.confidence for each in places) / len(places), np.ones(1, bool))


def _respond(neuron: Neuron, sights: Sequence[Sight]) -> Floats:
    answers = [neuron.respond(each) for each in sights]
    return np.array([each.value if each else 0.0 for each in answers])
