"""The grammar of a reply: tags at the start of a line, each with its block; everything else is prose.

    [HYPOTHESIS LIST]:            [CODE]:                  [DESCRIPTION]: text
    Hypothesis_1: text            ```python                [LABEL]: text, or [LABEL 1]: text …
    Hypothesis_2: text [open]     …                        [REASONING]: text
    [HYPOTHESIS]: text            ```                      [BIAS]: text

The colon may be missing, case does not matter, bold or a heading around the tag is read through. A tag inside a fence
or in the middle of a line is a quotation. It does not run or judge anything. Called by `loop`, once for each reply.
Every step looks at each character a bounded number of times, since replies are hostile input.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from workers.agent.events import Conclusion, Fate, Hypothesis

MOST_HYPOTHESES = 50
MOST_LABELS = 20

_TAG = re.compile(
    r" {0,3}(?:#{1,6} {1,3})?[*_]{0,3}\[ {0,2}(HYPOTHESIS[ _]LIST|HYPOTHESIS|CODE|DESCRIPTION|LABEL|REASONING|BIAS)"
    r"[ _#]{0,3}[0-9]{0,3} {0,2}\][*_]{0,3} {0,3}:?[*_]{0,3}",
    re.IGNORECASE,
)
_FENCE = re.compile(r"([ \t]{0,8})(`{3,}+|~{3,}+)([^`]*)$")
_PYTHON = frozenset({"", "python", "python3", "py"})
_DEFINES = re.compile(r"^def (?:run_experiment|execute_command)\b", re.MULTILINE)

_ITEMS = (
    re.compile(r"(?:[-*+•] )?[*_]{0,2}Hypothesis[ _#]{0,2}([0-9]{1,4})[*_]{0,2} ?[:.)-][*_]{0,2}(.*)", re.IGNORECASE),
    re.compile(r"[*_]{0,2}([0-9]{1,4})[.):][*_]{0,2} (.*)"),
    re.compile(r"[-*+•]() (.*)"),
)
"""The forms of a line of a list. The first line of a list decides which form all its lines have."""

_FATE = re.compile(r"\[\s?(open|supported|refuted)\b", re.IGNORECASE)
_PLACEHOLDER = re.compile(r"<[^<>]*>")
_NO_LABEL = re.compile(
    r"(?:none|n/a|nothing|not applicable|no (?:single )?(?:label|concept)s?|dead (?:unit|neuron|channel))"
    r"(?: ?[(:;,.-].*)?",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True)
class Parsed:
    """What a reply says."""

    prose: str
    """The reply without its tagged blocks."""
    hypotheses: tuple[Hypothesis, ...] = ()
    code: str | None = None
    conclusion: Conclusion | None = None


@dataclass(frozen=True)
class _Fence:
    language: str
    body: str
    raw: tuple[str, ...]
    """The lines as written, fences included."""
    closed: bool


@dataclass
class _Block:
    tag: str
    """In capitals; empty for what stands before the first tag."""
    parts: list[str | _Fence] = field(default_factory=list)

    def fences(self) -> Iterator[_Fence]:
        return (part for part in self.parts if isinstance(part, _Fence))

    def lines(self, without: _Fence | None) -> list[str]:
        """The block as written, less the fence that is the program."""
        kept = [part for part in self.parts if part is not without]
        return [line for part in kept for line in ([part] if isinstance(part, str) else part.raw)]


def parse(text: str) -> Parsed:
    """Read a reply. Never raises: what has no meaning is prose."""
    blocks = _blocks(text)
    program = _program(blocks)
    prose: list[str] = []
    hypotheses: list[Hypothesis] = []
    told: dict[str, str] = {}
    labels: list[str] = []
    for block in blocks:
        lines = block.lines(without=program)
        if block.tag in ("DESCRIPTION", "REASONING", "BIAS"):
            told[block.tag] = _clean("\n".join(lines)) or told.get(block.tag, "")
            continue
        if block.tag == "LABEL":
            found, lines = _first_paragraph(lines)
            labels += _labels(found)
        elif block.tag.startswith("HYPOTHESIS"):
            listed, lines = _hypotheses(lines, alone=block.tag == "HYPOTHESIS")
            # A list replaces the list before it; single hypotheses add up.
            hypotheses = listed if listed and block.tag != "HYPOTHESIS" else hypotheses + listed
        prose += [*lines, ""]
    words = re.sub(r"\n{3,}", "\n\n", "\n".join(line.rstrip() for line in prose)).strip()
    return Parsed(words, _numbered(hypotheses), program.body if program else None, _conclusion(told, labels))


# --- blocks and fences ----------------------------------------------------------------------------


def _blocks(text: str) -> list[_Block]:
    blocks = [_Block("")]
    lines = iter(text.replace("\r\n", "\n").split("\n"))
    for line in lines:
        if match := _TAG.match(line):
            blocks.append(_Block(match.group(1).upper().replace("_", " ")))
            line = line[match.end() :]
        opening = _FENCE.match(line)
        blocks[-1].parts.append(_fence(opening, lines) if opening else line)
    return blocks


def _fence(opening: re.Match[str], lines: Iterator[str]) -> _Fence:
    """The fenced lines after an opening, taken from `lines`; an unclosed fence takes all that is left."""
    indent, marker, words = len(opening.group(1)), opening.group(2), opening.group(3).lower().split()
    raw, body, closed = [opening.group(0)], [], False
    for line in lines:
        raw.append(line)
        if closed := _closes(line, marker, indent):
            break
        body.append(line[min(indent, len(line) - len(line.lstrip())) :])
    return _Fence(words[0] if words else "", "\n".join(body), tuple(raw), closed)


def _closes(line: str, marker: str, indent: int) -> bool:
    """Whether a line ends a fence. One set deeper is part of the program, such as a fence in a docstring."""
    bare = line.strip()
    deeper = len(line) - len(line.lstrip()) - indent
    return deeper <= 3 and len(bare) >= len(marker) and not bare.strip(marker[0])


def _program(blocks: Sequence[_Block]) -> _Fence | None:
    """The first program behind a [CODE] tag, else the first one that cannot be anything else."""

    def usable(fence: _Fence) -> bool:
        return fence.closed and fence.language in _PYTHON and bool(fence.body.strip())

    tagged = (fence for block in blocks if block.tag == "CODE" for fence in block.fences() if usable(fence))
    untagged = (fence for block in blocks for fence in block.fences() if usable(fence) and _DEFINES.search(fence.body))
    return next(tagged, None) or next(untagged, None)


# --- hypotheses -----------------------------------------------------------------------------------


def _hypotheses(lines: Sequence[str], *, alone: bool) -> tuple[list[Hypothesis], list[str]]:
    """The list at the head of a block, and the lines that are not part of it.

    An item goes on until a blank line, the list until a line after it that is no item. `alone`: a block
    without a list is one hypothesis.
    """
    form = _form(lines)
    if form is None:
        found, rest = _first_paragraph(lines) if alone else ([], list(lines))
        words = " ".join(line.strip() for line in found)
        return ([_hypothesis(0, words)] if _clean(words) else []), rest
    before: list[str] = []
    items: list[tuple[int, list[str]]] = []
    gap = False
    for place, line in enumerate(lines):
        if match := form.match(line.strip()):
            items.append((int(match.group(1) or 0), [match.group(2)]))
        elif gap and line.strip():
            before += lines[place:]
            break
        elif items:
            items[-1][1].append(line)
        else:
            before.append(line)
        gap = bool(items) and not line.strip()
    found_items = [_hypothesis(number, " ".join(part.strip() for part in words)) for number, words in items]
    return [item for item in found_items if item.text], before


def _form(lines: Sequence[str]) -> re.Pattern[str] | None:
    """The form of the first line that has one."""
    return next((form for line in lines for form in _ITEMS if form.match(line.strip())), None)


def _hypothesis(number: int, words: str) -> Hypothesis:
    """A hypothesis and, in brackets at its end, what became of it."""
    text = words.strip()
    marks = list(_FATE.finditer(text)) if text.rstrip(".* ").endswith("]") else []
    if not marks:
        return Hypothesis(number, _clean(text))
    mark = marks[-1]
    fate: Fate = mark.group(1).lower()  # type: ignore[assignment]  # the expression allows these three alone
    reason = text[mark.end() :].rstrip(".* ").removesuffix("]").strip(" :,;-")
    return Hypothesis(number, _clean(text[: mark.start()]), fate, reason)


def _numbered(hypotheses: Sequence[Hypothesis]) -> tuple[Hypothesis, ...]:
    """The hypotheses with numbers that are given and unique."""
    taken: set[int] = set()
    numbered = []
    for each in hypotheses[:MOST_HYPOTHESES]:
        number = each.number if each.number and each.number not in taken else max(taken, default=0) + 1
        taken.add(number)
        numbered.append(Hypothesis(number, each.text, each.fate, each.reason))
    return tuple(numbered)


# --- conclusions ----------------------------------------------------------------------------------


def _first_paragraph(lines: Sequence[str]) -> tuple[list[str], list[str]]:
    """The lines up to the first blank one behind words, and the rest."""
    start = next((place for place, line in enumerate(lines) if line.strip()), len(lines))
    end = next((place for place in range(start, len(lines)) if not lines[place].strip()), len(lines))
    return list(lines[start:end]), list(lines[end:])


def _labels(paragraph: Sequence[str]) -> list[str]:
    """One label, or one for each line of a list; empty if it says that there is none."""
    form = _form(paragraph[:1])
    if form is None:
        return [_clean(" ".join(line.strip() for line in paragraph))]
    return [_clean(match.group(2)) for line in paragraph if (match := form.match(line.strip()))]


def _conclusion(told: dict[str, str], labels: Sequence[str]) -> Conclusion | None:
    """The conclusion, if there is one. Reasoning alone is none; "no label" is one, without a label."""
    given = [label for label in labels if label]
    if not (told.get("DESCRIPTION") or told.get("BIAS") or given):
        return None
    unique: dict[str, str] = {}
    for label in given:
        unique.setdefault(label.casefold(), label)
    kept = [label for label in unique.values() if not _NO_LABEL.fullmatch(label.strip("()[]'"))]
    return Conclusion(
        told.get("DESCRIPTION", ""), tuple(kept[:MOST_LABELS]), told.get("REASONING", ""), told.get("BIAS", "")
    )


def _clean(text: str) -> str:
    """The words without the marks around them; empty for a place-holder copied from the instructions."""
    bare = text.strip().removesuffix("---").strip(" \t\n*")
    if len(bare) > 1 and bare[0] == bare[-1] == '"':
        bare = bare[1:-1].strip()
    return "" if _PLACEHOLDER.fullmatch(bare) else bare
