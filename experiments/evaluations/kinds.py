"""The kinds of evaluation: what each measures, in a sentence, what it has to be told, and how many runs it takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from experiments.models import EvaluationKind

VARIANTS = 5
"""Toolsets that an ablation compares: all tools, exemplars, generated images, no edits, a flawed generator."""


@dataclass(frozen=True)
class Kind:
    """`asks` names the fields of the form; `runs` and `checks` are how many each of its units takes in one repeat."""

    key: EvaluationKind
    says: str
    noun: str
    """What `units` counts."""
    units: int
    """How many, unless somebody says otherwise."""
    asks: frozenset[str]
    runs: int
    checks: int
    worst: tuple[str, ...]
    """What its items are ordered by, the worst first."""
    makes: tuple[str, ...] = ()
    """Sources of labels that it makes by itself, each of which is checked."""
    run_seconds: float = 36.0
    """Of the scripted scientist: what to expect where nothing is recorded. Measured, as the two below, on two cores
    beside other work, so that less is likelier than more."""
    check_seconds: float = 70.0
    preparation: float = 0.0
    """Seconds of one repeat before its first item: drawing, training, choosing."""

    @property
    def label(self) -> str:
        return str(self.key.label)

    def count_noun(self, units: int, adjectives: str = "") -> str:
        """So many of what `units` counts, as "3 fresh neurons"."""
        one = self.noun.removesuffix("es" if self.noun.endswith("sses") else "s")
        return f"{units:,} {adjectives}{one if units == 1 else self.noun}"

    def count(self, units: int, repeats: int, sources: int) -> tuple[int, int]:
        """Runs and label checks that so many units take, with so many sources named; 0 for what it makes."""
        per_unit = sources or len(self.makes) or self.checks
        return units * repeats * self.runs, units * repeats * per_unit


_AGENT = frozenset({"backbone", "cost", "seconds", "reflections"})
_OF_CHECK = ("label_check__pearson", "position")
_MADE = ("agent", "one-shot", "shuffled")

KINDS: Mapping[str, Kind] = {
    kind.key.value: kind
    for kind in (
        Kind(
            EvaluationKind.LABELS,
            "Labels that are there already, from runs, people or files: each is tested on images new to its author.",
            "labels",
            100,
            frozenset({"source", "model", "layer", "units", "dataset", "backbone", "cost", "seconds"}),
            0,
            1,
            _OF_CHECK,
        ),
        Kind(
            EvaluationKind.UNITS,
            "Units of a trained network: the agent describes each, and its labels are tested beside those of others.",
            "units",
            20,
            _AGENT | {"model", "layer", "units", "source", "dataset", "toolset", "judge"},
            1,
            3,
            _OF_CHECK,
            _MADE,
        ),
        Kind(
            EvaluationKind.SYNTHETIC,
            "Neurons that were built to respond to known concepts: did the agent find the right ones, and no others?",
            "neurons",
            20,
            _AGENT | {"batch", "units", "judge"},
            1,
            3,
            ("scores__right", "label_check__pearson", "position"),
            _MADE,
        ),
        Kind(
            EvaluationKind.ABLATION,
            "The same neurons with fewer tools, or a worse generator: what does each tool contribute?",
            "neurons",
            10,
            _AGENT | {"batch", "units"},
            VARIANTS,
            VARIANTS,
            ("scores__right", "label_check__pearson", "position"),
        ),
        Kind(
            EvaluationKind.SPURIOUS,
            "A classifier whose classes go with grounds: which of its units rely on them, and does it help to know?",
            "units",
            50,
            _AGENT | {"images", "units", "repeats"},
            1,
            0,
            ("position",),
            run_seconds=18.0,
            preparation=780.0,
        ),
        Kind(
            EvaluationKind.BIAS,
            "The classes of a classifier: in which contexts does it see less than is there? Each finding is tested.",
            "classes",
            6,
            _AGENT | {"model", "units", "repeats"},
            1,
            0,
            ("-scores__false", "position"),
            run_seconds=120.0,
        ),
    )
}
BATCHES: Mapping[str, str] = {"fresh": "fresh neurons, drawn by the seed", "paper": "the 85 neurons of the paper"}
PAPER = "synthetic:grounding-dino:paper"
"""The model whose units are the neurons of the paper."""
IMAGES: Mapping[str, str] = {"toybox": "toybox: four toys, grounds that go with them"}
"""Where the images of a spurious evaluation come from; else the folder of a dataset."""
