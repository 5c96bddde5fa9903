"""Images, what is remembered of them, and what makes, edits and describes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from workers.record.origins import Origin

if TYPE_CHECKING:
    from PIL.Image import Image

Json = Any
"""Whatever `json.dumps` takes. Only at the edge: rows, the wire, files."""

Progress = Callable[[str, int, int], None]
"""Called as `progress(what, done, total)` between steps of long work. May raise `Cancelled`."""


def no_progress(what: str, done: int, total: int) -> None:
    """The progress report nobody listens to."""


@dataclass(frozen=True)
class Picture:
    """An image and the scene behind it, where there is one."""

    image: Image
    scene: Json = None
    """Plain data from which its generator can draw the image again; None for mere pixels."""
    note: str = ""
    """What the maker wants to say of it, such as that it read the first words of a long prompt only."""
    refused: str = ""
    """Why nothing was drawn: the image is then one that stands for none."""


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

    What is known of a key is kept; only "external" gives way to something better known.
    """

    def remember(self, image: Image, provenance: Provenance, key: str = "") -> str:
        """Store the image and what is known of it; return its key, which the caller may give who has it already."""

    def recall(self, key: str) -> Provenance | None:
        """What is known of the image, None if nothing is."""

    def load(self, key: str) -> Image:
        """The image. Raises KeyError if it was never stored."""

    def png(self, key: str) -> bytes:
        """The image as PNG. Raises KeyError if it was never stored."""

    def expect(self, keys: Sequence[str]) -> None:
        """Say which keys are asked for next, so that what is known of them can be looked up at once."""


class ImageGenerator(Protocol):
    """May have `vocabulary`: what it can draw, in a sentence, if that is less than what can be said."""

    def generate(self, prompts: Sequence[str], seeds: Sequence[int], progress: Progress = no_progress) -> list[Picture]:
        """Draw one image for each prompt; the same prompt and seed give the same pixels.

        A prompt that cannot be drawn as it is said is refused in its `Picture`; the others are drawn. Raises
        Cancelled between steps.
        """


class GameEngine(Protocol):
    """Draws scenes from any view. May have `vocabulary`, as a generator.

    One that files add toys to has `extras`, what it alone can draw, in a sentence, "" if nothing; `problems`, a
    sentence about each file that it left out when it looked last; and `find_problems()`, the same after a look.
    """

    def render(
        self,
        prompts: Sequence[str],
        seeds: Sequence[int],
        parameters: Sequence[Mapping[str, float]],
        progress: Progress = no_progress,
    ) -> list[Picture]:
        """Draw one image for each prompt, with those of `record.engine_parameters` that are given beside it.

        Values are within the bounds of that table. The scene of each picture holds all that it was drawn with under
        "parameters". Refuses as a generator does, and what cannot be seen from there. Raises Cancelled.
        """


class ImageEditor(Protocol):
    """May have `vocabulary`: which changes it can make, in a sentence, if that is less than what can be said."""

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

    One that was made for some images alone has `refusal(scene)`: why it does not describe an image behind which is
    this scene, or None; "" if it does.
    """

    def describe(self, images: Sequence[Image]) -> list[str]:
        """One description for each image."""

    def summarize(self, images: Sequence[Image]) -> str:
        """What the images have in common."""
