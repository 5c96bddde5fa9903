"""Fresh synthetic neurons of toybox-eyes and the scripted scientist, from question to label; the detector's own truth.

Everything is real: dataset, exemplar index, renderer, networks, sandbox, loop. A label is right if it names exactly the
neuron's concepts, joined as they are. MAIA_BENCH_SEED draws the neurons; the scientist was tuned on seeds 0 to 4.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from tqdm import tqdm

from tests.benches.bench_scripted import STATE
from tests.support.toybox_run import play
from workers.lab.laboratory import Laboratory
from workers.protocols import LabSettings, LayerInfo
from workers.record.events import Ended
from workers.record.systems import SystemSpec
from workers.sandbox.host import ZygoteSandbox
from workers.toybox.concept_match import match
from workers.toybox.dataset import ToyboxScenes
from workers.toybox.world.scenes import NOUNS, Scene

MODEL = "synthetic:toybox-eyes"
IMAGES = 300
GOALS = {"mono": 0.95, "or": 0.85, "conditional": 0.8}


@pytest.mark.bench
@pytest.mark.timeout(0)
def test_labels_of_fresh_synthetic_neurons() -> None:
    seed = int(os.environ.get("MAIA_BENCH_SEED", "100"))
    laboratory = Laboratory(LabSettings(STATE, words_per_second=0))
    layers = laboratory.layers(f"{MODEL}:seed-{seed}")
    neurons = [(layer, unit) for layer in layers for unit in range(layer.units)]
    with ZygoteSandbox() as sandbox:
        right, seconds = study(laboratory, sandbox, seed, neurons)
    print(f"\nScripted scientist on fresh neurons of seed {seed}, {statistics.median(seconds):.1f} s a run (median)")
    print(f"{'kind':14}{'right':>8}{'of':>5}{'share':>8}{'goal':>8}")
    for kind, found in right.items():
        print(f"{kind:14}{sum(found):8}{len(found):5}{np.mean(found):8.2f}{GOALS[kind]:8.2f}")


def study(
    laboratory: Laboratory, sandbox: ZygoteSandbox, seed: int, neurons: Sequence[tuple[LayerInfo, int]]
) -> tuple[dict[str, list[bool]], list[float]]:
    """Whether the label of each neuron is right, by kind, and how long each run took; wrong ones are printed."""
    right: dict[str, list[bool]] = {}
    seconds: list[float] = []
    for layer, unit in tqdm(neurons, unit="neuron"):
        spec = SystemSpec("synthetic", f"{MODEL}:seed-{seed}", layer.name, unit)
        laboratory.subject(spec).exemplars()
        began = time.monotonic()
        end = play(laboratory, sandbox, spec, seed=seed)[-1].payload
        seconds.append(time.monotonic() - began)
        assert isinstance(end, Ended)
        label = end.conclusion.labels[0] if end.conclusion.labels else ""
        right.setdefault(layer.name, []).append(match(label, layer.names[unit]).right)
        if not right[layer.name][-1]:
            tqdm.write(f"{layer.names[unit]}: {label or 'none'}")
    return right, seconds


@pytest.mark.bench
@pytest.mark.timeout(0)
def test_truth_of_the_mono_neurons() -> None:
    assert min(measure_truth(STATE, IMAGES)) > 0.85


def measure_truth(state: Path, count: int) -> list[float]:
    """AUC of each mono neuron's activation against what so many scenes hold, printed; of toys that some scene holds."""
    dataset = ToyboxScenes(state, count)
    scenes = [Scene.from_json(dataset[at].scene) for at in range(count)]
    images = [dataset[at].image for at in range(count)]
    maps = Laboratory(LabSettings(state)).model(MODEL).maps(images, ["mono"])["mono"]
    values = maps.amax((2, 3)).numpy()  # (images, toys)
    truth = np.array([[any(thing.noun == noun for thing in scene.things) for noun in NOUNS] for scene in scenes])
    there = [toy for toy in range(len(NOUNS)) if truth[:, toy].any()]
    aucs = [auc(values[truth[:, toy], toy], values[~truth[:, toy], toy]) for toy in there]
    precision, recall = (truth & (values > 0)).sum() / np.array([(values > 0).sum(), truth.sum()])
    print(f"\nMono neurons on {count} scenes: mean AUC {np.mean(aucs):.3f}, lowest {min(aucs):.3f}", end=" ")
    print(f"({NOUNS[there[int(np.argmin(aucs))]]}), precision {precision:.3f}, recall {recall:.3f}")
    return aucs


def auc(yes: np.ndarray, no: np.ndarray) -> float:
    """How often a scene with the toy is above one without it."""
    return float((yes[:, None] > no).mean() + (yes[:, None] == no).mean() / 2)
