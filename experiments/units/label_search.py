"""Find units of all models by their labels: by words, and by meaning if a worker can compare that.

By words: nearness is the share of the query's words in the label. Rare words count more, words with the same
beginning half; singular and plural are the same word. By meaning: a worker compares sentences, and pages poll for its
answer.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from django.core.cache import cache
from django.db.models import Q

from experiments.core import queue
from experiments.core.system_names import SystemNameMasker
from experiments.core.visibility import visible_to
from experiments.models import Label, Layer
from experiments.units import label_nearness
from experiments.units.label_groups import read_words
from experiments.units.tiles import Place, UnitTile, read_tiles

MAX_FOUND = 60
"""Maximum units found."""
COMPARED = 20_000
"""Maximum pairs of unit and label with one of the words that are compared, the newest."""
ASK_AGAIN = 15
"""Seconds after which a worker that has not answered is asked again."""
NEAR = 0.35
"""Minimum cosine for labels to be near in meaning."""
BEGINNING = 3
"""Minimum letters of a word's beginning."""


@dataclass(frozen=True)
class FoundUnit:
    """A unit, its nearest label, and that label's nearness, from 0 to 1."""

    tile: UnitTile
    nearness: float
    text: str


def find_by_words(typed: str, names: SystemNameMasker, most: int = MAX_FOUND) -> list[FoundUnit]:
    """Return the units with the nearest labels, nearest first; equal ones by better check."""
    words = read_words(typed)
    if not words:
        return []
    # The database selects by any word; the exact nearness is computed here. Stems match plurals as substrings.
    meant = reduce(or_, (Q(label__text__icontains=word) for word in words))
    pairs = list(_read_pairs(meant, names)[:COMPARED])
    # By text, since many units share a label.
    texts = {text: read_words(text) for _, _, text in pairs}
    weights = _weigh(words, texts.values())
    nearness = {text: _compare(words, said, weights) for text, said in texts.items()}
    return _list_found(pairs, nearness, names, most)


def _read_pairs(meant: Q, names: SystemNameMasker) -> Sequence[tuple[int, int, str]]:
    """Return layer, number and label of each pair of unit and label that `meant` selects and that is not hidden."""
    rows = visible_to(Label.units.through.objects.filter(meant)).exclude(names.are_hidden("label__run__"))
    hidden = names.are_hidden_at("unit__layer__model__name", "unit__layer__name", "unit__number")
    # Newest first, so that the limit drops the oldest.
    found = rows.exclude(hidden).filter(unit__members__isnull=True).order_by("-pk")  # circuits are found by name
    return found.values_list("unit__layer_id", "unit__number", "label__text")  # type: ignore[return-value]


def _weigh(words: Iterable[str], labels: Iterable[Iterable[str]]) -> dict[str, float]:
    """Return the weight of each word: the rarer among the labels, the higher."""
    some = list(labels)
    often = Counter(word for label in some for word in label)
    # Inverse document frequency; the ones keep it positive and finite for words in all labels, or in none.
    return {word: math.log(1 + (1 + len(some)) / (1 + often[word])) for word in words}


def _compare(words: Iterable[str], said: frozenset[str], weights: Mapping[str, float]) -> float:
    """Return the share of the query that a label contains; less if the label has many other words."""
    shares = {word: _find_share(word, said) for word in words}
    found = sum(weights[word] * share for word, share in shares.items()) / sum(weights.values())
    # A short label about the same is nearer than a long one that also mentions it: length decides a fifth.
    return found * (0.8 + 0.2 * min(1.0, len(shares) / max(len(said), 1)))


def _find_share(word: str, said: frozenset[str]) -> float:
    if word in said:
        return 1.0
    # Shorter beginnings match too much.
    begins = len(word) >= BEGINNING and any(other.startswith(word) for other in said)
    return 0.5 if begins else 0.0


def _list_found(
    pairs: Iterable[tuple[int, int, str]], nearness: Mapping[str, float], names: SystemNameMasker, most: int
) -> list[FoundUnit]:
    """Return the units of these pairs, each with its nearest label."""
    best: dict[Place, tuple[float, str]] = {}
    for layer, number, text in pairs:
        near = nearness.get(text, 0.0)
        if near > best.get((layer, number), (0.0, ""))[0]:
            best[layer, number] = near, text
    # Cut before the tiles are read, which cost queries; the place makes the order of equals stable.
    first = sorted(best.items(), key=lambda item: (-item[1][0], item[0]))[:most]
    layers = Layer.objects.select_related("model").in_bulk({layer for (layer, _), _ in first})
    tiles = read_tiles([(layers[layer], number) for (layer, number), _ in first], names)
    found = [FoundUnit(tile, near, text) for tile, (_, (near, text)) in zip(tiles, first, strict=True)]
    # Units without a check come last: r is -1 at least.
    return sorted(found, key=lambda each: (-each.nearness, -(each.tile.r if each.tile.r is not None else -1)))


# --- by meaning -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Meant:
    """A worker's answer: `waiting` until it has answered, `problem` if it cannot compare meanings."""

    found: Sequence[FoundUnit] = ()
    waiting: bool = False
    problem: str = ""


def find_by_meaning(typed: str, names: SystemNameMasker, most: int = MAX_FOUND) -> Meant:
    """Return the units whose labels are near in meaning; the first call asks a worker."""
    if not typed.strip():
        return Meant()
    answer = label_nearness.read_answer(typed)
    if answer is None:
        asked = label_nearness.put_question(typed)
        # Of all pages that poll for an answer, only one asks, again after a while.
        if cache.add(f"asked-for-meaning:{asked}", True, ASK_AGAIN):
            queue.ask_for("compare_labels", asked)
        return Meant(waiting=True)
    nearness = {text: near for text, near in answer.near if near >= NEAR}
    if not nearness:
        return Meant(problem=answer.problem)
    pairs = list(_read_pairs(Q(label__text__in=list(nearness)), names)[:COMPARED])
    return Meant(_list_found(pairs, nearness, names, most))
