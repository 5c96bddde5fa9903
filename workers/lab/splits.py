"""The splits of a dataset, which never share an image: exemplars, development and probe.

An agent is shown exemplars; labels are tried on development images while a run goes on; what is reported of a label is
measured on the probe. Which split an image is in follows from its pixels alone, so that it is in the same one in every
dataset, whatever stands beside it. Used by the index, and by `measured_splits`.
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
"""Of a dataset's images, about."""
FEWEST = 200
"""Images of a dataset that is split; a smaller one is all exemplars."""
_HASHES = 1 << 32


def split_of(image: Image) -> Split:
    """The split that an image is in, by the hash of its mode, size and pixels."""
    place = int(image_key(image)[:8], 16) / _HASHES
    ends = zip(SHARES, accumulate(SHARES.values()), strict=True)
    return next((split for split, end in ends if place < end), "probe")  # sums of shares may fall short of 1


def is_split(dataset: Dataset) -> bool:
    """Whether some of its images are held back from exemplars: not of a small one, not where it is exemplars that
    others have published, and not where it makes fresh images to hold back."""
    return len(dataset) >= FEWEST and not hasattr(dataset, "published") and not hasattr(dataset, "held_out")
