"""Ask a vision-language model, a few images at a time, whether images show what a label says.

Used by label checks. `judge_error` measures how often such a judge errs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from workers.metrics.quoting import DATA, quote, read_lines
from workers.protocols import ImagePart, Message

MAX_IMAGES = 8
"""Maximum number of images in one message."""

LOOKER = """\
You judge whether images show what a short description says. Judge each image by itself and by what can be seen in it
alone. If the description names alternatives, one of them is enough; if it names a condition, it must be met too. For
each image say how likely it is, from 0 to 100 percent, that a person who looks closely would agree that the description
holds: 0 for certainly not, 100 for certainly. Answer with one line for each image and nothing else:
IMAGE 1: ..."""

MARKED = """\
In each image one part is bright, with a red line around it, and the rest is dimmed. Judge what that part alone shows: a
thing that only the dimmed rest shows does not count."""

_SAID = re.compile(r"(?:(yes|no)\b[\s,;:(]*)?(?:(\d{1,3}(?:\.\d+)?)\s*(?:%|percent)?)?\)?", re.IGNORECASE)


def ask_for_presence(label: str, images: Sequence[str], *, marked: bool = False) -> list[Message]:
    """Return the conversation about 1 to `MAX_IMAGES` images by key, or about their bright parts if they are `marked`.

    Raises ValueError for another number of images.
    """
    if not 1 <= len(images) <= MAX_IMAGES:
        raise ValueError(f"{len(images)} images in one question: ask about 1 to {MAX_IMAGES} at a time.")
    parts: list[str | ImagePart] = [f"Description: {quote(label)}"]
    for number, key in enumerate(images, 1):
        parts += [f"Image {number}:", ImagePart(key, f"image {number}")]
    said = f"{LOOKER}\n\n{MARKED}" if marked else LOOKER
    # The model knows neither the unit nor its activations, so that its answers can be compared with them.
    return [
        Message("system", (f"{said}\n\n{DATA}",)),
        Message("user", (*parts, f"Answer for images 1 to {len(images)}.")),
    ]


def parse_presence(reply: str, count: int) -> list[float | None]:
    """Return the probability in [0, 1] for each image; None for an unreadable answer. "yes" and "no" count as 1 and
    0."""
    found = read_lines(reply, "IMAGE")
    # By number, since models skip images or answer them in another order.
    return [_read_answer(found.get(number, "")) for number in range(1, count + 1)]


def _read_answer(text: str) -> float | None:
    said = _SAID.fullmatch(text.strip(" .*_`"))
    if said is None or not (said[1] or said[2]):
        return None
    word = (said[1] or "").casefold()
    if said[2] is None:
        return float(word == "yes")
    chance = float(said[2]) / 100
    # A number below 1 could be a share or a percentage; a yes below 50 contradicts itself.
    torn = (word == "yes" and chance < 0.5) or (word == "no" and chance > 0.5)
    return None if torn or chance > 1 or 0 < chance < 0.01 else chance
