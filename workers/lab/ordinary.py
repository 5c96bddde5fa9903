"""Choose ordinary images of a dataset for the first round of a run: random ones near three quantiles of activation.

They come from the same split as exemplars. Called by `laboratory`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray
from PIL.Image import Image

from workers.lab.exemplars import ExemplarIndex
from workers.lab.imaging import image_key
from workers.lab.memory import keep_map, store_images
from workers.lab.running_stats import sample_step
from workers.lab.splits import is_split, split_of
from workers.protocols import Dataset, ImageMemory, Progress, Provenance, Subject, no_progress
from workers.record.experiments import Observation
from workers.record.origins import Origin

QUANTILES = (0.25, 0.5, 0.9)
IMAGES_EACH = 3
BAND = 0.02
"""Maximum distance of an image's rank from its quantile, as a share of the sample."""
MIN_SAMPLE = 100
"""Minimum number of images in a sample for meaningful quantiles."""


def choose_positions(
    activations: NDArray[np.float32], step: int, may_show: Callable[[int], bool], seed: int
) -> list[tuple[float, int]]:
    """Choose images at random: return the quantile that each is near, and its position in the dataset.

    `activations` (rows,) are of the images at positions 0, `step`, 2 * `step` …; values that are not finite are
    unknown.
    """
    rng = np.random.default_rng(seed)
    known = rng.permutation(np.flatnonzero(np.isfinite(activations)))  # break ties at random
    if len(known) < MIN_SAMPLE:
        return []
    ranked = known[np.argsort(activations[known], kind="stable")] * step
    chosen: list[tuple[float, int]] = []
    for quantile in QUANTILES:
        low, high = (round((quantile + side) * (len(ranked) - 1)) for side in (-BAND, BAND))
        # Random within the band, so that two runs with other seeds see other images.
        near = (int(each) for each in rng.permutation(ranked[low : high + 1]))
        # Asked last and lazily: it decodes the image.
        chosen += [(quantile, each) for each in islice(filter(may_show, near), IMAGES_EACH)]
    return chosen


def measure_ordinary(
    subject: Subject,
    index: ExemplarIndex,
    dataset: Dataset,
    memory: ImageMemory,
    seed: int,
    progress: Progress = no_progress,
) -> tuple[Observation, ...]:
    """Choose ordinary images, measure and store them. The same seed gives the same images. Raises Cancelled."""
    layer, unit = subject.spec.layer, subject.spec.unit
    sample = index.layer(layer, progress).sample[:, unit]
    exemplars, splits = set(index.unit(layer, unit).positions), is_split(dataset)

    def can_show(position: int) -> bool:
        # No label may be tried or checked on an image that an agent was shown.
        # The split is asked last: it decodes the image.
        return position not in exemplars and not (splits and split_of(dataset[position].image) != "exemplars")

    chosen = choose_positions(sample, sample_step(len(dataset)), can_show, seed)
    pictures = [index.picture(position) for _, position in chosen]
    known = [(each.image, Provenance(Origin.EXTERNAL, scene=each.scene)) for each in pictures]
    return _store([quantile for quantile, _ in chosen], known, subject, memory)


def _store(
    quantiles: Sequence[float], images: Sequence[tuple[Image, Provenance]], subject: Subject, memory: ImageMemory
) -> tuple[Observation, ...]:
    raw = store_images(memory, images)
    answers = subject.respond([each.image for each in raw]) if raw else []
    found = []
    for quantile, kept, answer in zip(quantiles, raw, answers, strict=True):
        masked = image_key(answer.masked)
        # A unit that is silent leaves the image whole, and its key is the same.
        if masked != kept.key:
            memory.remember(answer.masked, Provenance(Origin.EXTERNAL, raw=kept.key), masked)
        title = f"ordinary image near the {quantile:g} quantile"
        found.append(
            Observation(title, answer.activation, kept.key, masked, measured=True, map=keep_map(memory, answer.map))
        )
    return tuple(found)
