"""Images, their provenance, and the parts that make, edit and describe them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from workers.record.origins import Origin

if TYPE_CHECKING:
    from PIL.Image import Image

Json = Any
"""Anything that `json.dumps` takes. Used only at the edges: rows, the wire, files."""

Progress = Callable[[str, int, int], None]
"""Called as `progress(what, done, total)` between steps of long work. May raise `Cancelled`."""


def no_progress(what: str, done: int, total: int) -> None:
    """Ignore a progress report."""


@dataclass(frozen=True)
class Picture:
    """An image and the scene behind it, where there is one."""

    image: Image
    scene: Json = None
    """Plain data from which its generator can draw the image again; None for mere pixels."""
    note: str = ""
    """A remark of the maker, for example that it read only the first words of a long prompt."""
    refused: str = ""
    """Why nothing was drawn: the image is then a placeholder."""


@dataclass(frozen=True)
class Provenance:
    """What the laboratory remembers of an image."""

    origin: Origin
    prompt: str = ""
    seed: int | None = None
    scene: Json = None
    raw: str | None = None
    """Key of the unmasked image, if this one is masked."""
    original: str | None = None
    """Key of the image this one was edited from."""


class ImageMemory(Protocol):
    """Remembers images by key (`lab.imaging.image_key`) across rounds and workers.

    What is known of a key is kept; only "external" is replaced by better knowledge.
    """

    def remember(self, image: Image, provenance: Provenance, key: str = "") -> str:
        """Store the image and what is known of it; return its key, which a caller that has it already may pass."""

    def recall(self, key: str) -> Provenance | None:
        """Return what is known of the image; None if nothing is."""

    def load(self, key: str) -> Image:
        """Return the image. Raises KeyError if it was never stored."""

    def png(self, key: str) -> bytes:
        """Return the image as PNG. Raises KeyError if it was never stored."""

    def expect(self, keys: Sequence[str]) -> None:
        """Announce the keys that are asked for next, so that they can be looked up at once."""


class ImageGenerator(Protocol):
    """May have `vocabulary`: what it can draw, in a sentence, if that is limited."""

    def generate(self, prompts: Sequence[str], seeds: Sequence[int], progress: Progress = no_progress) -> list[Picture]:
        """Draw one image for each prompt; the same prompt and seed give the same pixels.

        A prompt that cannot be drawn as worded is refused in its `Picture`; the others are drawn. Raises Cancelled
        between steps.
        """


class GameEngine(Protocol):
    """Draws scenes from any view. May have `vocabulary`, as a generator.

    An engine to which files add toys has `extras`, what only it can draw, in a sentence, "" if nothing; `problems`, a
    sentence about each file that it left out at its last look; and `find_problems()`, the same after a new look.
    """

    def render(
        self,
        prompts: Sequence[str],
        seeds: Sequence[int],
        parameters: Sequence[Mapping[str, float]],
        progress: Progress = no_progress,
    ) -> list[Picture]:
        """Draw one image for each prompt, with the given parameters of `record.engine_parameters`.

        Values are within the bounds of that table. The scene of each picture holds all parameters it was drawn with
        under "parameters". Refuses what a generator refuses, and what cannot be seen from that view. Raises Cancelled.
        """


class ImageEditor(Protocol):
    """May have `vocabulary`: which changes it can make, in a sentence, if that is limited."""

    def edit(
        self,
        originals: Sequence[Picture],
        instructions: Sequence[str],
        seeds: Sequence[int],
        progress: Progress = no_progress,
    ) -> list[Picture]:
        """Apply one instruction to each original; everything else in the image stays.

        An instruction that makes no sense for its image or cannot be carried out exactly is refused in its `Picture`,
        as is an image without the scene that the editor needs; the others are made. Raises Cancelled between steps.
        """


class Describer(Protocol):
    """Puts images into words, knowing nothing of the hypotheses. Looks at the bright region of masked images.

    A describer made for certain images has `refusal(scene)`: why it does not describe an image with this scene, or
    None, behind it; "" if it does.
    """

    def describe(self, images: Sequence[Image]) -> list[str]:
        """Return one description for each image."""

    def summarize(self, images: Sequence[Image]) -> str:
        """Say what the images have in common."""
