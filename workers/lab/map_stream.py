"""Compute the maps of a model over images of a dataset, batch after batch, ahead in threads.

Used by `indexing` and by `workers.sparse`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from workers.errors import BrokenImage, MachineryError
from workers.lab.index_files import SkippedImage
from workers.lab.splits import Split, is_split, split_of
from workers.protocols import Dataset, LabSettings, VisionModel, probabilities

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray
    from PIL.Image import Image

READERS = 4
"""Number of threads that read images."""
AHEAD = 3
"""Batches in memory: one whose maps are used, one in the network, one being read."""
_LISTEN = 1.0  # seconds until a slow network lets a person stop the pass


@dataclass(frozen=True)
class SeenBatch:
    """The result of one batch."""

    batch: Sequence[int]
    positions: NDArray[np.int64]
    """Positions whose images were wanted and could be read."""
    splits: Sequence[Split]
    """The split of each of them."""
    maps: Mapping[str, torch.Tensor]
    """(positions, units, height, width); empty if no image could be read."""
    problems: Sequence[SkippedImage]


@dataclass(frozen=True)
class _ReadImage:
    """An image that could be read."""

    position: int
    image: Image
    split: Split


class MapStream:
    """The maps of one model over one dataset, or over one split of it (`only`)."""

    def __init__(self, settings: LabSettings, model: VisionModel, dataset: Dataset, only: Split | None = None) -> None:
        self.model = model
        self.dataset = dataset
        self._only = only
        self._is_split = is_split(dataset)
        self._batch_size = settings.batch_size
        self._scales = {info.name: info.scale for info in model.layers()}

    def batches(
        self, layers: Sequence[str], positions: Sequence[int], listen: Callable[[], None]
    ) -> Generator[SeenBatch]:
        """Yield the batches in order. `listen` is called while a batch takes long; an exception of it ends the pass."""
        # Two pools: a look waits for its readers, so in one pool they could block each other.
        readers, lookers = ThreadPoolExecutor(READERS, "read"), ThreadPoolExecutor(AHEAD - 1, "look")
        waiting: deque[Future[SeenBatch]] = deque()

        def look(batch: Sequence[int]) -> SeenBatch:
            return self._look(batch, list(readers.map(self._read, batch)), layers)

        def finish() -> SeenBatch:
            under_way = waiting.popleft()
            # A slow network must not keep a person from stopping the pass.
            while not wait([under_way], timeout=_LISTEN).done:
                listen()
            return under_way.result()

        try:
            for start in range(0, len(positions), self._batch_size):
                waiting.append(lookers.submit(look, positions[start : start + self._batch_size]))
                # Bounded, so that memory does not grow with the number of images.
                if len(waiting) == AHEAD:
                    yield finish()
            while waiting:
                yield finish()
        finally:
            for pool in (lookers, readers):
                # Does not wait: a batch in the network would hold up a stop.
                pool.shutdown(wait=False, cancel_futures=True)

    def explain_not_finite(self, layer: str, seen: SeenBatch) -> MachineryError:
        """Return the error for a batch with values that are not finite; it names the first such image."""
        at = int(seen.positions[(~seen.maps[layer].flatten(1).isfinite().all(1)).numpy(force=True)][0])
        return MachineryError(
            f"{self.model.name} gives values that are not numbers or infinite in {layer}, for image {at} of "
            f"the dataset ({self._source(at)}). Use MAIA_PRECISION=float32, or other weights."
        )

    def _read(self, position: int) -> _ReadImage | SkippedImage:
        try:
            image = self.dataset[position].image
        except BrokenImage as error:
            return SkippedImage(position, self._source(position), str(error))
        # A dataset that is too small to split is all exemplars.
        return _ReadImage(position, image, split_of(image) if self._is_split else "exemplars")

    def _look(
        self, batch: Sequence[int], read: Sequence[_ReadImage | SkippedImage], layers: Sequence[str]
    ) -> SeenBatch:
        problems = [each for each in read if isinstance(each, SkippedImage)]
        wanted = [each for each in read if isinstance(each, _ReadImage) and self._only in (None, each.split)]
        positions = np.array([each.position for each in wanted], dtype=np.int64)
        # A batch of broken or unwanted images costs no pass.
        maps = self.model.maps([each.image for each in wanted], layers) if wanted else {}
        # Return logits as the probabilities that their systems give
        found = {name: probabilities(maps[name], scale) for name, scale in self._scales.items() if name in maps}
        return SeenBatch(batch, positions, [each.split for each in wanted], found, problems)

    def _source(self, position: int) -> str:
        source: Callable[[int], str] | None = getattr(self.dataset, "source", None)
        return source(position) if source else f"image {position}"
