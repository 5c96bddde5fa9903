"""Search over all that was asked, thought, programmed, printed, shown and concluded: substrings, in any language.

`find` gives a page of passages, `runs_matching` runs and `images` observations by words. Whoever writes texts calls
`passages.keep…`.
"""

from experiments.search.finding import Found, Scope, WrongCursor, find, images
from experiments.search.opinions import keep_tags_within
from experiments.search.passages import (
    Passages,
    Ready,
    Text,
    Written,
    keep,
    keep_gists,
    keep_label,
    keep_questions,
    title_of,
    write,
)
from experiments.search.runs import runs_matching
from experiments.search.words import Words, read

__all__ = [
    "Found",
    "Passages",
    "Ready",
    "Scope",
    "Text",
    "Words",
    "Written",
    "WrongCursor",
    "find",
    "images",
    "keep",
    "keep_gists",
    "keep_label",
    "keep_questions",
    "keep_tags_within",
    "read",
    "runs_matching",
    "title_of",
    "write",
]
