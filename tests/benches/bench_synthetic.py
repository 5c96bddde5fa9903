"""Synthetic neurons of toybox-eyes and the scripted scientist, from question to label; and the detector's own truth.

Everything is real: dataset, exemplar index, renderer, networks, sandbox, loop. A conditional neuron asks for two toys
together, which the scientist has no words for: it may leave it without a label, but not with a wrong one.
"""

from __future__ import annotations

import time

import numpy as np
import pytest

from tests.benches.bench_scripted import STATE, responses
from tests.support.label_auc import label_auc
from tests.support.toybox_run import play
from workers.lab.laboratory import Laboratory
from workers.protocols import LabSettings
from workers.record.events import Ended
from workers.record.systems import SystemSpec
from workers.sandbox.host import ZygoteSandbox
from workers.toybox.dataset import ToyboxScenes
from workers.toybox.world.scenes import NOUNS, Scene

MODEL = "synthetic:toybox-eyes"
IMAGES = 300
UNITS = (("mono", 0), ("mono", 7), ("or", 0), ("or", 4), ("conditional", 10))


@pytest.mark.bench
@pytest.mark.timeout(0)
def test_labels_of_synthetic_neurons() -> None:
    laboratory = Laboratory(LabSettings(STATE, words_per_second=0, dataset_images=IMAGES))
    names = {layer.name: layer.names for layer in laboratory.layers(MODEL)}
    print(f"\nScripted scientist on neurons of {MODEL}, {IMAGES} images")
    print(f"{'neuron':20}{'exemplars':>10}{'best':>6}{'seconds':>9}{'AUC':>7}  label")
    with ZygoteSandbox() as sandbox:
        for layer, unit in UNITS:
            spec = SystemSpec("synthetic", MODEL, layer, unit)
            subject = laboratory.subject(spec)
            exemplars = subject.exemplars()
            began = time.monotonic()
            events = play(laboratory, sandbox, spec, seed=0)
            took, end = time.monotonic() - began, events[-1].payload
            assert isinstance(end, Ended)
            label = end.conclusion.labels[0] if end.conclusion.labels else ""
            auc = f"{label_auc(label, responses(subject), 0):.3f}" if label else "-"
            best = exemplars[0].activation
            print(f"{names[layer][unit]:20}{len(exemplars):10}{best:6.2f}{took:9.1f}{auc:>7}  {label or 'none'}")
            assert events[-1].kind == "concluded"
            assert label or layer == "conditional"


@pytest.mark.bench
@pytest.mark.timeout(0)
def test_truth_of_the_mono_neurons() -> None:
    """AUC of each neuron's activation against what the scenes hold."""
    dataset = ToyboxScenes(STATE, IMAGES)
    scenes = [Scene.from_json(dataset[at].scene) for at in range(IMAGES)]
    images = [dataset[at].image for at in range(IMAGES)]
    maps = Laboratory(LabSettings(STATE)).model(MODEL).maps(images, ["mono"])["mono"]
    values = maps.amax((2, 3)).numpy()  # (images, toys)
    truth = np.array([[any(thing.noun == noun for thing in scene.things) for noun in NOUNS] for scene in scenes])
    aucs = [auc(values[truth[:, toy], toy], values[~truth[:, toy], toy]) for toy in range(len(NOUNS))]
    precision, recall = (truth & (values > 0)).sum() / np.array([(values > 0).sum(), truth.sum()])
    print(f"\nMono neurons on {IMAGES} scenes: mean AUC {np.mean(aucs):.3f}, lowest {min(aucs):.3f}", end=" ")
    print(f"({NOUNS[int(np.argmin(aucs))]}), precision {precision:.3f}, recall {recall:.3f}")
    assert min(aucs) > 0.85


def auc(yes: np.ndarray, no: np.ndarray) -> float:
    """How often a scene with the toy is above one without it."""
    return float((yes[:, None] > no).mean() + (yes[:, None] == no).mean() / 2)
