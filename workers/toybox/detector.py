"""toybox-eyes as a detector: finds toys by name in toybox's pictures. The network is in `workers.toybox.networks.nets`.

One detection is one connected region of pixels that are most likely the toy. Its confidence is the mean probability
of the toy there, and of the colour if one is asked for: "ball", "red ball", "something red". Loaded through the
registry. A picture takes about 15 ms on a processor, for any number of toys.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL.Image import Image

from workers.errors import UnknownName
from workers.model_cache import map_in_batches
from workers.protocols import Detection, LabSettings
from workers.toybox.fresh_neurons import draw_neurons
from workers.toybox.networks import nets
from workers.toybox.networks.detection import find_regions, split_by_colour
from workers.toybox.world.scenes import NOUNS
from workers.toybox.world.words import read_words

CONFIDENT = 0.5
"""Less confident regions are left out."""
MIN_PIXELS = 6
"""Minimum size of a region, in the eyes' 48 x 48 pixels."""
_BATCH = 32

NEURONS: Mapping[str, str] = {
    "mono": ", ".join(NOUNS),
    "either": """
        ball or cone, cube or pyramid, cylinder or ring, car or train, boat or rocket, house or tree,
        mushroom or snowman, duck or cup, chair or table, star or robot, cone or rocket, table or cup
    """,
    "conditional": """
        ball | boat, cube | table, pyramid | train, star | cube, car | house, boat | tree, rocket | robot,
        house | mushroom, snowman | ring, duck | cube, cup | table, chair | car
    """,
}
"""Each toy, and pairs of toys that occur together in over 35 of the 3,000 validation scenes."""


def load(settings: LabSettings) -> ToyboxDetector:
    """Return the detector with its committed weights. Raises MachineryError if they are missing."""
    return ToyboxDetector(nets.EYES_FILE, settings)


def load_seeded(settings: LabSettings, name: str) -> ToyboxDetector:
    """Return the detector with the synthetic neurons of a seed: `name` is "seed-7". Raises UnknownName for another
    name."""
    if not (found := re.fullmatch(r"seed-(\d{1,9})", name)):
        raise UnknownName(f"toybox-eyes have no neurons called {name!r}. Write seed- and a number, such as seed-7.")
    return ToyboxDetector(nets.EYES_FILE, settings, f"toybox-eyes:{name}", draw_neurons(int(found.group(1))))


def missing(settings: LabSettings, name: str = "") -> str:
    """Return "" if the weights exist, else the command that creates them."""
    del settings, name
    return "" if nets.EYES_FILE.exists() else f"{nets.EYES_FILE} is missing. Make it with `manage.py train_toybox`."


class ToyboxDetector:
    """The detector "toybox-eyes". See `protocols.Detector`."""

    def __init__(
        self,
        weights: Path,
        settings: LabSettings,
        name: str = "toybox-eyes",
        neurons: Mapping[str, str] = NEURONS,
    ) -> None:
        self.name = name
        self.neurons = neurons
        self._device = settings.device
        # In half precision so small a network gains nothing.
        # Shared by all seeds: the neurons differ, the network does not
        self._eyes = settings.model_cache.slot("toybox-eyes", lambda: nets.load_eyes(weights).to(settings.device))
        with self._eyes as eyes:
            self.concepts = eyes.vocabulary.nouns
            self._colours = eyes.vocabulary.colours
        self.revision = nets.fingerprint(weights)

    def detect(self, images: Sequence[Image], concepts: Sequence[str]) -> list[dict[str, list[Detection]]]:
        """Return where each image shows the toys; masks are 48 x 48. See `protocols.Detector.detect`."""
        wanted = {concept: self._read(concept) for concept in concepts}
        seen = map_in_batches(images, _BATCH, self._look)
        return [{concept: each.find(*kind) for concept, kind in wanted.items()} for each in seen]

    def _read(self, concept: str) -> tuple[int | None, int | None]:
        """Return the index of its toy, from 1, and of its colour, from 0; None for what it does not name."""
        # Words without content are left out; all others must be a noun or a colour
        words = [word for word in read_words(concept) if word.kind not in ("thing", "stop", "count")]
        said = {word.kind: word.value for word in words}
        # One of each kind at most, and at least one: the lengths differ if a kind occurs twice
        known = set(said) <= {"noun", "colour"} and len(said) == len(words) > 0
        if not known or said.get("noun", self.concepts[0]) not in self.concepts:
            raise UnknownName(
                f"toybox-eyes know no {concept!r}. Choose among: {', '.join(self.concepts)}; of any colour, or of one: "
                f"{', '.join(self._colours)}."
            )
        noun, colour = said.get("noun"), said.get("colour")
        return (
            None if noun is None else 1 + self.concepts.index(noun),
            None if colour is None else self._colours.index(colour),
        )

    def _look(self, images: Sequence[Image]) -> list[_Sight]:
        with self._eyes as eyes, torch.no_grad():
            output = eyes(nets.preprocess(images).to(self._device))
        parts = (each.softmax(dim=1).numpy(force=True) for each in (output.noun, output.colour))
        return [_Sight(noun, colour) for noun, colour in zip(*parts, strict=True)]


@dataclass
class _Sight:
    """One image as the eyes see it."""

    noun: NDArray[np.float32]
    """Probability of each pixel for no toy and for each toy, (1 + toys, 48, 48)."""
    colour: NDArray[np.float32]
    """Probability of each colour, (colours, 48, 48). It is only valid on toys."""
    regions: dict[int, list[NDArray[np.bool_]]] = field(default_factory=dict)
    """Regions of each toy asked for that are large enough."""

    def find(self, noun: int | None, colour: int | None) -> list[Detection]:
        """Return the places of one toy or of all toys, only those of one colour if it is given."""
        toys = range(1, len(self.noun)) if noun is None else [noun]
        return [found for toy in toys for region in self._regions(toy) for found in self._detect(toy, region, colour)]

    def _regions(self, toy: int) -> list[NDArray[np.bool_]]:
        # Kept for the next concept: "ball" and "red ball" need the same regions
        if toy not in self.regions:
            likeliest = self.noun.argmax(axis=0) == toy
            self.regions[toy] = [each for each in find_regions(likeliest) if each.sum() >= MIN_PIXELS]
        return self.regions[toy]

    def _detect(self, toy: int, region: NDArray[np.bool_], colour: int | None) -> list[Detection]:
        likely, hue = self.noun[toy], self.colour.argmax(axis=0)
        found = [Detection(float(likely[region].mean()), region)]
        # Two touching toys of one kind are one region: split it by colour before asking for one
        if colour is not None:
            likely = likely * self.colour[colour]
            parts = [part for part in split_by_colour(region, hue) if np.bincount(hue[part]).argmax() == colour]
            found = [Detection(float(likely[each].mean()), each) for each in parts if each.sum() >= MIN_PIXELS]
        return [each for each in found if each.confidence >= CONFIDENT]
