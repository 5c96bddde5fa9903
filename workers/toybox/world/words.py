"""The words that toybox understands, and the splitting of text into them. Has synonyms and plurals, but no grammar.

Takes any text, in linear time. Used by `prompts`, `edits` and `concepts`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

from workers.toybox.world.scenes import CHOICES, COLOURS, GROUNDS, LIGHTS, NOUNS, SIZES

Property = Literal["noun", "colour", "size", "ground", "light"]
Kind = Property | Literal["thing", "count", "relation", "side", "and", "or", "not", "stop", "unknown"]


@dataclass(frozen=True)
class Word:
    """One or several words of a text with one meaning."""

    kind: Kind
    value: str
    """The word of the vocabulary that it means: "sphere" is a "ball"; a count is "1" and so on."""
    text: str
    """As written, in lower case."""
    plural: bool = False


SYNONYMS: Mapping[str, str] = {
    # nouns
    "ball": "sphere, orb, globe",
    "cube": "box, block",
    "cone": "traffic cone",
    "cylinder": "pillar, drum, barrel",
    "ring": "torus, donut, doughnut, hoop",
    "star": "",
    "pyramid": "",
    "car": "automobile, auto, taxi, sedan, race car, toy car",
    "train": "locomotive, steam train, steam engine, steam locomotive, toy train",
    "boat": "ship, sailboat, sailing boat, sail boat, sailing ship, yacht, toy boat",
    "rocket": "spaceship, spacecraft, space ship, rocket ship, toy rocket",
    "house": "home, cottage, hut, building",
    "tree": "fir, pine, fir tree, pine tree, christmas tree",
    "mushroom": "toadstool",
    "snowman": "snow man",
    "duck": "duckling, rubber duck, toy duck",
    "chair": "seat",
    "table": "desk",
    "cup": "mug, teacup, tea cup, coffee cup, coffee mug",
    "robot": "android, droid, toy robot",
    # colours
    "red": "crimson, scarlet",
    "orange": "amber, tangerine",
    "yellow": "gold, golden, lemon",
    "green": "emerald, lime, olive",
    "blue": "azure, navy, cobalt",
    "purple": "violet, lilac, lavender",
    "pink": "rose, magenta",
    "brown": "chocolate",
    "white": "ivory",
    "black": "ebony",
    # sizes
    "small": "little, tiny, mini, miniature, smaller",
    "large": "big, huge, giant, enormous, larger, bigger, great",
    # grounds
    "grass": "lawn, meadow, turf, field, grassy",
    "sand": "beach, desert, sandy",
    "snow": "snowy, snowfield",
    "water": "sea, ocean, lake, river, pond, pool, waves",
    "wood": "parquet, planks, floorboards, wooden floor, wood floor, wooden planks, wooden boards, wood planks",
    "brick": "bricks, brick floor, brick paving, bricks paving",
    "carpet": "rug, carpeting",
    "tiles": "tile, tiled floor, tile floor, tiled, checkerboard, chessboard, checkered floor",
    # lights
    "day": "daylight, daytime, noon, midday, sunny, sunlight, sunshine",
    "sunset": "dusk, evening, sundown, twilight, dawn, sunrise",
    "night": "nighttime, night time, midnight, moonlight, moonlit, nightfall, starry night, in the dark, after dark",
}
"""Every word of the vocabulary with its synonyms."""

_COUNTS = {
    "1": "a, an, one, single, 1",
    "2": "two, 2, pair of, a pair of, couple of, a couple of",
    "3": "three, 3, trio of, a trio of",
}
_MANY = "four, five, six, seven, eight, nine, ten, eleven, twelve, twenty, hundred, dozen"
_THINGS = "thing, object, toy, item, something, everything, all"
_STOP = """
the this that these those is are was be being been there here it its of in at by to with into onto from for over i
s t we you me my us he she they them show shows showing shown draw render make create generate give want please let
see picture pictures photo photograph image images scene scenes view drawing rendering illustration empty plain
some several few many couple very really just also then which who while as where colour color coloured colored
colours colors size sized shape shaped background ground floor foreground sky time during lying lies sitting sits
standing stands placed put floating
"""


_TOKEN = re.compile(
    r"(?:\d+|one|two|three|four|five|six)[-\u2010\u2011][^\W\d_]+"  # "five-pointed" and "3D" count nothing
    r"|\d+[^\W\d_]+|\d+\.\d+|[^\W\d_]+|\d+|[,;/|]"
)


@dataclass(frozen=True)
class Lexicon:
    """Phrases and their meanings, and the number of words of the longest."""

    phrases: Mapping[str, Word]
    longest: int


def read_words(text: str, lexicon: Lexicon | None = None) -> tuple[Word, ...]:
    """Split the text into words and phrases, longest first. Unknown words are kept as "unknown".

    The lexicon is toybox's own unless another is given.
    """
    known_phrases = lexicon or _LEXICON
    tokens = _TOKEN.findall(text.casefold())
    words: list[Word] = []
    position = 0
    while position < len(tokens):
        for length in range(min(known_phrases.longest, len(tokens) - position), 0, -1):
            if known := known_phrases.phrases.get(" ".join(tokens[position : position + length])):
                words.append(known)
                break
        else:
            token, length = tokens[position], 1
            many = Word("count", "many", token[:30], plural=True)
            words.append(many if token.isdecimal() else Word("unknown", token, token[:30]))
        position += length
    return tuple(words)


def split_words(words: Iterable[Word], parts: Callable[[Word], bool]) -> list[list[Word]]:
    """Split the words at each that `parts` accepts."""
    found: list[list[Word]] = [[]]
    for word in words:
        if parts(word):
            found.append([])
        else:
            found[-1].append(word)
    return found


def plural(noun: str) -> str:
    """Return the plural of a noun."""
    if noun.endswith(("snowman", " man")):
        return noun[:-2] + "en"
    return noun + ("es" if noun.endswith(("s", "x", "sh", "ch")) else "s")


def join_words(words: Iterable[str]) -> str:
    """Return a list such as "one, two and three"."""
    head = list(words)
    return " and ".join([", ".join(head[:-1]), head[-1]] if len(head) > 1 else head)


# --- nouns that files add ---------------------------------------------------------------------------


def list_plurals(noun: str) -> list[str]:
    """Return the possible plurals of an added noun: "cherries" and "cherrys", "tomatoes" and "tomatos"."""
    found = [plural(noun)]
    if noun.endswith("y"):
        found.append(f"{noun[:-1]}ies")
    if noun.endswith("o"):
        found.append(f"{noun}es")
    if noun.endswith(("f", "fe")):
        found.append(f"{noun.removesuffix('e')[:-1]}ves")
    return found


def explain_clash(noun: str) -> str:
    """Return why a noun cannot be added because prompts with it already have a meaning; "" if it can.

    A name of several words that a toy has besides its own, such as "traffic cone", may be replaced.
    """
    phrases = _LEXICON.phrases
    for name in [noun, *list_plurals(noun)]:
        known = phrases.get(name)
        if known and not (known.kind == "noun" and " " in name):
            return f"{name!r} is a word of toybox's own, for the {known.kind} {known.value!r}"
    if all(word in phrases for word in noun.split()):
        return f"{noun!r} is made of words of toybox's own, so that prompts with it mean something already"
    return ""


@lru_cache(maxsize=8)
def add_nouns(nouns: tuple[str, ...]) -> Lexicon:
    """Return toybox's words with these nouns, which must be free of clashes."""
    phrases = dict(_LEXICON.phrases)
    for noun in nouns:
        phrases |= {name: Word("noun", noun, name, plural=True) for name in list_plurals(noun)}
        phrases[noun] = Word("noun", noun, noun)
    return _measure(phrases)


def describe_vocabulary() -> str:
    """Describe what can be said in toybox, in one paragraph for a message."""
    return (
        f"Toybox knows these toys: {join_words(NOUNS)}; colours: {join_words(COLOURS)}; sizes: {join_words(SIZES)}; "
        f"grounds: {join_words(GROUNDS)}; lights: {join_words(LIGHTS)}; counts up to three; on, left of, right of. "
        "For example: two red balls and a small blue car on snow at night."
    )


def _split(names: str) -> list[str]:
    return [name.strip() for name in names.split(",") if name.strip()]


def _lexicon() -> dict[str, Word]:
    """Return phrase -> meaning."""
    lexicon = {word: Word("stop", word, word) for word in _STOP.split()}
    for kind in get_args(Property):
        for value in CHOICES[kind]:
            for name in [value, *_split(SYNONYMS[value])]:
                lexicon[name] = Word(kind, value, name)
                if kind == "noun":
                    lexicon[plural(name)] = Word(kind, value, plural(name), plural=True)
    for number, names in _COUNTS.items():
        lexicon |= {name: Word("count", number, name, plural=number != "1") for name in _split(names)}
    lexicon |= {name: Word("count", "many", name, plural=True) for name in _split(_MANY)}
    for name in _split(_THINGS):
        lexicon[name] = Word("thing", "thing", name, plural=name in {"everything", "all"})
        lexicon[plural(name)] = Word("thing", "thing", plural(name), plural=True)
    lexicon |= {name: Word("relation", "on", name) for name in ("on", "upon", "atop", "on top of", "onto")}
    for side in ("left", "right"):
        places = [f"{way} the {side}{end}" for way in ("to", "on", "at") for end in ("", " side")]
        lexicon |= {name: Word("side", side, name) for name in places}
        lexicon |= {f"{name} of": Word("relation", side, f"{name} of") for name in [side, *places]}
    lexicon |= {
        name: Word("and", "and", name) for name in ("and", "plus", ",", ";", "with", "beside", "next to", "near")
    }
    lexicon |= {name: Word("or", "or", name) for name in ("or", "/", "|")}
    lexicon |= {name: Word("not", "not", name) for name in ("no", "not", "without")}
    return lexicon


def _measure(phrases: Mapping[str, Word]) -> Lexicon:
    return Lexicon(phrases, max(len(phrase.split()) for phrase in phrases))


_LEXICON = _measure(_lexicon())
