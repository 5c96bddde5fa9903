"""`System`: the thing under study as the agent's programs see it. Its docstrings are the reference the agent reads.

It measures and masks through a `Subject` and knows no model itself. Made by `laboratory` for each experiment.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from workers.errors import ToolError
from workers.lab import arguments
from workers.lab.ablation import NOT_ASKED, Ablation
from workers.lab.arguments import ImageOrText
from workers.lab.imaging import image_key
from workers.lab.memory import StoredImage, encode_text, find_raw, is_made, keep_map, look_up_all
from workers.protocols import CircuitSubject, Exemplar, ImageMemory, Progress, Response, Subject, no_progress
from workers.record.experiments import ActivationMap


@dataclass(frozen=True)
class MeasuredImage:
    """What the system answered to it; `masked` is a key."""

    activation: float
    masked: str
    map: ActivationMap | None = None


class System:
    """The unit under study and the network it belongs to.

    system.model_name, system.layer: names of the network and of the layer.
    system.neuron_num (also system.unit): the unit's number in that layer.
    """

    def __init__(
        self,
        subject: Subject,
        memory: ImageMemory,
        progress: Progress = no_progress,
        ablation: Ablation | None = None,
    ) -> None:
        self.subject = subject
        self.model_name = subject.spec.model
        self.layer = subject.spec.layer
        self.neuron_num = subject.spec.unit
        self.measured: dict[str, MeasuredImage] = {}
        """What each raw key gave that was measured in this experiment."""
        self.best: float | None = None
        """The highest activation in this experiment of an image that is no exemplar."""
        self._memory = memory
        self._progress = progress
        self._ablation = ablation

    @property
    def unit(self) -> int:
        return self.neuron_num

    def neuron(self, image_list: Sequence[ImageOrText]) -> tuple[list[float], list[str]]:
        """Measure how strongly each image activates the unit, and where.

        Returns two lists in the order of the images: the activations (highest value anywhere in the image)
        and the masked images (Base64). In a masked image the region that drives the unit is bright with a red outline,
        and the rest is dimmed; an image without such an outline is whole, as where nothing in it drives the unit. A
        masked image that you pass in is measured through the whole image behind it. The activation of an image that
        was refused is nan: leave it out of your means (`math.isnan`). At most 64 images per call; one that is larger
        is reduced to 1024 pixels a side.

        Example:
            images = tools.text2image(["a red ball on grass", "a blue ball on grass"])
            activations, masked_images = system.neuron(images)
        """
        given = arguments.check_items(image_list, "image_list", "images")
        kept = look_up_all(self._memory, given, "image_list", self._progress)
        return self._measure([find_raw(self._memory, each) for each in kept])

    call_neuron = neuron

    def ablate(self, image_list: Sequence[ImageOrText], factor: float = 0) -> list[dict[str, Any] | None]:
        """Find out what the network uses the unit for: what becomes of its own output when the unit is changed.

        factor: 0 takes the unit out, 2 doubles it; from 0 to 10, not 1. Returns a dict for each image, None for one
        that was refused: "activation" of the unchanged unit; "falls" and "rises", up to 3 classes each whose logits
        change most, as [class, change]; "same_answer"; "divergence" of the class probabilities from the network's own,
        in nats. Of a network without classes "activation" and "change": how far its output moves, over its length.
        Take images that activate the unit: where it is silent, little can change. At most 64 images per call.

        Example:
            images = tools.text2image(["a red ball on grass", "a blue ball on grass"])
            for found in system.ablate(images):
                print(found)
        """
        if self._ablation is None:
            raise ToolError(NOT_ASKED)
        self._ablation.check(factor)  # before images are read and measured
        given = arguments.check_items(image_list, "image_list", "images")
        kept = look_up_all(self._memory, given, "image_list", self._progress)
        raw = [find_raw(self._memory, each) for each in kept]
        made = [each for each in raw if is_made(each)]
        self.measure(made)
        # Refused images are left out of the pass, and get None below.
        changes = iter(self._ablation.describe([each.image for each in made], factor))
        return [
            {"activation": self.measured[each.key].activation, **next(changes)} if is_made(each) else None
            for each in raw
        ]

    def circuit(self, image_list: Sequence[ImageOrText]) -> dict[str, Any]:
        """Measure every member of the circuit under study on each image, and where they respond together.

        Returns {"members", "thresholds", "activations", "maps", "masked"}. "members" are names of units and latents;
        activations[i][m] is what member m gives to image i: divide it by thresholds[m] to compare members. The mean of
        that over the members is the activation that system.neuron returns. maps[i] are rows of the combined map, from
        the top of the image; "masked" are masked images (Base64) as of system.neuron. An image that was refused has nan
        for every member and an empty map. At most 64 images per call.

        Example:
            found = system.circuit(tools.text2image(["a red ball on grass", "a blue ball on grass"]))
            strongest = [row.index(max(row)) for row in found["activations"]]
        """
        given = arguments.check_items(image_list, "image_list", "images")
        kept = look_up_all(self._memory, given, "image_list", self._progress)
        images = [find_raw(self._memory, each) for each in kept]
        made = [each for each in images if is_made(each)]
        subject = cast("CircuitSubject", self.subject)
        # Without images the network need not run.
        answers = subject.respond_members([each.image for each in made]) if made else []
        masked = iter(self.keep(made, [each.response for each in answers]))
        members, found = subject.members, iter(answers)
        rows = [next(found) if is_made(each) else None for each in images]
        return {
            "members": [str(each) for each in members],
            "thresholds": subject.find_thresholds(),
            "activations": [list(each.members) if each else [math.nan] * len(members) for each in rows],
            "maps": [each.combined if each else [] for each in rows],
            "masked": [next(masked) if is_made(each) else encode_text(self._memory, each.key) for each in images],
        }

    def measure(self, images: Sequence[StoredImage]) -> None:
        """Measure those of these raw images that this experiment did not measure yet."""
        missing = {raw.key: raw for raw in images if raw.key not in self.measured}
        if missing:
            self._measure(list(missing.values()))

    def keep(self, images: Sequence[StoredImage], answers: Sequence[Response | Exemplar]) -> list[str]:
        """Remember what was measured on raw images. Returns the masked ones as texts."""
        keys = [image_key(each.masked) for each in answers]
        map_keys = [image_key(each.map.grey) if each.map else "" for each in answers]
        # Fetched in one query.
        self._memory.expect([*keys, *filter(None, map_keys)])
        for raw, answer, key, map_key in zip(images, answers, keys, map_keys, strict=True):
            if key != raw.key:  # an image that is bright all over, or nowhere, is not masked
                self._memory.remember(answer.masked, replace(raw.provenance, scene=None, raw=raw.key), key)
            activation_map = keep_map(self._memory, answer.map, map_key)
            self.measured[raw.key] = MeasuredImage(answer.activation, key, activation_map)
            # Exemplars are the mark to reach, not the agent's own find.
            if raw.provenance.origin != "exemplar" and (self.best is None or answer.activation > self.best):
                self.best = answer.activation
        return [encode_text(self._memory, key) for key in keys]

    def _measure(self, images: list[StoredImage]) -> tuple[list[float], list[str]]:
        """Return activations and masked images."""
        made = [each for each in images if is_made(each)]
        responses = self.subject.respond([each.image for each in made]) if made else []
        kept = iter(zip(responses, self.keep(made, responses), strict=True))
        found = [next(kept) if is_made(each) else None for each in images]
        # NaN for a refused image: no mean hides it.
        activations = [pair[0].activation if pair else math.nan for pair in found]
        masked = [
            pair[1] if pair else encode_text(self._memory, raw.key) for pair, raw in zip(found, images, strict=True)
        ]
        return activations, masked
