"""Read spatial activations of a layer over images of a dataset, in random order, through a buffer of bounded memory.

Images come in a random order. As many as fit fill the buffer, whose positions are returned in a random order; then the
next ones follow.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from workers.errors import MissingPart, RequestError
from workers.lab.map_stream import MapStream, SeenBatch
from workers.protocols import Progress

MAX_BYTES = 256 << 20
"""Maximum size of the buffer."""
MIN_SPREAD = 512
"""Images that share the buffer."""
_ORDER, _POSITIONS, _SHUFFLE = range(3)  # what a random draw is for


@dataclass(frozen=True)
class StreamPlace:
    """A place in a stream."""

    part: int = 0
    """Earlier fillings of the buffer."""
    batch: int = 0
    """Batches already taken of this filling."""


class ActivationBuffer:
    """The activations of one layer over the images at these positions of the stream's dataset.

    Raises MissingPart where no image can be read, MachineryError for activations that are not finite.
    """

    def __init__(
        self, stream: MapStream, layer: str, images: NDArray[np.int64], seed: int, max_bytes: int = MAX_BYTES
    ) -> None:
        self._stream = stream
        self._layer = layer
        self._images = images
        self._seed = seed
        units, self._map_size = self._look_at_maps()
        # float32 takes four bytes.
        if 4 * units > max_bytes:
            raise RequestError(
                f"One position of {layer} has {units:,} units and does not fit into {max_bytes:,} bytes."
            )
        room = max_bytes // (4 * units)
        # A batch must not be of a few images alone, so of large maps only random positions are taken.
        self.per_image = max(1, min(self._map_size, room // min(MIN_SPREAD, len(images))))
        # Rounded down, so that the buffer never grows over its limit.
        self._images_a_part = min(len(images), max(1, room // self.per_image))
        self._parts = -(-len(images) // self._images_a_part)
        self._values = torch.empty((self._images_a_part * self.per_image, units))
        # No part has this number, so the first call fills the buffer.
        self._filled = -1
        self._order = np.zeros(0, dtype=np.int64)
        self.count = 0
        """Positions in the buffer."""

    @property
    def positions(self) -> int:
        """Positions that a pass over all images gives, if all can be read."""
        return self.per_image * len(self._images)

    def sample(self, count: int, progress: Progress) -> Tensor:
        """Return up to this many random positions (positions, units) of the first filling."""
        self._fill(0, progress)
        return self._values[torch.from_numpy(self._order[:count])]

    def take(self, place: StreamPlace, size: int, progress: Progress) -> tuple[Tensor, StreamPlace]:
        """Return the batch at a place, (positions, units) with `size` positions or all that remain; and the next
        place."""
        self._fill(place.part, progress)
        start = place.batch * size
        batch = self._values[torch.from_numpy(self._order[start : start + size])]
        # The rest is smaller than a batch: the next filling continues
        ended = start + 2 * size > self.count
        return batch, StreamPlace(place.part + 1) if ended else StreamPlace(place.part, place.batch + 1)

    def _look_at_maps(self) -> tuple[int, int]:
        """Return the units of the layer, and the positions of its map of one image."""
        # An image may be unreadable, so the next ones are tried.
        for position in self._images:
            (seen,) = self._stream.batches([self._layer], [int(position)], lambda: None)
            if self._layer in seen.maps:
                _, units, height, width = seen.maps[self._layer].shape
                return units, height * width
        raise self._describe_no_images()

    def _fill(self, part: int, progress: Progress) -> None:
        """Fill the buffer with a part of the stream, in its own order."""
        if part == self._filled:
            return
        if self._parts > 1 or self._filled < 0:
            # A pass takes all parts; the next one shuffles the images anew.
            turn, at = divmod(part, self._parts)
            # Invalid while it is overwritten: a stop in between must not leave a mixture.
            self._filled = -1
            order = self._draw(_ORDER, turn).permutation(self._images)
            chosen = order[at * self._images_a_part : (at + 1) * self._images_a_part].tolist()
            # What always fits is read once, so its positions must not depend on when that was
            self.count = self._read(chosen, self._draw(_POSITIONS, part if self._parts > 1 else 0), progress)
        self._order = self._draw(_SHUFFLE, part).permutation(self.count)
        self._filled = part

    def _read(self, images: Sequence[int], draw: np.random.Generator, progress: Progress) -> int:
        """Fill the buffer from its beginning. Returns how many positions it holds."""
        filled = done = 0
        what = f"Reading {self._layer} of {self._stream.model.name}"

        def listen() -> None:
            progress(what, done, len(images))

        # In the dataset's order, as files lie on a disk; positions are shuffled anyway
        with closing(self._stream.batches([self._layer], sorted(images), listen)) as batches:
            for seen in batches:
                listen()
                if self._layer in seen.maps:
                    found = self._pick(seen, draw)
                    self._values[filled : filled + len(found)] = found
                    filled += len(found)
                done += len(seen.batch)
        if not filled:
            raise self._describe_no_images()
        return filled

    def _pick(self, seen: SeenBatch, draw: np.random.Generator) -> Tensor:
        """Return (positions, units): all of the maps, or as many random ones of each image as the buffer has room
        for."""
        maps = seen.maps[self._layer].flatten(2).transpose(1, 2)  # (batch, positions, units)
        if not maps.isfinite().all():
            raise self._stream.explain_not_finite(self._layer, seen)
        if self.per_image < self._map_size:
            # Sorting random numbers draws positions without repeats, for all images at once.
            chosen = draw.random(maps.shape[:2]).argsort(1)[:, : self.per_image]
            maps = maps.take_along_dim(torch.from_numpy(chosen).to(maps.device)[:, :, None], 1)
        return maps.flatten(0, 1)

    def _draw(self, purpose: int, number: int) -> np.random.Generator:
        # By the seed, the purpose and a number alone, so that a stopped training continues with the very next batch.
        return np.random.default_rng([self._seed, purpose, number])

    def _describe_no_images(self) -> MissingPart:
        dataset = self._stream.dataset
        return MissingPart(
            f"None of {len(self._images):,} files of the dataset {dataset.name} is an image that can be read. "
            "Put images there, or choose another dataset."
        )


def split_images(count: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Split a dataset into positions to train on, and a random twentieth of its images, at most 500, to measure on."""
    order = np.random.default_rng([seed, count]).permutation(count)
    held_out = min(count // 20, 500)
    return order[held_out:], order[:held_out]
