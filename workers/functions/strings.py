"""Functions of texts: one text in, one text out; half are an atom, half are two in a row."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from workers.functions.atoms import compile_function, draw_atom, draw_one
from workers.functions.black_box import Family, Truth, check_texts
from workers.functions.string_atoms import STRING_ATOMS
from workers.functions.words.triplets import PAIR_QUESTION, Triplet, shuffle_options, write_pair

HELD_OUT = 10
"""Texts that answers are scored on."""

_COMPOSED_SHARE = 0.5
_MAX_CHARS = 1_000
_MAX_TRIES = 20
_OTHERS = 1_000
"""Functions that wrong options are drawn from."""
DOMAIN = f"printable texts of at most {_MAX_CHARS:,} characters"
_WANTED = f"{DOMAIN}, such as ['abc', 'Two words']"
_TEXT = """
apple Banana river Stone kettle window Garden letter summer Winter little yellow Orange basket butter coffee
Mississippi committee tree Queen rhythm area Europe ocean idea Street lantern sailor Pencil travel north South
museum noon level 7up B52 route66 x-ray don't well-known naïve café Übung señor Прага δέλτα 東京
"""
_WORDS = tuple(_TEXT.split())
_ENDINGS = ("", "", "", "!", "?", ".", " 42", " 2024", ", ok")


@dataclass(frozen=True)
class StringBox:
    """A function of texts. See `BlackBox`."""

    key: str
    truth: Truth
    family: Family = "strings"
    question: str = PAIR_QUESTION

    def call(self, inputs: Sequence[str], number: int = 0) -> list[str]:  # noqa: ARG002 there is no noise
        """Return f of each input, printable texts of at most 1,000 characters."""
        return self.evaluate(inputs)

    def evaluate(self, inputs: Sequence[str]) -> list[str]:
        """Return what `call` returns."""
        return [self._function(text) for text in check_strings(inputs)]

    def draw_held_out(self) -> list[str]:
        """Return 10 texts. At least one is not returned unchanged, unless the function changes none of 200."""
        rng = random.Random(f"{self.key}: held out")
        texts: list[str] = []
        for _ in range(_MAX_TRIES):
            texts = [_draw_text(rng) for _ in range(HELD_OUT)]
            if self.evaluate(texts) != texts:
                break
        return texts

    def draw_hints(self) -> list[str]:
        """Return 10 texts of the same kind, none of which is held out."""
        rng = random.Random(f"{self.key}: hints")
        drawn = (_draw_text(rng) for _ in range(2 * HELD_OUT))
        # Twice as many are drawn, since repetitions and held-out texts are left out
        return [text for text in dict.fromkeys(drawn) if text not in self.draw_held_out()][:HELD_OUT]

    def draw_triplets(self) -> list[Triplet]:
        """Return the 10 choices that descriptions are judged on: a held-out text with what the function gives, and two
        with what others give and this one does not."""
        rng = random.Random(f"{self.key}: choices")
        right = zip(self.draw_held_out(), self.evaluate(self.draw_held_out()), strict=True)
        return [
            shuffle_options(write_texts(given, said), [self._draw_wrong(rng), self._draw_wrong(rng)], rng)
            for given, said in right
        ]

    def _draw_wrong(self, rng: random.Random) -> str:
        """Return a text with the output of another function."""
        # Another function may give the same for this text: then it is no wrong option
        while True:
            text, other = _draw_text(rng), create_strings(rng.randrange(_OTHERS))
            said = other.evaluate([text])
            if said != self.evaluate([text]):
                return write_texts(text, said[0])

    @cached_property
    def _function(self) -> Callable[[str], str]:
        return compile_function(self.truth.code)


def create_strings(seed: int) -> StringBox:
    """Return the function of texts of a seed. Two atoms in a row have different names."""
    key = f"strings:{seed}"
    rng = random.Random(key)
    box = _draw_box(key, rng)
    # Drawn anew from the same source, so the result still follows from the seed
    while _is_constant(box, rng):
        box = _draw_box(key, rng)
    return box


def check_strings(inputs: Any) -> Sequence[str]:
    """Return the inputs, printable texts of at most 1,000 characters. Raises ToolMisuse."""
    return check_texts(inputs, _WANTED, _MAX_CHARS)


def write_texts(given: str, said: str) -> str:
    """Return the text in quotation marks, since blanks count."""
    return write_pair(json.dumps(given, ensure_ascii=False), json.dumps(said, ensure_ascii=False))


def _draw_box(key: str, rng: random.Random) -> StringBox:
    atoms = [draw_atom(STRING_ATOMS, rng)]
    if rng.random() < _COMPOSED_SHARE:
        others = tuple(atom for atom in STRING_ATOMS if atom.name != atoms[0].name)
        atoms.append(draw_atom(others, rng))
    lines = [f"    s = {atom.code}\n" for atom in atoms[:-1]]
    code = f"def f(s):\n{''.join(lines)}    return {atoms[-1].code}\n"
    words = ", then ".join(atom.words for atom in atoms)
    return StringBox(key, Truth(code, f"{words[0].upper()}{words[1:]}.", tuple(atom.name for atom in atoms), DOMAIN))


def _is_constant(box: StringBox, rng: random.Random) -> bool:
    """True for pairs such as "the longest word, then the number of words": there is nothing to find out."""
    return len(set(box.evaluate([_draw_text(rng) for _ in range(2 * HELD_OUT)]))) == 1


def _draw_text(rng: random.Random) -> str:
    """Return one to five words, some in capitals, some followed by digits or a mark."""
    # `random()` alone, whose values do not change between versions of Python
    words = [draw_one(_WORDS, rng) for _ in range(1 + int(5 * rng.random()))]
    words = [word.upper() if rng.random() < 0.15 else word for word in words]
    return " ".join(words) + draw_one(_ENDINGS, rng)
