"""Functions from a word to a word by a rule; most of them leave out a part of the inputs."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from workers.functions.black_box import Family, Truth
from workers.functions.words.rules import RULES, Rule
from workers.functions.words.triplets import PAIR_QUESTION, TRIPLETS, Triplet, shuffle_options, write_pair
from workers.functions.words.typed import DOMAIN, check_words

UNDEFINED = "undefined"
HINTS, _NEAR_HINTS = 10, 2
_TOLD_APART = 2
"""Number of words of a part without an output after which it counts as left out."""
_EXCEPTION_SHARE = 2 / 3
"""Of functions with an exception, as published: 50 of 75."""
_HELD_OUT = 3
"""One in this many pairs is held out: answers are judged on these, and baselines never try them."""
_FROM_EXCEPTION = 0.4
"""Of the right options, the share that shows the exception."""


@dataclass(frozen=True)
class RelationBox:
    """A function of words. See `BlackBox`."""

    key: str
    truth: Truth
    rule: Rule
    exception: str = ""
    """Name of the part of the rule for which it gives "undefined"; "" if there is none."""
    family: Family = "relations"
    question: str = PAIR_QUESTION

    def call(self, inputs: Sequence[str], number: int = 0) -> list[str]:  # noqa: ARG002 there is no noise
        """Return a word for each input, capitals aside; "undefined" where the rule has none."""
        return self.evaluate(inputs)

    def evaluate(self, inputs: Sequence[str]) -> list[str]:
        """Return what `call` returns."""
        # Case does not matter: models capitalise words at will
        return [self._table.get(word.casefold(), UNDEFINED) for word in check_words(inputs)]

    @cached_property
    def _table(self) -> dict[str, str]:
        parts = (part for name, part in self.rule.parts.items() if name != self.exception)
        return {given.casefold(): said for part in parts for given, said in part.items()}

    def draw_held_out(self) -> list[str]:
        """None: descriptions are judged."""
        return []

    def draw_hints(self) -> list[str]:
        """Return 10 words, two of them of the rule, as the published ones begin with."""
        rng = random.Random(f"{self.key}: hints")
        # Only words that a baseline tries, so that hints never show held-out ones
        own = [given for given in list_tried() if self._table.get(given.casefold())]
        near = rng.sample(own, min(_NEAR_HINTS, len(own)))
        words = [*near, *rng.sample([word for word in list_tried() if word not in own], HINTS - len(near))]
        rng.shuffle(words)
        return words

    def draw_triplets(self) -> list[Triplet]:
        """Return the 10 choices that answers are judged on, by the key: a pair that the function gives, and two that
        other rules give. So only the rule tells which is right, and not that words go together."""
        rng = random.Random(f"{self.key}: held out")
        return [self._draw_triplet(rng) for _ in range(TRIPLETS)]

    def _draw_triplet(self, rng: random.Random) -> Triplet:
        # 1. Held-out pairs: of the exception, and of the other parts
        left_out = list_held_out(self.rule, self.exception) if self.exception else []
        kept = [pair for part in self.rule.parts if part != self.exception for pair in list_held_out(self.rule, part)]
        # 2. Rules that take the same inputs are harder to tell from this one
        near = [each for each in RULES if each is not self.rule and each.inputs == self.rule.inputs]
        far = [each for each in RULES if each is not self.rule and each not in near]
        wrong = [self._draw_wrong(near or far, rng), self._draw_wrong(far, rng)]
        # 3. Some choices show the exception, or it could be left out of a description unpunished
        if left_out and rng.random() < _FROM_EXCEPTION:
            given, said = rng.choice(left_out)
            # The rule's own output is wrong there, and the most tempting option
            return shuffle_options(write_pair(given, UNDEFINED), [write_pair(given, said), wrong[0]], rng)
        return shuffle_options(write_pair(*rng.choice(kept)), wrong, rng)

    def _draw_wrong(self, rules: Sequence[Rule], rng: random.Random) -> str:
        """Return a pair of one of these rules that this function does not give."""
        pairs = rng.choice(rules).pairs.items()
        return write_pair(
            # Another rule may give the same output for a word, which would be right too
            *rng.choice([(given, said) for given, said in pairs if self._table.get(given.casefold()) != said])
        )


def list_held_out(rule: Rule, part: str) -> list[tuple[str, str]]:
    """Return pairs of a part that no baseline tries."""
    # By position in the table, so that held-out pairs never change
    return list(rule.parts[part].items())[_HELD_OUT - 1 :: _HELD_OUT]


def list_tried() -> list[str]:
    """Return the inputs that a baseline tries, of all rules, each once, in order."""
    # Held out in any rule: a word may occur in several
    held = {given for rule in RULES for part in rule.parts for given, _ in list_held_out(rule, part)}
    return list(dict.fromkeys(given for rule in RULES for given in rule.pairs if given not in held))


def create_relations(seed: int) -> RelationBox:
    """Return the function of a seed."""
    key = f"relations:{seed}"
    rng = random.Random(key)
    rule = rng.choice(RULES)
    exception = rng.choice(list(rule.parts)) if rng.random() < _EXCEPTION_SHARE else ""
    return RelationBox(key, describe_relation(rule, exception), rule, exception)


def describe_relation(rule: Rule, exception: str = "") -> Truth:
    """Return what a function of this rule is, in words and as code."""
    but = f" For {exception} it gives “{UNDEFINED}”, as for anything else." if exception else ""
    pairs = {
        given.casefold(): said for name, part in rule.parts.items() if name != exception for given, said in part.items()
    }
    lines = "".join(f"    {given!r}: {said!r},\n" for given, said in pairs.items())
    code = f"PAIRS = {{\n{lines}}}\n\n\ndef f(word):\n    return PAIRS.get(word.strip().casefold(), {UNDEFINED!r})\n"
    return Truth(code, f"It takes {rule.inputs} and gives {rule.words}.{but}", (rule.words,), DOMAIN)


def study_relations(call: Callable[[Sequence[str]], Sequence[str]]) -> tuple[str, str]:
    """Return the scripted baseline: it tries the inputs of all rules, names the rule that most outputs follow, and the
    part of it that gives "undefined". Returns a description and a domain."""
    tried = list_tried()
    return conclude_relation(dict(zip(tried, call(tried), strict=True))), DOMAIN


def conclude_relation(seen: Mapping[str, str]) -> str:
    """Return a description by what was seen: the rule, and a part of it of which two words or more were tried in
    vain."""

    def count(pairs: Mapping[str, str]) -> int:
        return sum(seen.get(given) == said for given, said in pairs.items())

    rule = max(RULES, key=lambda each: count(each.pairs))
    # No rule gives anything that was seen
    if not count(rule.pairs):
        return "Unknown: no known rule gives what was seen."
    # A part is silent if none of its words had an output and enough of them were tried
    silent = [
        name for name, part in rule.parts.items() if not count(part) and len(part.keys() & seen.keys()) >= _TOLD_APART
    ]
    return describe_relation(rule, silent[0] if silent else "").description
