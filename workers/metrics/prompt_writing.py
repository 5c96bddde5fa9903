"""Write prompts from a label alone, for images that should activate its unit and for images that should not.

MAIA's predictive evaluation asks for 7 and 7 (Rott Shaham et al. 2024, section 4), SAIA for 10 and 10 that differ in
one attribute each (2510.21704). Used by label checks.
"""

from __future__ import annotations

from workers.metrics.quoting import DATA, quote, read_lines
from workers.protocols import Message, WrittenPrompts

COUNT = 7

WRITER = """\
You write prompts for a text-to-image model. They are to test a label, which says in a few words what one unit of a
vision network responds to. A positive prompt describes an image that shows exactly what the label says; a neutral
prompt one that shows nothing of it. Each prompt is one sentence of at most 25 words about one image that can be drawn
or photographed: what is seen, where, in which light. Vary all that the label leaves open. If the label names several
alternatives, let each have its share of the positive prompts; if it names a condition, every positive prompt meets it.
Neutral prompts are ordinary, varied scenes. Never name the label, the unit or the test."""

CONTRAST = """\
Write the neutral prompts as near misses: neutral prompt k is positive prompt k with one attribute changed, the one that
makes the label untrue of it, and everything else in the same words."""

_FORM = """\
Label: {label}

Write {positives} positive and {neutrals} neutral prompts, each in a line of its own, in this form and nothing else:
POSITIVE 1: ...
NEUTRAL 1: ..."""


def ask_for_prompts(
    label: str, positives: int = COUNT, neutrals: int = COUNT, *, vocabulary: str = "", contrast: bool = False
) -> list[Message]:
    """Return the conversation. `vocabulary` is what the generator can draw, "" for anything; `contrast` asks for
    near misses."""
    rules = [WRITER, DATA, *([CONTRAST] if contrast else [])]
    rules += [f"The text-to-image model is limited. {vocabulary}"] if vocabulary else []
    question = _FORM.format(label=quote(label), positives=positives, neutrals=neutrals)
    return [Message("system", ("\n\n".join(rules),)), Message("user", (question,))]


def parse_prompts(reply: str, positives: int = COUNT, neutrals: int = COUNT) -> WrittenPrompts | None:
    """Return the prompts of a reply; None unless there are as many different ones of each kind as requested."""
    sides = []
    for key, count in (("POSITIVE", positives), ("NEUTRAL", neutrals)):
        found = read_lines(reply, key)
        prompts = tuple(found.get(number, "") for number in range(1, count + 1))
        if not all(prompts) or len(set(prompts)) < count:
            return None
        sides.append(prompts)
    # A prompt on both sides would count for and against the label.
    return None if {*sides[0]} & {*sides[1]} else WrittenPrompts(*sides)
