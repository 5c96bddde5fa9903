"""Find words in a label that say what must be absent.

Judges that match words with images score such a label as its opposite, so they refuse it.
"""

from __future__ import annotations

import re

NEGATIONS = frozenset(
    (
        *("no", "not", "without", "unless", "except", "excepting", "absence", "absent", "lack", "lacks", "lacking"),
        *("never", "neither", "nor", "none", "nothing", "excluding", "excludes", "exclude", "devoid", "hardly"),
        "scarcely",
    )
)
ALL_BUT = re.compile(
    r"\b(?:anything|everything|everywhere|all|any [^\W\d_]+|every [^\W\d_]+|other) (?:but|than)\b", re.IGNORECASE
)


def find_negations(label: str) -> tuple[str, ...]:
    """Return the negating words of a label, in lower case."""
    # 1. Phrases of several words, which single words would miss
    found = [match.group(0).casefold() for match in ALL_BUT.finditer(label)]
    # 2. Single words: letters only, so that punctuation does not hide them
    words = re.findall(r"[^\W\d_]+", label.casefold())
    return tuple(dict.fromkeys([*found, *(word for word in words if word in NEGATIONS)]))
