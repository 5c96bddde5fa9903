"""The kinds of evaluation: a row each, from which form, pages, API, commands and workers take what they need.

How a kind plans its items, and what figures it gives, is the `PROCEDURE` of `workers/jobs/evaluations/<key>.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from workers.record.statuses import Labelled

VARIANTS = 5
"""Toolsets that an ablation compares: all tools, exemplars, generated images, no edits, a flawed generator."""


class EvaluationKind(Labelled):
    LABELS = "labels", "Labels"
    SYNTHETIC = "synthetic", "Synthetic neurons"
    UNITS = "units", "Units of a network"
    ABLATION = "ablation", "Ablations"
    SPURIOUS = "spurious", "Spurious features"
    BIAS = "bias", "Biases"
    FIND = "find", "Functions"
    LATENTS = "latents", "Neurons against latents"
    CIRCUITS = "circuits", "Circuits"


@dataclass(frozen=True, kw_only=True)
class KindRow:
    """What is known of a kind before any work."""

    key: EvaluationKind
    says: str
    """What it measures, in a sentence."""
    noun: str
    """What `units` counts."""
    units: int
    """How many, unless somebody says otherwise."""
    asks: frozenset[str]
    """Fields of the form."""
    needs: Mapping[str, str] = field(default_factory=dict)
    """Those that may not be empty, and what is said where they are."""
    runs: int = 1
    """Runs that each of its units takes in one repeat."""
    checks: int = 0
    """Label checks of the same."""
    runs_each: int = 0
    """Runs that each of its units takes for each auto-encoder that is named."""
    checks_each: int = 0
    """Label checks of the same."""
    worst: tuple[str, ...] = ("position",)
    """What its items are ordered by, the worst first."""
    makes: tuple[str, ...] = ()
    """Sources of labels that it makes by itself, each of which is checked."""
    compares_labels: bool = False
    """Whether its items are labels of several sources for the same units, which can be set against each other."""
    people_label: bool = False
    """Whether people may be asked to label a quarter of its units."""
    truth_in_words: bool = False
    """Whether words say what is right, so that the scripted scientist can judge."""
    states_biases: bool = False
    """Whether its findings are statements, shown with their images."""
    repairs: bool = False
    """Whether the units that it judges can be made to count less."""
    families: tuple[str, ...] = ()
    """Layers of each of which `units` are taken, unless others are named; () where `units` counts all."""
    quick: int = 0
    """Units that `evaluate all` takes; 0 where it leaves the kind out."""
    compared: int = 0
    """Units that one of `evaluate compare --units` stands for; 0 where the kind says nothing of backbones."""
    headlines: Mapping[str, str] = field(default_factory=dict)
    """Figures that compare backbones, and their words."""
    run_seconds: float = 36.0
    """Of the scripted scientist: what to expect where nothing is recorded. Measured, as the two below, on two cores
    beside other work, so that less is likelier than more."""
    check_seconds: float = 70.0
    item_seconds: float = 0.0
    """Seconds of work that each of its units takes by itself, where it takes neither runs nor checks."""
    preparation: float = 0.0
    """Seconds of one repeat before its first item: drawing, training, choosing."""

    @property
    def label(self) -> str:
        return str(getattr(self.key, "label", self.key))

    def count_noun(self, units: int, adjectives: str = "") -> str:
        """So many of what `units` counts, as "3 fresh neurons"."""
        one = self.noun.removesuffix("es" if self.noun.endswith("sses") else "s")
        return f"{units:,} {adjectives}{one if units == 1 else self.noun}"

    def count_units(self, units: int, layers: int) -> int:
        """How many there are in all, where so many layers are named; 0 for all."""
        return units * (layers or len(self.families)) if self.families else units

    def count(
        self, units: int, repeats: int, sources: int, *, hints: bool = False, autoencoders: int = 0
    ) -> tuple[int, int]:
        """Runs and label checks that so many units take, with so many sources named; 0 for what it makes. With hints
        each is asked once more."""
        runs = self.runs + hints + autoencoders * self.runs_each
        checks = (sources or len(self.makes) or self.checks) if self.checks else 0
        return units * repeats * runs, units * repeats * (checks + autoencoders * self.checks_each)


_AGENT = frozenset({"backbone", "cost", "seconds", "reflections"})
_MADE = ("agent", "one-shot", "shuffled")

KINDS: Mapping[str, KindRow] = {
    str(kind.key): kind
    for kind in (
        KindRow(
            key=EvaluationKind.LABELS,
            says="Labels that are there already, from runs, people or files: each is tested on images new to its "
            "author.",
            noun="labels",
            units=100,
            asks=frozenset({"source", "model", "layer", "units", "dataset", "backbone", "cost", "seconds"}),
            needs={"source": "Choose whose labels are tested."},
            runs=0,
            checks=1,
            worst=("label_check__pearson", "position"),
            compares_labels=True,
        ),
        KindRow(
            key=EvaluationKind.UNITS,
            says="Units of a trained network: the agent describes each, and its labels are tested beside those of "
            "others.",
            noun="units",
            units=20,
            asks=_AGENT | {"model", "layer", "units", "source", "dataset", "toolset", "judge"},
            needs={"model": "Choose a model of the list."},
            checks=3,
            worst=("label_check__pearson", "position"),
            makes=_MADE,
            compares_labels=True,
            people_label=True,
            quick=20,
            compared=1,
            headlines={"pearson": "median r", "generated_auc": "median AUC of 7 + 7"},
        ),
        KindRow(
            key=EvaluationKind.SYNTHETIC,
            says="Neurons that were built to respond to known concepts: did the agent find the right ones, and no "
            "others?",
            noun="neurons",
            units=20,
            asks=_AGENT | {"batch", "units", "judge"},
            checks=3,
            worst=("scores__right", "label_check__pearson", "position"),
            makes=_MADE,
            compares_labels=True,
            people_label=True,
            truth_in_words=True,
            quick=20,
            compared=4,  # two of one concept, one of two, one of one beside another
            headlines={
                "mono.right": "one concept, share right",
                "or.right": "either of two, share right",
                "conditional.right": "one beside another, share right",
                "pearson": "median r",
            },
        ),
        KindRow(
            key=EvaluationKind.ABLATION,
            says="The same neurons with fewer tools, or a worse generator: what does each tool contribute?",
            noun="neurons",
            units=10,
            asks=_AGENT | {"batch", "units"},
            runs=VARIANTS,
            checks=VARIANTS,
            worst=("scores__right", "label_check__pearson", "position"),
        ),
        KindRow(
            key=EvaluationKind.SPURIOUS,
            says="A classifier whose classes go with grounds: which of its units rely on them, and does it help to "
            "know?",
            noun="units",
            units=50,
            asks=_AGENT | {"images", "latents", "units", "repeats"},
            repairs=True,
            quick=50,
            compared=1,
            headlines={"headline": "share of the gap closed", "accuracy.agent": "accuracy with its units"},
            run_seconds=18.0,
            preparation=780.0,
        ),
        KindRow(
            key=EvaluationKind.BIAS,
            says="The classes of a classifier: in which contexts does it see less than is there? Each finding is "
            "tested.",
            noun="classes",
            units=6,
            asks=_AGENT | {"model", "units", "repeats"},
            worst=("-scores__false", "position"),
            states_biases=True,
            quick=1,
            compared=1,
            headlines={"found": "planted biases found", "false": "false statements a run"},
            run_seconds=120.0,
        ),
        KindRow(
            key=EvaluationKind.FIND,
            says="Functions of numbers, texts and words whose code is known (FIND): does the agent find out what they "
            "compute, and do its experiments tell it more than a few inputs would?",
            noun="functions",
            units=25,
            asks=(_AGENT - {"reflections"}) | {"model", "layer", "units", "hints", "judge"},
            families=("numeric", "strings", "concepts", "relations"),
            worst=("scores__success", "position"),
            run_seconds=1.0,
        ),
        KindRow(
            key=EvaluationKind.LATENTS,
            says="Does a sparse auto-encoder help? Units of a layer and latents of its auto-encoders are labelled and "
            "tested alike, and each unit once more by the latent that adds most to it.",
            noun="units",
            units=20,
            asks=_AGENT | {"autoencoders", "units", "dataset", "judge"},
            needs={"autoencoders": "Choose one or more auto-encoders of a layer."},
            checks=2,
            runs_each=2,
            checks_each=4,
            worst=("label_check__pearson", "position"),
            makes=("agent", "one-shot"),
            compares_labels=True,
        ),
        KindRow(
            key=EvaluationKind.CIRCUITS,
            says="The classes of a classifier: how far do a few latents or units of a layer explain each alone, beside "
            "as many at random and plain neurons? Then planted circuits: are they found?",
            noun="classes",
            units=6,
            asks=frozenset({"autoencoders", "model", "layer", "units", "dataset", "repeats"}),
            runs=0,
            worst=("scores__faithfulness", "position"),
            item_seconds=30.0,
        ),
    )
}


def find_kind(key: str) -> KindRow:
    """The row; of a kind that a later version has made, one that asks for nothing."""
    return KINDS.get(key) or KindRow(
        key=cast("EvaluationKind", key), says="", noun="items", units=1, asks=frozenset(), runs=0
    )


BATCHES: Mapping[str, str] = {"fresh": "fresh neurons, drawn by the seed", "paper": "the 85 neurons of the paper"}
PAPER = "synthetic:grounding-dino:paper"
"""The model whose units are the neurons of the paper."""
MIN_LATENTS, MAX_LATENTS = 8, 4_096
"""Of an auto-encoder in a spurious evaluation; 0 for none."""


def explain_latents(count: int) -> str:
    """What is wrong with a number of latents in the place of units; "" if nothing is."""
    if count == 0 or MIN_LATENTS <= count <= MAX_LATENTS:
        return ""
    return (
        f"{count:,} latents cannot take the place of units. Ask for {MIN_LATENTS} to {MAX_LATENTS:,}, or 0 for the "
        "units themselves."
    )


IMAGES: Mapping[str, str] = {"toybox": "toybox: four toys, grounds that go with them"}
"""Where the images of a spurious evaluation come from; else the folder of a dataset."""
