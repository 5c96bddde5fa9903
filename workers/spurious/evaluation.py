"""What jobs call: `prepare` a dataset, a classifier and the units to judge; then `score` the verdicts.

Both report progress and may be stopped by it; whatever was finished is kept in the state folder and not done again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workers import registry
from workers.protocols import GroupedDataset, GroupSplit, LabSettings, Progress, no_progress
from workers.record.systems import SystemSpec
from workers.spurious.features import FeatureReader, GroupedFeatures, measure_features
from workers.spurious.regression import l1_units
from workers.spurious.repair import Repair, repair_head
from workers.spurious.table import FixedRows, Splits, Table2, compute_fixed_rows, compute_rows, trace_units
from workers.spurious.training import choose_recipe, train_classifier

UNITS = 50
"""Units that the agent judges."""
LAYER = "features"


@dataclass(frozen=True)
class SpuriousSpec:
    """What is evaluated."""

    dataset: str = "toybox-grounds:seed-{seed}"
    """Key of a grouped dataset without its split; "{seed}" stands for the seed."""
    start: str = ""
    """A file of weights that training starts from; "" for what the dataset suggests."""
    units: int = UNITS

    def key(self, seed: int, split: GroupSplit) -> str:
        """Key of a split in the registry."""
        return f"{self.dataset.replace('{seed}', str(seed))}:{split}"


@dataclass(frozen=True)
class PreparedUnits:
    """Everything up to the verdicts, of one seed."""

    dataset: str
    """Key of the validation split, from which exemplars come."""
    model: str
    """Key of the classifier."""
    seed: int
    units: tuple[int, ...]
    """To be judged; the greatest weight of the l1 fit first."""
    splits: Splits
    head: tuple[NDArray[np.float32], NDArray[np.float32]]
    fixed: FixedRows

    def system(self, unit: int) -> SystemSpec:
        """What a run studies to judge a unit: its exemplars come from the unbalanced validation split."""
        return SystemSpec("unit", self.model, LAYER, unit, {"dataset": self.dataset})

    def question(self, unit: int | str) -> str:
        """What the agent is asked: classes and settings by name, nothing of how the settings were dealt."""
        classes, grounds = (", ".join(each) for each in (self.splits.classes, self.splits.grounds[: self._owned]))
        return (
            f"A classifier tells these classes apart: {classes}. It has seen them in these settings: {grounds}. Is "
            f"unit {unit} of its features selective for a class, or does it rely on a spurious feature?"
        )

    @property
    def _owned(self) -> int:
        """Grounds that belong to a class; those after them are shared fillers."""
        return len(self.splits.classes)


def prepare(settings: LabSettings, spec: SpuriousSpec, seed: int, progress: Progress = no_progress) -> PreparedUnits:
    """Train the classifier, measure its features and choose the units; what was done before is read from disk.

    Raises UnknownName, MissingPart for a dataset that is not there or wrongly laid out, Cancelled if `progress` does.
    """
    train = _load_split(settings, spec, seed, "train")
    recipe = choose_recipe(train, spec.start)
    name = train_classifier(settings, train, seed, progress, recipe)
    model: FeatureReader = registry.load(registry.VISION_MODELS, f"classifier:{name}")(settings)
    found: dict[GroupSplit, GroupedFeatures] = {}
    for split in ("validation", "balanced", "test"):
        found[split] = measure_features(settings.state, model, _load_split(settings, spec, seed, split), progress)
    splits = Splits(found["validation"], found["balanced"], found["test"], tuple(train.classes), tuple(train.grounds))
    progress("choosing units", 0, 1)
    chosen = l1_units(splits.validation.values, splits.validation.classes, min(spec.units, _count_units(splits)))
    head = model.read_head()
    fixed = compute_fixed_rows(splits, head, chosen, seed, progress)
    units = tuple(int(unit) for unit in chosen.used)
    return PreparedUnits(spec.key(seed, "validation"), model.name, seed, units, splits, head, fixed)


def score(prepared: PreparedUnits, verdicts: Mapping[int, bool], progress: Progress = no_progress) -> Table2:
    """The table; `verdicts` tells of each unit whether it is selective. Units without a verdict are unfinished."""
    selective = [unit for unit in prepared.units if verdicts.get(unit)]
    splits = prepared.splits
    rows = compute_rows(splits, prepared.units, selective, prepared.seed, progress)
    return Table2(
        prepared.dataset.rpartition(":")[0],
        prepared.model,
        prepared.seed,
        splits.classes,
        splits.grounds,
        prepared.units,
        tuple(selective),
        tuple(unit for unit in prepared.units if unit not in verdicts),
        (*prepared.fixed.rows, *rows),
        prepared.fixed.l1_curve,
        trace_units(splits, selective),
    )


def repair(prepared: PreparedUnits, verdicts: Mapping[int, bool], factor: float = 0.0) -> Repair:
    """The head with the units that were judged spurious multiplied by `factor`; others, unjudged ones too, stay."""
    spurious = [unit for unit, selective in verdicts.items() if not selective]
    return repair_head(prepared.splits, prepared.head, spurious, factor)


def _load_split(settings: LabSettings, spec: SpuriousSpec, seed: int, split: GroupSplit) -> GroupedDataset:
    dataset: GroupedDataset = registry.load(registry.DATASETS, spec.key(seed, split))(settings)
    return dataset


def _count_units(splits: Splits) -> int:
    return int(splits.validation.values.shape[1])
