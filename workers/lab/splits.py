"""The splits of a dataset, which never share an image: exemplars, development and probe.

An agent is shown exemplars; labels are tried on development images during a run; the reported score of a label is
measured on the probe. Used by the index, and by `measured_splits`.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Literal

from PIL.Image import Image

from workers.lab.imaging import image_key
from workers.protocols import Dataset

Split = Literal["exemplars", "development", "probe"]
HeldOutSplit = Literal["development", "probe"]
SHARES: dict[Split, float] = {"exemplars": 0.5, "development": 0.2, "probe": 0.3}
"""Approximate shares of a dataset's images."""
MIN_SPLIT_IMAGES = 200
"""Minimum number of images of a dataset that is split; a smaller one is all exemplars."""
_HASHES = 1 << 32


def split_of(image: Image) -> Split:
    """Return the split of an image, by the hash of its mode, size and pixels."""
    # By its pixels alone, so that an image is in the same split in every dataset.
    place = int(image_key(image)[:8], 16) / _HASHES
    ends = zip(SHARES, accumulate(SHARES.values()), strict=True)
    return next((split for split, end in ends if place < end), "probe")  # sums of shares may fall short of 1


def is_split(dataset: Dataset) -> bool:
    """True if some of its images are held back from exemplars."""
    # Published exemplars have no others, and a dataset that makes fresh images needs to hold none back.
    return len(dataset) >= MIN_SPLIT_IMAGES and not hasattr(dataset, "published") and not hasattr(dataset, "held_out")
