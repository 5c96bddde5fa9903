"""The grammar of a reply: tags with their blocks; everything else is prose. Parsing is tolerant: see `blocks`,
`programs`.

    [HYPOTHESIS LIST]:            [CODE]:                  [DESCRIPTION]: text
    Hypothesis_1: text            ```python                [LABEL]: text, or [LABEL 1]: text …
    H2: text [open]               …                        [LABELS]: text, text
    [HYPOTHESIS]: text            ```                      [REASONING]: text
                                                           [BIAS]: text
                              [DOMAIN]: text; a [CODE] beside it that calls no tool is an answer, not a program

Remarks on ambiguous parts go to the author: `Parsed.readings`. Nothing is run or judged here. `loop` calls this once
for each reply.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from workers.record.grammar.blocks import CONCLUDING, THINKING, cut_blocks
from workers.record.grammar.dialects import translate
from workers.record.grammar.programs import NO_TAG, find_program, is_answer
from workers.record.replies import Conclusion, Hypothesis, HypothesisStatus

# Replies are hostile input: every expression and loop below looks at each character a bounded number of times.
MAX_HYPOTHESES = 50
MAX_LABELS = 20

_MARK = r"(?: ?([\[(] ?(?:open|supported|refuted)\b[^\])]{0,200}[\])]))?"
_ITEMS = (
    re.compile(
        rf"(?:[-*+•] )?[*_]{{0,2}}(?:Hypothesis|Hyp\.?|H)[ _#]{{0,2}}([0-9]{{1,4}})[*_]{{0,2}}{_MARK}"
        r" ?[:.)\u2013\u2014-][*_]{0,2}(.*)",
        re.IGNORECASE,
    ),
    re.compile(r"[*_]{0,2}([0-9]{1,4})[.):][*_]{0,2}() (.*)"),
    re.compile(r"[-*+•]()() (.*)"),
)
"""Forms of a list item: number, status, words. The first item of a list determines the form of all its items."""

_FATE = re.compile(
    r"(?P<square>\[)\s?(?:(?:supported|refuted)\b|open\s?(?=[\]:;,.\u2013\u2014-]|$))"
    r"|(?P<round>\()\s?(?:supported|refuted)\b"
    r"|(?:[\u2013\u2014\u2192-]|->)\s?[*_]{0,2}(?:supported|refuted)\b(?=[*_]{0,2}\s?(?:[:;,.(\[]|by\b|at\b|$))",
    re.IGNORECASE,
)
_WORD = re.compile(r"open|supported|refuted", re.IGNORECASE)
_SEPARATORS = " \t:,;.*_\u2013\u2014-"
_PLACEHOLDER = re.compile(r"<[^<>]*>")
_NO_LABEL = re.compile(
    r"(?:none|n/a|nothing|not applicable|no (?:single )?(?:label|concept)s?|dead (?:unit|neuron|channel))"
    r"(?: ?[(:;,.-].*)?",
    re.IGNORECASE | re.DOTALL,
)
_SENTENCE_ENDS = re.compile(r"(?:[a-z]{3}|[A-Z]{4})[\"\u201d\u2019')]{0,2}[.!][\"\u201d\u2019')]{0,2}(?= {1,3}[A-Z])")
"""Matches a sentence end inside a label; "St. Bernard dogs" has none."""
# Marks of a model's own format, and counts such as (n = 5), are no words of a label
_HANGS_ON = re.compile(
    r"</\w{1,20}>$|<\|[^<>|]{1,40}\|>$|^<(?:final_)?(?:answer|labels?)>(?=.)"  # marks of an end, and of a beginning
    r"|(?<=\S) ?\(n ?= ?\d[^()]{0,80}\)\.?$"
    r"|(?<=[a-z]{3})\.$|(?<=[A-Z]{4})\.$|(?<=[a-z]{3}[\"\u201d\u2019')])\.$"
)
_QUOTES = ('""', "''", "``", "\u201c\u201d", "\u2018\u2019", "\u201e\u201c", "\u00ab\u00bb")
_LISTED = re.compile(r'(?:"[^"]*"|\([^()]*\)|[^,;])+')


@dataclass(frozen=True)
class Parsed:
    """The content of a reply."""

    prose: str
    """The reply without its tagged blocks."""
    hypotheses: tuple[Hypothesis, ...] = ()
    code: str | None = None
    conclusion: Conclusion | None = None
    tags: tuple[str, ...] = ()
    """The tags of the conclusion that have text. LABEL is included if the text says that there is none."""
    reasoning: str = ""
    """The model's thoughts, separate from its reply."""
    readings: tuple[str, ...] = ()
    """Remarks for the author on how ambiguous parts were read."""

    @property
    def says_something(self) -> bool:
        """True if there is a program or a conclusion."""
        return self.code is not None or self.conclusion is not None


def parse(text: str) -> Parsed:
    """Parse a reply, in another dialect if the grammar finds nothing. Never raises: text without meaning is prose."""
    plain = _parse(text)
    if plain.says_something and NO_TAG not in plain.readings:
        return plain
    # 1. Only if the grammar finds nothing: a reply that quotes another dialect must not be changed.
    translated, remarks = translate(text)
    if not remarks:
        return plain
    # 2. The translation counts only if it finds more than the grammar did.
    found = _parse(translated)
    if plain.says_something and (found.code != plain.code or found.conclusion):  # a fence that says enough by itself
        return plain
    return replace(found if found.says_something else plain, readings=(*remarks, *found.readings))


def _parse(text: str) -> Parsed:
    blocks, quoted = cut_blocks(text)
    program = find_program(blocks)
    prose: list[str] = []
    hypotheses: list[Hypothesis] = []
    by_tag: dict[str, list[str]] = {}
    thoughts: list[str] = []
    for number, block in enumerate(blocks):
        # Lines of the program are not words of the block that it was found in.
        lines = block.lines(without=program.taken.get(number, frozenset()))
        if block.tag == THINKING:
            thoughts.append("\n".join(lines).strip())
            continue
        if block.tag in ("DESCRIPTION", "REASONING", "BIAS", "DOMAIN"):
            by_tag.setdefault(block.tag, []).append(_clean("\n".join(lines)))
            continue
        if block.tag in ("LABEL", "LABELS"):
            labels, lines = _label_lines(lines, several=block.tag == "LABELS")
            by_tag.setdefault("LABEL", []).extend(_labels(labels, several=block.tag == "LABELS"))
        elif block.tag.startswith("HYPOTHESIS"):
            listed, lines = _hypotheses(lines, alone=block.tag == "HYPOTHESIS")
            # A list replaces the list before it; single hypotheses add up.
            hypotheses = listed if listed and block.tag != "HYPOTHESIS" else hypotheses + listed
        prose += [*lines, ""]
    words = re.sub(r"\n{3,}", "\n\n", "\n".join(line.rstrip() for line in prose)).strip()
    code = program.code
    # An answer about a function has code as well, but calls no tool.
    if code is not None and any(by_tag.get("DOMAIN", ())) and is_answer(code):
        by_tag["CODE"], code = [code], None
    conclusion = _conclusion(by_tag)
    # Tags that were taken for words, where they may have been meant
    missed = dict.fromkeys(tag for tag in quoted if code is None and (not conclusion or tag in CONCLUDING))
    unread = [f"[{tag}] stood in the middle of a sentence and was read as words of it." for tag in missed]
    readings = [*program.remarks, *unread, *_list_left_out(hypotheses, by_tag)]
    tags = tuple(tag for tag, parts in by_tag.items() if any(parts))
    return Parsed(words, _number_hypotheses(hypotheses), code, conclusion, tags, "\n\n".join(thoughts), tuple(readings))


def _list_left_out(hypotheses: Sequence[Hypothesis], by_tag: dict[str, list[str]]) -> list[str]:
    given = ("hypotheses", len(hypotheses), MAX_HYPOTHESES), ("labels", len(by_tag.get("LABEL", ())), MAX_LABELS)
    return [f"Only the first {most} of your {count} {what} were kept." for what, count, most in given if count > most]


# --- hypotheses -----------------------------------------------------------------------------------


def _hypotheses(lines: Sequence[str], *, alone: bool) -> tuple[list[Hypothesis], list[str]]:
    """Return the list at the start of a block, and the lines that are not part of it.

    An item ends at a blank line. With `alone`, a block without a list is one hypothesis.
    """
    # A block without any form of list
    form = _form(lines)
    if form is None:
        found, rest = _split_first_paragraph(lines) if alone else ([], list(lines))
        words = " ".join(line.strip() for line in found)
        return ([_hypothesis(0, words)] if _clean(words) else []), rest
    before: list[str] = []
    items: list[tuple[int, list[str]]] = []
    gap = False
    for place, line in enumerate(lines):
        # 1. A new item
        if match := form.match(line.strip()):
            items.append((int(match.group(1) or 0), [match.group(3), match.group(2) or ""]))
        # 2. Words after a blank line end the list
        elif gap and line.strip():
            before += lines[place:]
            break
        # 3. A line that continues the last item; its status stays last
        elif items:
            items[-1][1].insert(-1, line)
        # 4. Words before the first item
        else:
            before.append(line)
        gap = bool(items) and not line.strip()
    found_items = [_hypothesis(number, " ".join(part.strip() for part in words)) for number, words in items]
    return [item for item in found_items if item.text], before


def _form(lines: Sequence[str]) -> re.Pattern[str] | None:
    """Return the form of the first line that has one."""
    return next((form for line in lines for form in _ITEMS if form.match(line.strip())), None)


def _hypothesis(number: int, words: str) -> Hypothesis:
    """Parse a hypothesis and its status: "text [refuted: why]", "text (refuted: why) why", "text - REFUTED: why"."""
    # 1. Find the mark of its status
    text = words.strip()
    mark, end = None, 0
    # The last mark counts: a model may tell how the status changed.
    for each in _FATE.finditer(text):
        if each.start() >= end:  # none inside the brackets of another
            mark, end = each, _end_of_mark(text, each)
    if mark is None:
        return Hypothesis(number, _clean(text))
    # 2. What is inside the brackets is the reason, what is before them the text
    bracketed = bool(mark["square"] or mark["round"])
    inside = text[mark.end() : end].rstrip(".* ").removesuffix(")" if mark["round"] else "]")
    before, after = _clean(text[: mark.start()]), text[end:].strip(_SEPARATORS)
    if bracketed and not before:  # the mark comes first
        before, after = _clean(after), ""
    word = _WORD.search(mark.group())
    assert word
    status: HypothesisStatus = word.group().lower()  # type: ignore[assignment]  # the expression allows these three alone
    # 3. Words after the mark belong to the reason
    reason = "; ".join(part for part in (inside.strip(" :,;-\u2013\u2014*_"), after) if part)
    return Hypothesis(number, before, status, reason)


def _end_of_mark(text: str, mark: re.Match[str]) -> int:
    """Return where the brackets of a mark close; the end of the text if they do not or there are none."""
    # Brackets inside the reason must not end it
    opening, closing = "[]" if mark["square"] else "()"
    if not (mark["square"] or mark["round"]):
        return len(text)
    depth = 1
    for place in range(mark.end(), len(text)):
        depth += (text[place] == opening) - (text[place] == closing)
        if not depth:
            return place + 1
    return len(text)


def _number_hypotheses(hypotheses: Sequence[Hypothesis]) -> tuple[Hypothesis, ...]:
    """Return the hypotheses with unique numbers."""
    taken: set[int] = set()
    numbered = []
    for each in hypotheses[:MAX_HYPOTHESES]:
        # Numbers that occur twice, or are missing, continue after the highest.
        number = each.number if each.number and each.number not in taken else max(taken, default=0) + 1
        taken.add(number)
        numbered.append(Hypothesis(number, each.text, each.status, each.reason))
    return tuple(numbered)


# --- conclusions ----------------------------------------------------------------------------------


def _split_first_paragraph(lines: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the lines up to the first blank one after words, and the rest."""
    start = next((place for place, line in enumerate(lines) if line.strip()), len(lines))
    end = next((place for place in range(start, len(lines)) if not lines[place].strip()), len(lines))
    return list(lines[start:end]), list(lines[end:])


def _label_lines(lines: Sequence[str], *, several: bool) -> tuple[list[str], list[str]]:
    """Return the lines that hold labels, and the rest. A line that starts in lower case continues a label."""
    found, rest = _split_first_paragraph(lines)
    if several or _form(found[:1]):
        return found, rest
    # The next line in upper case is a sentence of prose
    end = next((place for place, line in enumerate(found) if place and line.strip()[:1].isupper()), len(found))
    label = " ".join(line.strip() for line in found[:end])
    # One label is one phrase: a second sentence is prose
    cut = _SENTENCE_ENDS.search(label)
    return (
        ([label[: cut.end()]], [label[cut.end() :].strip(), *found[end:], *rest])
        if cut
        else ([label], found[end:] + rest)
    )


def _labels(paragraph: Sequence[str], *, several: bool) -> list[str]:
    """Return one label, or one for each item of a list. With `several`, one for each line and each comma-separated
    part."""
    form = _form(paragraph[:1])
    if form:
        return [_clean_label(match.group(3)) for line in paragraph if (match := form.match(line.strip()))]
    if not several:
        return [_clean_label(" ".join(line.strip() for line in paragraph))]
    return [label for line in paragraph for part in _LISTED.findall(line) if (label := _clean_label(part))]


def _conclusion(by_tag: dict[str, list[str]]) -> Conclusion | None:
    """Return the conclusion, or None. Reasoning alone is none; "no label" is a conclusion without label."""
    # The same text twice, as some models repeat it, counts once
    texts = {tag: "\n\n".join(dict.fromkeys(part for part in parts if part)) for tag, parts in by_tag.items()}
    if not (texts.get("DESCRIPTION") or texts.get("BIAS") or texts.get("LABEL")):
        return None
    unique: dict[str, str] = {}
    for label in filter(None, by_tag.get("LABEL", ())):
        # Labels that differ only in case are one.
        unique.setdefault(label.casefold(), label)
    # Only now: "none" is a conclusion, but no label
    kept = [label for label in unique.values() if not _NO_LABEL.fullmatch(label.strip("()[]'"))]
    own = {name: texts.get(name.upper(), "") for name in ("description", "reasoning", "bias", "domain", "code")}
    return Conclusion(labels=tuple(kept[:MAX_LABELS]), **own)


def _clean_label(text: str) -> str:
    """Remove what models add to a label: end marks, counts, quotation marks, a full stop."""
    label = _clean(text)
    for _ in range(4):  # they may be nested
        before = label
        label = _HANGS_ON.sub("", label).strip()
        # Quotation marks around the whole only: "a" or "b" keeps its own
        if len(label) > 1 and label[0] + label[-1] in _QUOTES and label[0] not in label[1:-1]:
            label = label[1:-1].strip()
        if label == before:
            break
    return label


def _clean(text: str) -> str:
    """Remove the marks around the words. Returns "" for a placeholder copied from the instructions."""
    bare = text.strip().removesuffix("---").strip(" \t\n*")
    if len(bare) > 1 and bare[0] == bare[-1] == '"':
        bare = bare[1:-1].strip()
    return "" if _PLACEHOLDER.fullmatch(bare) else bare
