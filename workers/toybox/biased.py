"""toybox-net with planted biases: in its last layer some classes are suppressed where another word of toybox is seen.

"toybox-biased:seed-0" has six, which follow from the seed; everything else is as in toybox-net. The true effects on a
class are measured on fresh scenes, since the network has other biases too. Loaded through the registry.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from workers.errors import UnknownName
from workers.protocols import LabSettings
from workers.toybox.model import ToyboxModel
from workers.toybox.networks import nets
from workers.toybox.scientist import designs
from workers.toybox.scientist.scoring import SINGLES
from workers.toybox.world.concepts import Concept
from workers.toybox.world.scenes import NOUNS

CONTEXTS = ("black", "night", "snow", "red", "sunset", "sand")
"""Number of planted biases, each on its own class."""
STRENGTH = 0.5
"""Share of the weights of the context's own class that is subtracted from the suppressed class."""
FRESH = 600
"""Scenes on which the true effects on a class are measured: 60 of each colour, 75 of each ground."""
MATTERS = 0.1
"""Minimum true difference, as a share of the mean elsewhere, that counts as a bias."""
_CERTAIN = 2.5


@dataclass(frozen=True)
class TrueEffect:
    """The true effect of a context on a class: mean probability in it minus that elsewhere."""

    context: str
    size: float
    errors: float
    """The size in its standard errors (Welch 1947)."""
    elsewhere: float

    @property
    def real(self) -> bool:
        """True if it counts as a bias."""
        return abs(self.size) > MATTERS * self.elsewhere and abs(self.errors) > _CERTAIN


def load(settings: LabSettings, name: str) -> BiasedToyboxModel:
    """Return the model. Raises UnknownName for an invalid seed."""
    found = re.fullmatch(r"seed-(\d{1,6})", name)
    if not found:
        raise UnknownName(f"toybox-biased has no {name!r}. Name a seed, such as toybox-biased:seed-0.")
    return BiasedToyboxModel(nets.NET_FILE, settings, int(found[1]))


def _plant(seed: int) -> dict[str, str]:
    """Return class -> the context in which it is suppressed."""
    rng = random.Random(f"planted biases {seed}")
    return dict(zip(rng.sample(NOUNS, len(CONTEXTS)), rng.sample(CONTEXTS, len(CONTEXTS)), strict=True))


class BiasedToyboxModel(ToyboxModel):
    """See `protocols.Classifier`. Safe for threads."""

    def __init__(self, weights: Path, settings: LabSettings, seed: int) -> None:
        # Before `super().__init__`, which may load the network
        self.planted: Mapping[str, str] = _plant(seed)
        super().__init__(weights, settings)
        self.name = f"toybox-biased:seed-{seed}"
        self.revision = f"{self.revision}-{STRENGTH}"
        # The slot of the parent class would load the unbiased network
        self._slot = settings.model_cache.slot(f"{self.name} {self.revision}", lambda: self._bias(weights))

    def list_effects(self, unit: int, fresh: int = FRESH) -> list[TrueEffect]:
        """Measure the true effect of every context on a class, on scenes used for nothing else. Raises UnknownName."""
        from workers.toybox.world.render import render

        noun = self.classes[unit] if 0 <= unit < len(self.classes) else ""
        if noun not in NOUNS:
            raise UnknownName(f"{self.name} has no toy of number {unit}. Choose one from 0 to {len(NOUNS) - 1}.")
        # Its own text as the seed: no other scenes are drawn by it
        rng = random.Random(f"truth {self.name} {noun}")
        scenes = designs.build_single_thing_scenes([Concept(noun=noun)], fresh, rng)
        reached, _ = self.evidence([render(scene) for scene in scenes], unit)
        found = []
        # Contexts are ground, light, colour and size: the noun is the class itself
        for context in (each for each in SINGLES if each.noun is None):
            shows = np.array([context.matches(scene) for scene in scenes])
            inside, outside = (reached[part].astype(np.float64) for part in (shows, ~shows))
            size = float(inside.mean() - outside.mean())
            # Without spread the error is 0, and the division needs a number
            error = float(np.sqrt(inside.var(ddof=1) / len(inside) + outside.var(ddof=1) / len(outside))) or 1e-9
            (name,) = context.named
            found.append(TrueEffect(getattr(context, name), size, size / error, float(outside.mean())))
        return found

    def _bias(self, weights: Path) -> nets.ToyboxNet:
        network = nets.load_net(weights)
        classes = network.vocabulary.classes
        # A copy, since the rows that are subtracted may have been changed already
        before = network.logits.weight.detach().clone()
        for noun, word in self.planted.items():
            network.logits.weight.data[classes.index(noun)] -= STRENGTH * before[classes.index(word)]
        return network.to(self._settings.device, self._precision)
