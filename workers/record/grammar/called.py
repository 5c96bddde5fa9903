"""Combine a reply and the functions it called into one text in the grammar, so that other code needs no second format.

If functions were offered, the first readable call is the action, and text beside it is prose. Errors in calls and
ignored calls are reported to the author.
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
"""Characters shown of a call that could not be read. The record has all of it."""


def write_out(
    text: str, called: Sequence[FunctionCall], offered: Sequence[FunctionSchema] = ()
) -> tuple[str, tuple[str, ...]]:
    """Return a reply with its function calls written out, and remarks for its author on how they were read."""
    # 1. Nothing called
    if not called:
        return text, ()
    raw = [_show(each) for each in called]
    # 2. Functions were offered: the call is the action
    if offered:
        return _write_first(text, called, offered, raw)
    # 3. None was offered: what the text says counts, and calls are left out
    if parse(text).says_something:
        return "\n\n".join([text, *raw]), (SET_ASIDE,)
    # 4. Text without action: the calls are read as a reply
    read = [read_call(each) for each in called]
    parts = [words or call for words, call in zip(read, raw, strict=True)]
    return _join(text, *parts), (READ if any(read) else UNREAD,)


def drop_denials(readings: Sequence[str]) -> tuple[str, ...]:
    """Remove the remarks that there are no functions, for replies to which functions were offered."""
    return tuple(each for each in readings if each not in (READ, UNREAD))


def _write_first(
    text: str, called: Sequence[FunctionCall], offered: Sequence[FunctionSchema], raw: Sequence[str]
) -> tuple[str, tuple[str, ...]]:
    """Return the reply in which the first readable call is the action."""
    read = [read_offered(each, offered) for each in called]
    remarks = [remark for _, found in read for remark in found]
    # The first readable one: one round has one action
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
    """Combine text and a written-out call into a reply that does what the call does and nothing else."""
    # 1. Simply together, if nothing changes by that
    meant, said = parse(written), parse(text)
    whole = _join(text, written)
    found = parse(whole)
    if found.code == meant.code and meant.conclusion in (None, found.conclusion):
        return whole, ()
    # 2. The text says the same as the call
    if (said.code, said.conclusion) == (meant.code, meant.conclusion):  # the same twice
        return text, ()
    # 3. The text as a quotation
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
