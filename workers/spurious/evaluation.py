"""Called by jobs: `prepare` a dataset, a classifier and the units to judge; then `score` the verdicts.

Both report progress, which may stop them; finished work is kept in the state folder and not repeated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workers import registry
from workers.protocols import GroupedDataset, GroupSplit, LabSettings, Progress, no_progress
from workers.record.systems import SystemSpec
from workers.sparse.storage import SparseCard
from workers.spurious.features import FeatureReader, GroupedFeatures, ReadsFeatures, measure_features
from workers.spurious.latents import LatentReader, train_latents
from workers.spurious.regression import l1_units
from workers.spurious.repair import Repair, repair_head
from workers.spurious.table import FixedRows, Splits, Table2, compute_fixed_rows, compute_rows, trace_units
from workers.spurious.training import choose_recipe, train_classifier

UNITS = 50
"""Units that the agent judges."""
LAYER = "features"


@dataclass(frozen=True)
class SpuriousSpec:
    """The parameters of an evaluation."""

    dataset: str = "toybox-grounds:seed-{seed}"
    """Key of a grouped dataset without its split; "{seed}" stands for the seed."""
    start: str = ""
    """A file of weights that training starts from; "" for what the dataset suggests."""
    units: int = UNITS
    """Or latents."""
    latents: int = 0
    """Of a sparse auto-encoder of the classifier, which take the place of its units; 0 for these."""

    def key(self, seed: int, split: GroupSplit) -> str:
        """Return key of a split in the registry."""
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
    card: SparseCard | None = None
    """Of the auto-encoder whose latents take the place of units."""

    @property
    def studied(self) -> str:
        """Key of the model whose units, or latents, are judged."""
        return f"sae:{self.card.name}" if self.card else self.model

    def system(self, unit: int) -> SystemSpec:
        """Return what a run studies to judge a unit: its exemplars come from the unbalanced validation split."""
        return SystemSpec("latent" if self.card else "unit", self.studied, LAYER, unit, {"dataset": self.dataset})

    def question(self, unit: int | str) -> str:
        """Return the agent's question: classes and settings by name, nothing of how the settings were distributed."""
        # Fillers belong to no class, so the question does not name them
        classes, grounds = (", ".join(each) for each in (self.splits.classes, self.splits.grounds[: self._owned]))
        named = f"latent {unit} of a sparse auto-encoder" if self.card else f"unit {unit}"
        return (
            f"A classifier tells these classes apart: {classes}. It has seen them in these settings: {grounds}. Is "
            f"{named} of its features selective for a class, or does it rely on a spurious feature?"
        )

    @property
    def _owned(self) -> int:
        """Return the grounds that belong to a class; those after them are shared fillers."""
        return len(self.splits.classes)


def prepare(settings: LabSettings, spec: SpuriousSpec, seed: int, progress: Progress = no_progress) -> PreparedUnits:
    """Train the classifier, measure its features and choose the units; finished work is read from disk.

    Raises UnknownName, MissingPart for a dataset that is not there or wrongly laid out, RequestError for latents that
    cannot be learnt, Cancelled if `progress` does.
    """
    # 1. Train the classifier, or find it trained
    train = _load_split(settings, spec, seed, "train")
    recipe = choose_recipe(train, spec.start)
    name = train_classifier(settings, train, seed, progress, recipe)
    model: FeatureReader = registry.load(registry.VISION_MODELS, f"classifier:{name}")(settings)
    # 2. Units, or latents that take their place
    card, reader = _find_reader(settings, spec, seed, model, train, progress)
    splits = _measure_splits(settings, spec, seed, reader, train, progress)
    own = None
    # The head takes units: with latents, the test's units are needed as well
    if card:
        own = measure_features(settings.state, model, _load_split(settings, spec, seed, "test"), progress).values
    progress("choosing units", 0, 1)
    # 3. Choose the units that the agent is asked about
    chosen = l1_units(splits.validation.values, splits.validation.classes, min(spec.units, _count_units(splits)))
    # 4. Rows of the table that no verdict changes
    head = model.read_head()
    fixed = compute_fixed_rows(splits, head, chosen, seed, progress, own)
    units = tuple(int(unit) for unit in chosen.used)
    return PreparedUnits(spec.key(seed, "validation"), model.name, seed, units, splits, head, fixed, card)


def _find_reader(
    settings: LabSettings,
    spec: SpuriousSpec,
    seed: int,
    model: FeatureReader,
    train: GroupedDataset,
    progress: Progress,
) -> tuple[SparseCard | None, ReadsFeatures]:
    """Return what features are read by: the classifier, or latents of it with their card."""
    if not spec.latents:
        return None, model
    # Latents learn from the training split, like the classifier
    card = train_latents(settings, model, LAYER, spec.key(seed, "train"), train, spec.latents, seed, progress)
    return card, LatentReader(registry.load(registry.VISION_MODELS, f"sae:{card.name}")(settings), LAYER)


def _measure_splits(
    settings: LabSettings,
    spec: SpuriousSpec,
    seed: int,
    reader: ReadsFeatures,
    train: GroupedDataset,
    progress: Progress,
) -> Splits:
    found: dict[GroupSplit, GroupedFeatures] = {}
    for split in ("validation", "balanced", "test"):
        found[split] = measure_features(settings.state, reader, _load_split(settings, spec, seed, split), progress)
    # The table says "latents" where they take the place of units
    words = tuple(train.classes), tuple(train.grounds), "latents" if spec.latents else "units"
    return Splits(found["validation"], found["balanced"], found["test"], *words)


def score(prepared: PreparedUnits, verdicts: Mapping[int, bool], progress: Progress = no_progress) -> Table2:
    """Compute the table; `verdicts` says of each unit whether it is selective. Units without a verdict are
    unfinished.
    """
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
        splits.noun,
    )


def repair(prepared: PreparedUnits, verdicts: Mapping[int, bool], factor: float = 0.0) -> Repair:
    """Return the head with the units that were judged spurious multiplied by `factor`; others, unjudged ones too,
    stay."""
    # What was not judged is not repaired
    spurious = [unit for unit, selective in verdicts.items() if not selective]
    return repair_head(prepared.splits, prepared.head, spurious, factor)


def _load_split(settings: LabSettings, spec: SpuriousSpec, seed: int, split: GroupSplit) -> GroupedDataset:
    dataset: GroupedDataset = registry.load(registry.DATASETS, spec.key(seed, split))(settings)
    return dataset


def _count_units(splits: Splits) -> int:
    return int(splits.validation.values.shape[1])
