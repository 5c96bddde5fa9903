"""Toybox's generator with planted failures: sometimes it draws something else than asked, without saying so.

Text-to-image models fail like this. The paper compares generators (section 4.3); here the error rate is known.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from workers.protocols import LabSettings, Picture, Progress, no_progress
from workers.toybox.images import ToyboxGenerator
from workers.toybox.world.prompts import read_prompt
from workers.toybox.world.scenes import CHOICES
from workers.toybox.world.words import plural, read_words

SHARE = 0.3
"""Share of prompts and seeds drawn with one word changed, if one can be: a noun, colour, size or ground."""


def load(settings: LabSettings) -> FlawedGenerator:  # noqa: ARG001  every factory takes the settings
    """Return the generator. It needs nothing from the installation."""
    return FlawedGenerator()


class FlawedGenerator(ToyboxGenerator):
    """Prompt and seed determine which prompts fail, so the same two give the same pixels."""

    def generate(self, prompts: Sequence[str], seeds: Sequence[int], progress: Progress = no_progress) -> list[Picture]:
        """See `protocols.ImageGenerator`. Prompts that toybox cannot draw are refused, as by its own generator."""
        changed = [plant_failure(prompt, seed) for prompt, seed in zip(prompts, seeds, strict=True)]
        return super().generate(changed, seeds, progress)


def plant_failure(prompt: str, seed: int) -> str:
    """Return the prompt to draw: the same, or for `SHARE` of prompts and seeds with one word changed."""
    # Only prompt and seed decide, so that a repetition fails in the same way
    rng = random.Random(f"planted failure {seed} {prompt}")
    reading = read_prompt(prompt, seed)
    if rng.random() >= SHARE or reading.ignored or not reading.understood:
        return prompt
    # Some changes make no difference, or a prompt that cannot be drawn: the first that works is taken
    for other in _change_words(prompt, rng):
        found = read_prompt(other, seed)
        if not found.ignored and found.scene != reading.scene:
            return other
    return prompt


def _change_words(prompt: str, rng: random.Random) -> Iterator[str]:
    """Yield the prompt with one word replaced by another of its kind, in random order."""
    words = list(read_words(prompt))
    places = [place for place, word in enumerate(words) if word.kind in ("noun", "colour", "size", "ground")]
    for place in rng.sample(places, len(places)):
        word = words[place]
        other = rng.choice([value for value in CHOICES[word.kind] if value != word.value])
        texts = [each.text for each in words]
        texts[place] = plural(other) if word.plural else other
        yield " ".join(texts)
