"""The kinds of evaluation: one row each, which forms, pages, API, commands and workers read.

The `PROCEDURE` in `workers/jobs/evaluations/<key>.py` plans the items of a kind and computes its figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from workers.record.statuses import Labelled

VARIANTS = 5
"""Toolsets that an ablation compares: all tools, only exemplars, only generated images, no edits, a flawed
generator."""


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
    """What is fixed about a kind of evaluation."""

    key: EvaluationKind
    says: str
    """What it measures, in one sentence."""
    noun: str
    """What `units` counts."""
    units: int
    """Default number of units."""
    asks: frozenset[str]
    """Fields of its form."""
    needs: Mapping[str, str] = field(default_factory=dict)
    """Required fields, each with its error message."""
    runs: int = 1
    """Runs per unit and repeat."""
    checks: int = 0
    """Label checks per unit and repeat."""
    runs_each: int = 0
    """Runs per unit for each named auto-encoder."""
    checks_each: int = 0
    """Label checks per unit for each named auto-encoder."""
    worst: tuple[str, ...] = ("position",)
    """Order of its items, worst first."""
    makes: tuple[str, ...] = ()
    """Sources of labels that it creates by itself. Each is checked."""
    compares_labels: bool = False
    """True if its items are labels of several sources for the same units, so that they can be compared."""
    people_label: bool = False
    """True if people can be asked to label a quarter of its units."""
    truth_in_words: bool = False
    """True if the correct answer is known in words, so that the scripted scientist can judge."""
    states_biases: bool = False
    """True if its findings are statements, which are shown with their images."""
    repairs: bool = False
    """True if the units that it flags can be down-weighted to repair the classifier."""
    families: tuple[str, ...] = ()
    """Layers from each of which `units` are taken by default; () if `units` is the total."""
    quick: int = 0
    """Units in `evaluate all`; 0 excludes the kind."""
    compared: int = 0
    """Units per unit of `evaluate compare --units`; 0 if the kind does not depend on the backbone."""
    headlines: Mapping[str, str] = field(default_factory=dict)
    """Figures that compare backbones, with their descriptions."""
    run_seconds: float = 36.0
    """Seconds of a run of the scripted scientist, used until runs are recorded.

    This and the next two were measured on two busy cores, so real times are likely shorter.
    """
    check_seconds: float = 70.0
    item_seconds: float = 0.0
    """Seconds of work per unit, for a kind whose units take neither runs nor checks."""
    preparation: float = 0.0
    """Seconds of one repeat before its first item, for drawing, training and choosing."""

    @property
    def label(self) -> str:
        return str(getattr(self.key, "label", self.key))

    def count_noun(self, units: int, adjectives: str = "") -> str:
        """Return a count with the noun of its units, such as "3 fresh neurons"."""
        # "classes" becomes "class", "neurons" becomes "neuron"
        one = self.noun.removesuffix("es" if self.noun.endswith("sses") else "s")
        return f"{units:,} {adjectives}{one if units == 1 else self.noun}"

    def count_units(self, units: int, layers: int) -> int:
        """Return the total number of units if this many layers are named; 0 layers mean all."""
        return units * (layers or len(self.families)) if self.families else units

    def count(
        self, units: int, repeats: int, sources: int, *, hints: bool = False, autoencoders: int = 0
    ) -> tuple[int, int]:
        """Return the number of runs and label checks.

        `sources` is the number of named sources; 0 means those that the kind makes. With hints, each unit takes one
        more run.
        """
        runs = self.runs + hints + autoencoders * self.runs_each
        # Without checks of its own, a kind takes none for its sources either
        checks = (sources or len(self.makes) or self.checks) if self.checks else 0
        return units * repeats * runs, units * repeats * (checks + autoencoders * self.checks_each)


# Fields of every kind whose units are studied by an agent
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
    """Return the row of a kind. For a kind from a later version, return an empty row."""
    # A stored evaluation of a later version must still be listed
    return KINDS.get(key) or KindRow(
        key=cast("EvaluationKind", key), says="", noun="items", units=1, asks=frozenset(), runs=0
    )


BATCHES: Mapping[str, str] = {"fresh": "fresh neurons, drawn by the seed", "paper": "the 85 neurons of the paper"}
PAPER = "synthetic:grounding-dino:paper"
"""The model whose units are the neurons of the paper."""
MIN_LATENTS, MAX_LATENTS = 8, 4_096
"""Range of latents of the auto-encoder in a spurious evaluation; 0 means none."""


def explain_latents(count: int) -> str:
    """Return why this number of latents cannot replace the units; "" if it can."""
    if count == 0 or MIN_LATENTS <= count <= MAX_LATENTS:
        return ""
    return (
        f"{count:,} latents cannot take the place of units. Ask for {MIN_LATENTS} to {MAX_LATENTS:,}, or 0 for the "
        "units themselves."
    )


IMAGES: Mapping[str, str] = {"toybox": "toybox: four toys, grounds that go with them"}
"""Sources of images for a spurious evaluation. Other values are the folder of a dataset."""
