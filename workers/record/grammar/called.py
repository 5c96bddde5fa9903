"""Puts a reply and the functions that it called into one text in the grammar, so that whatever reads it needs no other.

Of functions that were offered the first that can be read is the action, and words beside it are words. What was wrong
with a call, or left out, is told to its author. Called by `loop`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from workers.record.grammar.calls import READ, SET_ASIDE, UNREAD, read_call
from workers.record.grammar.composing import Written, write
from workers.record.grammar.offered import read_offered
from workers.record.grammar.reply import parse
from workers.record.replies import FunctionCall, FunctionSchema

BESIDE = (
    "Beside the function that you called, the text of your reply held a program or a conclusion. The call was read, "
    "and the text was kept as words. Write a program or a conclusion once."
)
MAX_SHOWN = 2_000
"""Characters of a call that are shown where it could not be read; the record has all of it."""


def write_out(
    text: str, called: Sequence[FunctionCall], offered: Sequence[FunctionSchema] = ()
) -> tuple[str, tuple[str, ...]]:
    """A reply with the functions that it called in its text, and how they were read, for its author."""
    if not called:
        return text, ()
    raw = [_show(each) for each in called]
    if offered:
        return _write_first(text, called, offered, raw)
    if parse(text).says_something:
        return "\n\n".join([text, *raw]), (SET_ASIDE,)
    read = [read_call(each) for each in called]
    parts = [words or call for words, call in zip(read, raw, strict=True)]
    return _join(text, *parts), (READ if any(read) else UNREAD,)


def drop_denials(readings: Sequence[str]) -> tuple[str, ...]:
    """How a reply was read, without saying that there are no functions: for where some were offered."""
    return tuple(each for each in readings if each not in (READ, UNREAD))


def _write_first(
    text: str, called: Sequence[FunctionCall], offered: Sequence[FunctionSchema], raw: Sequence[str]
) -> tuple[str, tuple[str, ...]]:
    """The reply with the first call that can be read as what it does."""
    read = [read_offered(each, offered) for each in called]
    remarks = [remark for _, found in read for remark in found]
    place = next((number for number, (words, _) in enumerate(read) if words), None)
    if place is None:
        remarks += [SET_ASIDE] if parse(text).says_something else []
        return _join(text, *raw), tuple(remarks)
    if len(called) > 1:
        names = ", ".join(each.name for each in called)
        played = f"only number {place + 1} was read, the others were left out"
        remarks.append(f"Your reply called {len(called)} functions ({names}): {played}. Call one in a reply.")
    whole, beside = _put_beside(text, read[place][0])
    return whole, (*remarks, *beside)


def _put_beside(text: str, written: str) -> tuple[str, tuple[str, ...]]:
    """Words and a call that is written out, as a reply that does what the call does and nothing else."""
    meant, said = parse(written), parse(text)
    whole = _join(text, written)
    found = parse(whole)
    if found.code == meant.code and meant.conclusion in (None, found.conclusion):
        return whole, ()
    if (said.code, said.conclusion) == (meant.code, meant.conclusion):  # the same twice
        return text, ()
    # In a block quotation no tag and no fence means anything, so hypotheses are written again
    quoted = "\n".join(f"> {line}".rstrip() for line in text.strip().splitlines())
    kept = write(Written(hypotheses=() if meant.hypotheses else said.hypotheses))
    return _join(quoted, kept, written), (BESIDE,) if said.says_something else ()


def _join(*parts: str) -> str:
    return "\n\n".join(filter(None, (each.rstrip() for each in parts)))


def _show(call: FunctionCall) -> str:
    shown = json.dumps([call.name, call.arguments], ensure_ascii=False)
    left_out = len(shown) - MAX_SHOWN
    return f"Function call: {shown[:MAX_SHOWN]}" + (f"… ({left_out:,} characters left out)" if left_out > 0 else "")
