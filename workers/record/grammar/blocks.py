"""Split a reply into blocks: the text after each tag, with complete fences, and the model's thoughts separately.

    [TAG]: at the start of a line, with any markup around it; the colon may be missing
    Final answer: [TAG]: after the end of a clause, or after another tag of the same line; the colon is required

A tag inside a fence, quotation marks, backticks, a block quotation or the middle of a clause is a quotation. Text
between <think> and </think> is not part of the reply. Replies are hostile input, so every step looks at each
character a bounded number of times.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

THINKING = "THINKING"
CONCLUDING = frozenset({"DESCRIPTION", "LABEL", "LABELS", "REASONING", "BIAS", "DOMAIN"})
_NAME = (
    r"\[ {0,2}(HYPOTHESIS[ _]LIST|HYPOTHESES|HYPOTHESIS|CODE|DESCRIPTION|LABELS?|REASONING|BIAS|DOMAIN)"
    # Numbers such as [LABEL 1]
    r"[ _#]{0,3}[0-9]{0,3} {0,2}\][*_]{0,3} {0,3}"
)
_AT_START = re.compile(rf" {{0,3}}(?:#{{1,6}} {{1,3}}|[-+*\u2022] )?[*_]{{0,3}}{_NAME}:?[*_]{{0,3}}", re.IGNORECASE)
_WITHIN = re.compile(rf"[*_]{{0,3}}{_NAME}:[*_]{{0,3}}", re.IGNORECASE)
# What may come before a tag in the middle of a line
_CLAUSE_ENDS = frozenset(":.!?;-\u2013\u2014)\u2022\u2192>")
FENCE = re.compile(r"([ \t]{0,8})(`{3,}+|~{3,}+)([^`]*)$")
_THOUGHT = re.compile(r"^[ \t]{0,3}<(think|thinking|thought|reasoning)>", re.IGNORECASE | re.MULTILINE)
_THOUGHT_BEGUN = re.compile(r"<(think|thinking|thought|reasoning)>", re.IGNORECASE)
_THOUGHT_ENDS = re.compile(r"</(?:think|thinking|thought|reasoning)>[ \t]*$", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True)
class Fence:
    language: str
    body: str
    raw: tuple[str, ...]
    """The lines as written, with both fence lines."""
    closed: bool


@dataclass
class Block:
    tag: str
    """In capitals; empty for text before the first tag, THINKING for thoughts."""
    parts: list[str | Fence] = field(default_factory=list)
    """Lines and fences in order."""

    def lines(self, without: frozenset[int] = frozenset()) -> list[str]:
        """Return the block as written, without the parts at these positions."""
        kept = [part for place, part in enumerate(self.parts) if place not in without]
        return [line for part in kept for line in ([part] if isinstance(part, str) else part.raw)]


def cut_blocks(text: str) -> tuple[list[Block], list[str]]:
    """Return the blocks of a reply in order, the first without a tag, and the tags in the middle of a clause, which
    count as words.

    Never raises.
    """
    # The first block has no tag, for prose before any
    blocks, quoted = [Block("")], list[str]()
    for thought, piece in split_thoughts(text.replace("\r\n", "\n")):
        if thought:
            blocks += [Block(THINKING, list(piece.split("\n"))), Block("")]
        else:
            lines = piece.split("\n")
            at, may_end = 0, True
            while at < len(lines):
                # 1. Tags in the line: each but the first follows a clause
                pieces = list(_split_line(lines[at], blocks[-1].tag, quoted))
                for place, (tag, words) in enumerate(pieces):
                    if tag:
                        blocks.append(Block(tag))
                    if place < len(pieces) - 1:
                        blocks[-1].parts += [words] if words.strip() else []
                at += 1
                # 2. What is left of the line may open a fence
                opening = FENCE.match(pieces[-1][1])
                if opening:
                    fence, at = read_fence(opening, lines, at, may_end)
                    may_end = may_end and fence.closed  # a second search for the end of a fence could take too long
                    blocks[-1].parts.append(fence)
                else:
                    blocks[-1].parts.append(pieces[-1][1])
    return blocks, quoted


def split_thoughts(text: str) -> Iterator[tuple[bool, str]]:
    """Yield pieces of the text and whether each is a thought. A thought without an end is ordinary text."""
    # A closing mark without its opening, searched once
    first = _THOUGHT_ENDS.search(text)
    place = 0
    if first and not _THOUGHT_BEGUN.search(text, 0, first.start()):  # some models begin in mid-thought
        place = first.end()
        yield True, text[:place]
    for opening in _THOUGHT.finditer(text, place):
        # An opening inside a thought that was read already
        if opening.start() < place:
            continue
        end = re.compile(rf"</{opening[1]}>", re.IGNORECASE).search(text, opening.end())
        if end is None:
            break
        yield False, text[place : opening.start()]
        yield True, text[opening.start() : end.end()]
        place = end.end()
    yield False, text[place:]


# --- tags -----------------------------------------------------------------------------------------


def _split_line(line: str, within: str, quoted: list[str]) -> Iterator[tuple[str, str]]:
    """Split a line at the tags that count. Yields each tag with the words after it, "" for words before the first."""
    # A tag at the start needs no colon
    match = _AT_START.match(line)
    tag, start = (_name_tag(match), match.end()) if match else ("", 0)
    place, marks = start, _Marks()
    # Block quotations hold no tags
    for each in _WITHIN.finditer(line, start) if not line.lstrip().startswith(">") else ():
        before, place = line[place : each.start()], each.end()
        # Inside quotation marks a tag is a quotation
        if marks.enclose(before):
            continue
        # Between tags of a conclusion, no end of a clause is needed: "[DESCRIPTION]: a dog [LABEL]: dog"
        concludes = within in CONCLUDING and _name_tag(each) in CONCLUDING
        if not (tag or concludes or _is_clause_end(before)):
            quoted.append(_name_tag(each))
            continue
        yield tag, line[start : each.start()]
        tag, start = _name_tag(each), each.end()
    yield tag, line[start:]


def _name_tag(match: re.Match[str]) -> str:
    name = match.group(1).upper().replace("_", " ")
    return "HYPOTHESIS LIST" if name == "HYPOTHESES" else name


def _is_clause_end(before: str) -> bool:
    return before.rstrip(" \t*_")[-1:] in _CLAUSE_ENDS if before.strip() else False


class _Marks:
    """Counts which quotation marks are open, from the start of a line."""

    def __init__(self) -> None:
        self._straight = self._ticks = self._curly = 0

    def enclose(self, words: str) -> bool:
        """Read more words; return True if the text after them is inside quotation marks or backticks."""
        self._straight += words.count('"')
        self._ticks += words.count("`")
        # Never below 0: a closing mark may come without its opening
        self._curly = max(0, self._curly + words.count("\u201c") - words.count("\u201d"))
        return bool(self._straight % 2 or self._ticks % 2 or self._curly or words.endswith(("'", "\u2018")))


# --- fences ---------------------------------------------------------------------------------------


def read_fence(opening: re.Match[str], lines: Sequence[str], at: int, may_end: bool) -> tuple[Fence, int]:
    """Return the fence whose opening is before line `at`, and the line after it.

    An unclosed fence extends to the end, or to the first tag if `may_end` is set.
    """
    # The info string may hold more than the language
    indent, marker, words = len(opening.group(1)), opening.group(2), opening.group(3).lower().split()
    end = next((n for n in range(at, len(lines)) if _is_closing(lines[n], marker, indent)), None)
    closed = end is not None
    # No end: up to the first tag, if the text may still be searched
    if end is None:
        tags = (n for n in range(at, len(lines)) if may_end and _WITHIN.match(lines[n].lstrip()))
        end = next(tags, len(lines))
    # The indent of the fence is removed from its body, as far as each line has it
    body = [line[min(indent, len(line) - len(line.lstrip())) :] for line in lines[at:end]]
    after = end + 1 if closed else end
    raw = (opening.group(0), *lines[at:after])
    return Fence(words[0] if words else "", "\n".join(body), raw, closed), after


def _is_closing(line: str, marker: str, indent: int) -> bool:
    """True if the line ends the fence. A more indented one is part of the program, such as a fence in a docstring."""
    bare = line.strip()
    deeper = len(line) - len(line.lstrip()) - indent
    return deeper <= 3 and len(bare) >= len(marker) and not bare.strip(marker[0])
