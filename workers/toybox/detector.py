"""toybox-eyes as a detector: finds toys in pictures of toybox by name. The network is in
`workers.toybox.networks.nets`.

One detection is one connected region of pixels that are most likely the toy; its confidence is the mean probability of
the toy there. Loaded through the registry; a picture costs about 15 ms on a processor, however many toys are asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL.Image import Image

from workers.errors import UnknownName
from workers.model_cache import in_batches
from workers.protocols import Detection, LabSettings
from workers.toybox.networks import nets
from workers.toybox.networks.detection import connected_regions
from workers.toybox.world.scenes import NOUNS

CONFIDENT = 0.5
"""Regions that are less likely the toy than this are left out."""
MIN_PIXELS = 6
"""So are smaller ones, of the eyes' 48 x 48 pixels."""
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
"""Each toy, and pairs of toys that stand together in over 35 of the 3,000 validation scenes."""


def load(settings: LabSettings) -> ToyboxDetector:
    """The detector with its committed weights. Raises MachineryError if they are missing."""
    return ToyboxDetector(nets.EYES_FILE, settings)


def missing(settings: LabSettings) -> str:
    """ "" if the weights are there, else the command that makes them."""
    del settings
    return "" if nets.EYES_FILE.exists() else f"{nets.EYES_FILE} is missing. Make it with `manage.py train_toybox`."


class ToyboxDetector:
    """The detector "toybox-eyes". See `protocols.Detector`."""

    name = "toybox-eyes"
    neurons = NEURONS

    def __init__(self, weights: Path, settings: LabSettings) -> None:
        self._device = settings.device
        # In half precision so small a network gains nothing.
        self._eyes = settings.model_cache.slot("toybox-eyes", lambda: nets.load_eyes(weights).to(settings.device))
        with self._eyes as eyes:
            self.concepts = eyes.vocabulary.nouns
        self.revision = nets.fingerprint(weights)

    def detect(self, images: Sequence[Image], concepts: Sequence[str]) -> list[dict[str, list[Detection]]]:
        """Where each image shows the toys; masks are 48 x 48. See `protocols.Detector.detect`."""
        unknown = [concept for concept in concepts if concept not in self.concepts]
        if unknown:
            raise UnknownName(f"toybox-eyes know no {unknown[0]!r}. Choose among: {', '.join(self.concepts)}.")
        probabilities = in_batches(images, _BATCH, self._look)
        return [{concept: self._places(each, concept) for concept in concepts} for each in probabilities]

    def _look(self, images: Sequence[Image]) -> list[NDArray[np.float32]]:
        """For each image how likely each pixel shows no toy and each toy, (1 + toys, 48, 48)."""
        with self._eyes as eyes, torch.no_grad():
            return list(eyes(nets.preprocess(images).to(self._device)).noun.softmax(dim=1).numpy(force=True))

    def _places(self, probabilities: NDArray[np.float32], concept: str) -> list[Detection]:
        toy = 1 + self.concepts.index(concept)
        regions = connected_regions(probabilities.argmax(axis=0) == toy)
        likely = probabilities[toy]
        found = [Detection(float(likely[each].mean()), each) for each in regions if each.sum() >= MIN_PIXELS]
        return [each for each in found if each.confidence >= CONFIDENT]
