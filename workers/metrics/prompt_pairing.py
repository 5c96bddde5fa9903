"""Choose from a pool of prompts those that a label entails most and least: MAIA's pooled comparison.

The pool has prompts written from all methods' labels (Rott Shaham et al. 2024, section 4). The model that chooses sees
no image.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from workers.metrics.quoting import DATA, quote, read_line
from workers.protocols import Message

COUNT = 7

PAIRER = """\
You are given a label, which says in a few words what one unit of a vision network responds to, and a numbered list of
descriptions of images. Judge by the words alone which of these images the unit would respond to if the label were true,
and how strongly. Choose the {count} that the label entails most and the {count} that it entails least; no number twice.
Think in at most three sentences. Then end with two lines, the numbers separated by commas, the clearest first:
MOST: ...
LEAST: ..."""


@dataclass(frozen=True)
class PairedPrompts:
    """Positions in the pool from 0, clearest first."""

    most: tuple[int, ...]
    least: tuple[int, ...]


def ask_for_pairing(label: str, pool: Sequence[str], count: int = COUNT) -> list[Message]:
    """Return the conversation. Raises ValueError if the pool is too small for two choices of `count`."""
    if len(pool) < 2 * count:
        raise ValueError(f"{len(pool)} prompts are too few to choose {count} and {count}: pool more, or choose fewer.")
    lines = [f"{number}. {quote(prompt)}" for number, prompt in enumerate(pool, 1)]
    question = "\n".join([f"Label: {quote(label)}", "", "Descriptions:", *lines])
    # It is not told whose labels and prompts it reads, so it cannot favour one.
    return [Message("system", (f"{PAIRER.format(count=count)}\n\n{DATA}",)), Message("user", (question,))]


def parse_pairing(reply: str, pool: int, count: int = COUNT) -> PairedPrompts | None:
    """Return the choices from a pool of this size; None unless there are `count` valid numbers for each."""
    sides = [_read_numbers(read_line(reply, key)) for key in ("MOST", "LEAST")]
    every = [number for side in sides for number in side]
    # A prompt cannot be entailed both most and least.
    whole = all(len(side) == count for side in sides) and len({*every}) == len(every)
    if not whole or not all(1 <= number <= pool for number in every):
        return None
    # Prompts are numbered from 1 in the question.
    most, least = (tuple(number - 1 for number in side) for side in sides)
    return PairedPrompts(most, least)


def _read_numbers(line: str) -> list[int]:
    """Return the numbers of a list; empty if the line contains anything else."""
    # Words between the numbers mean that it is no list.
    plain = re.sub(r"\band\b|[\s,;#\[\].]+", " ", line).split()
    return [int(word) for word in plain] if all(re.fullmatch(r"[0-9]{1,4}", word) for word in plain) else []
