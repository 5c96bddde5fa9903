"""Translate other reply formats of some models into the grammar, if the grammar finds nothing to do in a reply.

    <tool_call>{"name": …, "arguments": {"code": …}}</tool_call>       <function_calls><invoke><parameter name="code">…
    ```tool_code                ```json {"label": …}                   CODE: and LABEL: without brackets, in capitals

Each starts a line of the reply; elsewhere they are quotations, like tags.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from workers.record.grammar import calls
from workers.record.grammar.blocks import FENCE, Fence, read_fence, split_thoughts
from workers.record.replies import FunctionCall

NO_BRACKETS = "Tags without brackets, such as CODE: or LABEL:, were read as tags. Write [CODE]: and [LABEL]:."
_CALL_FENCES = frozenset({"tool_code", "tool_call", "tool_calls", "tool_use", "function_call", "tool"})
_BARE_TAG = re.compile(
    r" {0,3}(?:#{1,6} )?\*{0,2}(HYPOTHESIS LIST|HYPOTHESES|CODE|DESCRIPTION|LABELS?(?: \d{1,2})?|REASONING|BIAS)"
    r"\*{0,2}:\*{0,2}(?=\s|$)"
)
_MARKUP = re.compile(
    r"\s{0,8}<((?:antml:)?(?:function_calls|invoke)|tool_calls?|function_call|tool_use|tool_code)\b[^<>\n]{0,200}>"
)
_CALL_BEGINS = re.compile(r"<(?:antml:)?(?:invoke\b|function=)")
_PARAMETER = re.compile(r"<(?:antml:)?parameter(?:=| name=)[\"']?([\w-]{1,60})[\"']?>")
_PARAMETER_ENDS = re.compile(r"</(?:antml:)?(?:parameter|invoke|function)")
_MARKS = re.compile(
    r"</?(?:antml:)?(?:function_calls|invoke|tool_calls?|function_call|tool_use|tool_code)\b[^<>\n]{0,200}>"
)


@dataclass
class _Translation:
    lines: list[str] = field(default_factory=list)
    remarks: dict[str, None] = field(default_factory=dict)
    """In order of first occurrence."""
    open_marks: set[str] = field(default_factory=set)
    """Marks without an end in the text. Searching for it again could take too long."""

    def add_call(self, read: str, raw: Sequence[str]) -> None:
        """Add what a call was read as, or the raw call if that is empty."""
        self.lines += ["", *read.split("\n"), ""] if read else raw
        self.remarks[calls.READ if read else calls.UNREAD] = None


def translate(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the reply in the grammar, and remarks for its author. Without remarks, nothing was translated."""
    made = _Translation()
    # Line ends of Windows would stay at the ends of lines
    for thought, piece in split_thoughts(text.replace("\r\n", "\n")):
        if thought:
            # A thought is kept as it is: what looks like a call in it is a quotation.
            made.lines += piece.split("\n")
        elif (bare := piece.strip()).startswith("{") and bare.endswith("}") and (read := calls.read_object(bare)):
            made.add_call(read, ())
        else:
            _translate_lines(piece.split("\n"), made)
    return "\n".join(made.lines), tuple(made.remarks)


def _translate_lines(lines: Sequence[str], made: _Translation) -> None:
    at, may_end = 0, True
    while at < len(lines):
        line = lines[at]
        at += 1
        if opening := FENCE.match(line):
            # Inside any other fence a call is a quotation too.
            # An unclosed fence may end at a tag only until the first one did, else the search could take too long
            fence, at = read_fence(opening, lines, at, may_end)
            may_end = may_end and fence.closed
            _translate_fence(fence, made)
        elif mark := _MARKUP.match(line):
            at = _translate_markup(mark, lines, at, made)
        elif tag := _BARE_TAG.match(line):
            made.remarks[NO_BRACKETS] = None
            made.lines.append(f"[{tag[1]}]:{line[tag.end() :]}")
        else:
            made.lines.append(line)


def _translate_fence(fence: Fence, made: _Translation) -> None:
    if fence.language in _CALL_FENCES:
        # A fence for calls may hold JSON, or a program itself
        made.add_call(calls.read_object(fence.body) or calls.read_call(FunctionCall("", fence.body)), fence.raw)
    elif fence.language in ("json", "") and (read := calls.read_object(fence.body)):
        made.add_call(read, fence.raw)
    else:
        made.lines += fence.raw


def _translate_markup(mark: re.Match[str], lines: Sequence[str], at: int, made: _Translation) -> int:
    """Translate the text between a mark, on the line before `at`, and its end. Returns the line after that."""
    closing = f"</{mark[1]}>"
    first = mark.string[mark.end() :]
    end = at - 1
    if closing not in first:
        # Searched once for each kind of mark, or a reply full of opened marks would take very long.
        known = closing not in made.open_marks
        end = next((n for n in range(at, len(lines)) if closing in lines[n]), len(lines)) if known else at - 1
        # Remembered, so that the same mark is not searched for again
        if end == len(lines):  # one without an end continues to the end of the text, once
            made.open_marks.add(closing)
    raw = [mark.string, *lines[at : end + 1]]
    body, _, rest = "\n".join([first, *raw[1:]]).partition(closing)
    made.add_call(_read_markup(body), raw if not rest.strip() else [*raw[:-1], raw[-1].removesuffix(rest)])
    if rest.strip():
        made.lines.append(rest)
    # Without an end, `end` is past the last line
    return min(end + 1, len(lines))


def _read_markup(body: str) -> str:
    """Return what the calls between two marks hold: named parameters, JSON, or a program."""
    if _PARAMETER.search(body):
        # Each call by itself, several parameters in each
        return "\n\n".join(filter(None, map(_read_parameters, _CALL_BEGINS.split(body))))
    words = _MARKS.sub("", body).strip()
    return calls.read_object(words) or calls.read_call(FunctionCall("", words))


def _read_parameters(body: str) -> str:
    begins = list(_PARAMETER.finditer(body))
    ends = [each.start() for each in begins[1:]] + [len(body)]
    given = {}
    # `strict` only with parameters, since `ends` always has one more
    for each, end in zip(begins, ends, strict=bool(begins)):
        close = _PARAMETER_ENDS.search(body, each.end(), end)
        given[each[1]] = body[each.end() : close.start() if close else end].strip("\n")
    return calls.read_arguments(given) or calls.read_only_text(given)
