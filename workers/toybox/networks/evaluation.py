"""Measure the toybox networks on held-out scenes. Called by `train`, which stores the figures."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from workers.metrics.ranking import area_under_curve, average_precision
from workers.toybox.networks.examples import Examples
from workers.toybox.networks.nets import EyesOutput, ToyboxEyes, ToyboxNet, normalise
from workers.toybox.networks.training_tasks import pixel_words, scene_words

Metrics = dict[str, float | int]
Floats = NDArray[np.floating]
Bools = NDArray[np.bool_]
Ints = NDArray[np.integer]


def evaluate_net(network: ToyboxNet, mixed: Examples, single: Examples) -> Metrics:
    """Return the accuracy on held-out scenes, and figures of layer4's units."""
    nouns = len(network.vocabulary.nouns)
    units, scores = _net_answers(network, mixed)
    _, one = _net_answers(network, single)
    answers = single.presence[:, :nouns].argmax(axis=1)
    colours = slice(nouns, nouns + len(network.vocabulary.colours))
    # Median over live units of the AUC of a unit's best class: chosen on one half, measured on the other
    half = len(units) // 2
    best = []
    for unit in np.flatnonzero(units.max(axis=0) > 0):
        # The best class is chosen on one half; on the same images its AUC would be too high
        choices = [_class_auc(units[:half, unit], mixed.presence[:half, k]) for k in range(mixed.presence.shape[1])]
        best.append(_class_auc(units[half:, unit], mixed.presence[half:, int(np.nanargmax(choices))]))
    classes = {"nouns": slice(nouns), "colours": colours, "all": slice(None)}
    return {
        "top1_accuracy_one_toy": top1_accuracy(one[:, :nouns], answers),
        **{
            f"mean_average_precision_{name}": mean_average_precision(scores[:, some], mixed.presence[:, some])
            for name, some in classes.items()
        },
        "layer4_units": units.shape[1],
        "layer4_dead_units": int((units.max(axis=0) <= 0).sum()),
        "layer4_median_best_class_auc": float(np.median(best)),
    }


def _class_auc(scores: Floats, truth: Bools) -> float:
    return area_under_curve(scores[truth], scores[~truth])


@torch.inference_mode()
def _net_answers(network: ToyboxNet, shown: Examples) -> tuple[Floats, Floats]:
    """Return the maxima of layer4's units (examples, units) and the logits (examples, classes)."""
    units, scores = [], []
    for batch in _batches(shown):
        found = network.maps(batch)
        units.append(found["layer4"].amax(dim=(2, 3)))
        scores.append(found["logits"].flatten(1))
    return torch.cat(units).numpy(), torch.cat(scores).numpy()


@torch.inference_mode()
def evaluate_eyes(network: ToyboxEyes, mixed: Examples, _single: Examples) -> Metrics:
    """Return intersection over union and accuracies on held-out scenes, at the eyes' own resolution."""
    words = network.vocabulary
    lists = {"colour": words.colours, "size": words.sizes, "ground": words.grounds, "light": words.lights}
    sides = {"noun": 1 + len(words.nouns)} | {name: len(each) for name, each in lists.items()}
    counts = {name: np.zeros((side, side), np.int64) for name, side in sides.items()}
    for numbers, batch in zip(torch.arange(len(mixed)).split(64), _batches(mixed), strict=True):
        seen: EyesOutput = network(batch)
        truth = [*pixel_words(mixed, numbers, False), *scene_words(mixed, numbers)]
        for (name, matrix), answer in zip(counts.items(), truth, strict=True):
            # -1: no toy at this pixel, so there is no answer
            known = answer >= 0
            guess = getattr(seen, name).argmax(dim=1)
            matrix += confusion(guess[known].numpy(), answer[known].numpy(), len(matrix))
    # Without class 0, the background, which is easy and would raise the mean
    overlap = intersection_over_union(counts["noun"])[1:]
    figures: Metrics = {"mean_iou_nouns": float(np.nanmean(overlap)), "worst_iou_noun": float(np.nanmin(overlap))}
    return figures | {
        f"{name}_accuracy": float(np.trace(matrix) / matrix.sum()) for name, matrix in counts.items() if name != "noun"
    }


def _batches(shown: Examples) -> list[Tensor]:
    return [normalise(pixels) for pixels in torch.from_numpy(np.asarray(shown.images)).split(64)]


def mean_average_precision(scores: Floats, truth: Bools) -> float:
    """Return the mean over those columns (classes) of (n, classes) that have a positive."""
    # Classes without a positive have NaN
    return float(np.nanmean([average_precision(scores[:, k], truth[:, k]) for k in range(scores.shape[1])]))


def top1_accuracy(scores: Floats, answers: Ints) -> float:
    """Return the share of rows of (n, classes) whose highest score is at the answer (n,)."""
    return float((scores.argmax(axis=1) == answers).mean())


def confusion(predicted: Ints, truth: Ints, classes: int) -> NDArray[np.int64]:
    """Return counts (classes, classes): rows are the truth, columns the predictions."""
    # One number for each (truth, prediction), so that one count gives the whole table
    pairs = truth.ravel().astype(np.int64) * classes + predicted.ravel()
    return np.bincount(pairs, minlength=classes * classes).reshape(classes, classes)


def intersection_over_union(counts: NDArray[np.int64]) -> Floats:
    """Return the figure for each class of a confusion matrix; NaN for a class that is neither present nor predicted."""
    both = np.diag(counts).astype(np.float64)
    either = counts.sum(axis=0) + counts.sum(axis=1) - both
    return np.divide(both, either, out=np.full_like(both, np.nan), where=either > 0)
