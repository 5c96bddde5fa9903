"""Find the toys in an image: undo its masking, and read the output of toybox-eyes or toybox-describer.

Knows the look of masked images (`lab.imaging.mask_image`), but no hypotheses, units or scenes. Called by
`toybox.describer`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from workers.lab.imaging import DARK_BRIGHTNESS, DIMMED_BRIGHTNESS, DIMMED_COLOUR, LUMA_WEIGHTS, OUTLINES
from workers.toybox.networks.nets import EYES_OUTPUT, ToyboxEyes, Vocabulary, preprocess

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

_DARKEST = int(255 * DARK_BRIGHTNESS)
"""Maximum byte outside a mask of the published look."""
_MIN_PIXELS = 6
"""Smaller patches of the eyes' 48 x 48 pixels are noise."""
_MIN_INSIDE = 0.25
"""Minimum share of a toy in the bright region for it to count as inside."""


@dataclass(frozen=True)
class DetectedThing:
    noun: str
    colour: str
    size: str
    pixels: int
    """Number of the eyes' 48 x 48 pixels."""


@dataclass(frozen=True)
class DetectedScene:
    """The toys that the eyes see; in a masked image, only those in its bright region."""

    things: tuple[DetectedThing, ...]
    ground: str
    light: str
    around: tuple[DetectedThing, ...] = ()
    """The toys outside the bright region."""

    @property
    def words(self) -> frozenset[str]:
        """Every noun, colour, ground and light seen."""
        return frozenset({self.ground, self.light} | {w for thing in self.things for w in (thing.noun, thing.colour)})


def unmask(image: Image.Image) -> tuple[Image.Image, Bools]:
    """Return the image before masking, as far as its pixels tell, and the bright region (height, width).

    An unmasked image is returned unchanged, all bright. One that is dark everywhere (an older form of an empty mask)
    has no bright region.
    """
    pixels = np.asarray(image.convert("RGB"))
    # 1. Which look: the colour of its outline occurs most
    dim, dark, weighted = ((pixels == OUTLINES[look]).all(axis=2) for look in ("dim", "dark", "weighted"))
    dark = max(dark, weighted, key=np.sum)  # the surroundings are the same
    if dim.sum() > dark.sum():
        # Pixels with the colour that dimming took; their brightness stays
        rest = pixels / DIMMED_BRIGHTNESS
        grey = (rest @ np.array(LUMA_WEIGHTS))[:, :, None]
        line, bright, rest = dim, _find_bright(pixels, dim), grey + (rest - grey) / DIMMED_COLOUR
    else:
        line, bright, rest = dark, _bright(pixels.max(axis=2), dark, _DARKEST), pixels / DARK_BRIGHTNESS
    # 2. Restore the dark part, and fill the outline from its surroundings
    restored = np.where(bright[:, :, None], pixels, rest.clip(0, 255))
    return Image.fromarray(_fill_unknown(restored, ~line).round().astype(np.uint8)), bright


def detect_scenes(eyes: ToyboxEyes, images: Sequence[Image.Image]) -> list[DetectedScene]:
    """Return what each image shows. Masked images are read in their bright region."""
    if not images:
        return []
    words = eyes.vocabulary
    unmasked = [unmask(image) for image in images]
    with torch.no_grad():
        seen = eyes(preprocess([image for image, _ in unmasked]))
    noun, colour, size = (part.argmax(dim=1).numpy() for part in (seen.noun, seen.colour, seen.size))
    found = []
    for row, (_, bright) in enumerate(unmasked):
        # Scaled as bytes: BOX averages them, and half of the pixel decides
        small = Image.fromarray(bright).convert("L").resize((EYES_OUTPUT, EYES_OUTPUT), Image.Resampling.BOX)
        things, around = _find_things(words, noun[row], colour[row], size[row], np.asarray(small) >= 128)
        ground, light = int(seen.ground[row].argmax()), int(seen.light[row].argmax())
        found.append(DetectedScene(things, words.grounds[ground], words.lights[light], around))
    return found


def find_regions(mask: Bools) -> Iterator[Bools]:
    """Yield the connected regions of a mask. Pixels connect by their edges."""
    # A copy, since found regions are removed from it
    left = mask.copy()
    while left.any():
        seed = np.zeros_like(mask)
        seed.flat[left.argmax()] = True
        patch = _grow_region(seed, left)
        left &= ~patch
        yield patch


def _find_bright(pixels: NDArray[np.uint8], line: Bools) -> Bools:
    """Return the patches that hold an odd byte: dimming leaves none. For a flat picture without any, return the
    brighter side.
    """
    # Dimming leaves no odd byte, so one proves that its patch is original
    odd: Bools = (pixels % 2 == 1).max(axis=2) & ~line
    if not odd.any():
        return _bright(pixels.max(axis=2), line, int(255 * DIMMED_BRIGHTNESS))
    bright = np.zeros_like(line)
    for patch in find_regions(~line):
        if odd[patch].any():
            bright |= patch
    return bright


def _bright(value: NDArray[np.uint8], line: Bools, darkest: int) -> Bools:
    """Return the side of the line that was not darkened.

    `value` is the brightest byte of each pixel (height, width); no darkened one is above `darkest`.
    """
    # The width of the outline grows with the image
    reach = max(1, round(min(line.shape) / 128))
    # The mean around a pixel covers both sides of the line
    around, near = _mean_around(value[:, :, None], ~line, 6 * reach + 1)[:, :, 0], _widen(line, 2 * reach)
    bright = np.zeros_like(line)
    for patch in find_regions(~line):
        edge = patch & near
        # A byte that darkening cannot produce, or brighter along the line than across it, which works at night too
        if value[patch].max() > darkest or (edge.any() and value[edge].mean() > around[edge].mean()):
            bright |= patch
    return bright


def _find_things(
    words: Vocabulary, noun: Ints, colour: Ints, size: Ints, bright: Bools
) -> tuple[tuple[DetectedThing, ...], tuple[DetectedThing, ...]]:
    """Return the toys in the bright region, and those outside, largest first."""
    inside: list[DetectedThing] = []
    around: list[DetectedThing] = []
    # 0 is the background
    for kind in np.unique(noun[noun > 0]):
        for patch in find_regions(noun == kind):
            for part in split_by_colour(patch, colour):
                pixels = int(part.sum())
                if pixels >= _MIN_PIXELS:
                    hue, extent = (int(np.bincount(values[part]).argmax()) for values in (colour, size))  # commonest
                    thing = DetectedThing(words.nouns[kind - 1], words.colours[hue], words.sizes[extent], pixels)
                    (inside if (part & bright).sum() >= _MIN_INSIDE * pixels else around).append(thing)
    largest = [sorted(each, key=lambda thing: -thing.pixels) for each in (inside, around)]
    return tuple(largest[0]), tuple(largest[1])


def split_by_colour(patch: Bools, colour: Ints) -> list[Bools]:
    """Split a patch if a third of it has another colour: two touching toys of one kind differ in colour."""
    hues, counts = np.unique(colour[patch], return_counts=True)
    large = hues[counts >= patch.sum() / 3]
    return [patch & (colour == hue) for hue in large] if len(large) > 1 else [patch]


def _grow_region(seed: Bools, room: Bools) -> Bools:
    """Return all of `room` that is connected by edges with a pixel of `seed`."""
    region = seed & room
    while True:
        wider = region.copy()
        for axis in (0, 1):
            # Carry a region along every run of `room` in a row (axis 1) or a column (axis 0); in place
            view, free = (wider.T, room.T) if axis == 0 else (wider, room)
            # Each run of free pixels in a row has a number of its own, across rows too
            runs = np.cumsum(~free, axis=1) + np.arange(len(free))[:, None] * (free.shape[1] + 1)
            touched = np.zeros(int(runs.max()) + 1, dtype=bool)
            touched[runs[view]] = True
            view[:] = touched[runs] & free
        # Nothing grew in either direction: the region is whole
        if (wider == region).all():
            return region
        region = wider


def _fill_unknown(pixels: NDArray[np.floating], known: Bools) -> NDArray[np.floating]:
    """Replace unknown pixels (height, width, 3) by the mean of the known ones around them."""
    if known.all():
        return pixels
    # Wider than the outline, so that known pixels are within reach
    side = 4 * max(1, round(min(known.shape) / 128)) + 1
    return np.where(known[:, :, None], pixels, _mean_around(pixels, known, side))


def _mean_around(pixels: NDArray[Any], known: Bools, side: int) -> NDArray[np.float32]:
    """Return the mean of the known pixels (height, width, channels) in the square of `side` around each; 0 if there
    is none."""
    weight = torch.from_numpy(known).float()[None]  # (1, height, width)
    total = torch.from_numpy(pixels).float().permute(2, 0, 1) * weight
    # The pool divides by its area in both, so the quotient is the mean of known pixels
    pool = torch.nn.AvgPool2d(side, 1, side // 2)
    # Where no pixel is known this is 0, not nan
    return (pool(total) / pool(weight).clamp(min=1e-6)).permute(1, 2, 0).numpy()


def _widen(mask: Bools, reach: int) -> Bools:
    """Return the mask and everything within `reach` pixels of it."""
    grown = torch.nn.functional.max_pool2d(torch.from_numpy(mask).float()[None], 2 * reach + 1, 1, reach)
    return grown[0].numpy() > 0
