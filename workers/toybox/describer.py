"""Describe toybox images with toybox-describer, without knowing the hypotheses. Loaded through the registry.

`workers.toybox.networks.detection` finds the toys; this module writes the sentences.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from PIL.Image import Image

from workers.errors import ToolMisuse
from workers.lab.imaging import image_key
from workers.model_cache import map_in_batches
from workers.protocols import Json, LabSettings
from workers.toybox.networks import nets
from workers.toybox.networks.detection import DetectedScene, detect_scenes
from workers.toybox.world.prompts import caption
from workers.toybox.world.scenes import WHEN, Scene, Thing

_BATCH = 32
_REMEMBERED = 64
"""Number of images whose scenes are cached."""
_MAX_SHARED = 8
"""Maximum number of parts of a summary."""
_MAX_AROUND = 4
"""Maximum number of these parts that are outside the bright regions."""


def load(settings: LabSettings) -> ToyboxDescriber:
    """Return the describer with its committed weights. Raises MachineryError if they are missing."""
    return ToyboxDescriber(nets.DESCRIBER_FILE, settings)


class ToyboxDescriber:
    """See `protocols.Describer`. Safe for threads."""

    def __init__(self, weights: Path, settings: LabSettings) -> None:
        # So small a network runs on the processor everywhere.
        self._eyes = settings.model_cache.slot("toybox-describer", lambda: nets.load_eyes(weights))
        with self._eyes as eyes:
            self._words = eyes.vocabulary
        self._seen: dict[str, DetectedScene] = {}

    def refusal(self, scene: Json) -> str:
        """Return why an image with this scene, or without one, is not described; "" if it is. The network has seen
        only toys."""
        try:
            Scene.from_json(scene)
        # Foreign scenes and no scene are refused alike
        except ToolMisuse:
            return (
                "toybox-describer has only ever seen pictures that toybox drew, and would take all else for toys. "
                "Describe images that tools.text2image, tools.edit_images or tools.dataset_exemplars gave with toybox; "
                "log others and look at them. A vision-language model as the agent describes images of every kind."
            )
        return ""

    def describe(self, images: Sequence[Image]) -> list[str]:
        """Return texts such as "a large red ball and two small blue cars on snow at night", in words that toybox can
        draw again."""
        return [describe_scene(seen) for seen in self._look(images)]

    def summarize(self, images: Sequence[Image]) -> str:
        """Return a text such as "13 of 15 show something red; 9 of 15 show a ball; 4 of 15 are at night", most common
        first.

        For masked images, the end says what is outside the bright regions of several of them.
        """
        return summarize_scenes(self._look(images), self._words)

    def _look(self, images: Sequence[Image]) -> list[DetectedScene]:
        """Return what the images show. Programs often describe images and then summarize them, so the last ones are
        cached."""
        # Keyed by content: programs pass copies of the same image
        keys = [image_key(image) for image in images]
        remembered = self._seen  # read once: while the eyes look, other threads put others in its place
        new = {key: image for key, image in zip(keys, images, strict=True) if key not in remembered}
        with self._eyes as eyes:
            found = map_in_batches(list(new.values()), _BATCH, lambda batch: detect_scenes(eyes, batch))
        seen = remembered | dict(zip(new, found, strict=True))
        # The newest are kept, because dicts keep the order of insertion
        self._seen = dict(list(seen.items())[-_REMEMBERED:])
        return [seen[key] for key in keys]


def describe_scene(seen: DetectedScene) -> str:
    """Describe one scene in words."""
    # Positions are unknown and not said: `caption` uses the words alone
    things = tuple(Thing(thing.noun, thing.colour, thing.size, 0.0, 0.0) for thing in seen.things)
    return caption(Scene(things, seen.ground, seen.light))


def summarize_scenes(scenes: Sequence[DetectedScene], words: nets.Vocabulary) -> str:
    """Return what at least two of the scenes share, or all that a single scene has, then the same for the outside."""
    if not scenes:
        return "There are no images."
    shared = _find_shared([seen.words for seen in scenes], words)[:_MAX_SHARED]
    around = _find_shared([frozenset(thing.noun for thing in seen.around) for seen in scenes], words)[:_MAX_AROUND]
    inside = "; ".join(shared) if shared else f"The {len(scenes)} images have nothing in common."
    return f"{inside.rstrip('.')}. Outside the bright regions: {'; '.join(around)}" if around else inside


def _find_shared(seen: Sequence[frozenset[str]], words: nets.Vocabulary) -> list[str]:
    """Return which words several of them have, most common first."""
    counts = Counter(word for each in seen for word in each)
    # A single image shares all with itself; of several, two make a common part
    shared = [(word, counts[word]) for word in words.classes if counts[word] >= min(2, len(seen))]
    # Stable, so that equally common words keep the order of the vocabulary
    shared.sort(key=lambda pair: -pair[1])
    return [f"{count} of {len(seen)} {_write_word(word, words)}" for word, count in shared]


def _write_word(word: str, words: nets.Vocabulary) -> str:
    if word in words.lights:
        return f"are {WHEN.get(word, word)}"
    if word in words.grounds:
        return f"are on {word}"
    return f"show something {word}" if word in words.colours else f"show a {word}"
