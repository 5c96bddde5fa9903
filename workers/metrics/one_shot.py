"""The baseline labeller: sees the exemplars of a unit once and labels it, as MILAN does (Hernandez et al. 2022)."""

from __future__ import annotations

from collections.abc import Sequence

from workers.metrics.quoting import read_line
from workers.protocols import ImagePart, Message

LABELLER = """\
You label units of vision networks. You are shown the images of a dataset that excite one unit most. In each a red line
encloses the region that drives the unit; it is bright, and the rest is dimmed. Say in one phrase of at most twelve
words what the bright regions have in common: what the unit responds to. If it responds to either of two things, join
them by OR; if only where another is there too, say "a ..., when a ... is also in the image". Answer with one line:
LABEL: ..."""

_MAX_LABEL_CHARS = 200
"""Maximum length of a label."""


def ask_for_label(masked: Sequence[str], activations: Sequence[float] = ()) -> list[Message]:
    """Return the conversation with the keys of masked exemplars, best first, and optionally their activations.

    Raises ValueError without exemplars, because there is nothing to derive a label from.
    """
    if not masked:
        raise ValueError("A unit without exemplars cannot be labelled by them: choose one that some image excites.")
    told = [f", activation {value:.2f}" for value in activations] or [""] * len(masked)
    images = [
        ImagePart(key, f"exemplar {rank}{value}") for rank, (key, value) in enumerate(zip(masked, told, strict=True), 1)
    ]
    # The key is what is sent; the rank in the caption tells the order.
    return [Message("system", (LABELLER,)), Message("user", (*images, "What does the unit respond to?"))]


def parse_one_label(reply: str) -> str | None:
    """Return the label of a reply; None if it has none in the requested form, or one that is too long for a phrase."""
    label = read_line(reply, "LABEL")
    # A longer text is an explanation, not a label.
    return label if label and len(label) <= _MAX_LABEL_CHARS else None
