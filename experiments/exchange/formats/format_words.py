"""Describe each format on the page of exports."""

from __future__ import annotations

from collections.abc import Mapping

from experiments.models import Format

_FOLDER = "A folder in a zip: unpack it, and datasets.load_dataset opens it without a network."
FORMAT_WORDS: Mapping[str, str] = {
    Format.EVAL: "A log that inspect view opens, with messages, images, tool calls, scores and tokens. A log of runs "
    "can be imported again.",
    Format.DATASET: f"{_FOLDER} It holds the images, the runs they belong to and their labels; its labels can be "
    "imported, and nothing else of it.",
    Format.DATASET_RUNS: f"{_FOLDER} It also holds the full runs, with their images once more, so that an import "
    "restores the runs.",
    Format.COSY: "The columns of MILAN and CLIP-Dissect, which CoSy reads. It takes the first label of a unit and "
    "does not look at the layer: choose one layer and one source.",
    Format.DELPHI: "A text file for each label, explanations/LAYER_latentUNIT.txt, by model and source.",
    Format.NEURONPEDIA: "A line for each label and unit, with the fields of Neuronpedia's exports of explanations.",
}
