"""Read the file of a circuit, as its page and `GET /circuits/{id}/file` write it."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from experiments.circuits.members import MemberDraft
from experiments.core.errors import InvalidInput
from experiments.core.params import clean_text
from workers.record.circuits import MAX_MEMBERS, CircuitMember

MAX_BYTES = 1 << 20


# Unknown fields are refused: a file that a newer version wrote would lose them silently.
class _Member(msgspec.Struct, forbid_unknown_fields=True):
    model: str
    layer: str
    unit: int
    revision: str = ""
    label: str = ""


class _File(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    members: list[_Member]
    note: str = ""
    network: str = ""


@dataclass(frozen=True)
class CircuitDraft:
    """A circuit as a file describes it, before any of it is looked up here."""

    name: str
    note: str
    network: str
    members: list[MemberDraft]


def read_circuit_file(data: bytes) -> CircuitDraft:
    """Parse the file. Raises InvalidInput with what is wrong with it."""
    if not data:
        raise InvalidInput("Choose a file of a circuit first: what “Export as JSON” gives.", "file")
    if len(data) > MAX_BYTES:
        raise InvalidInput(f"The file has {len(data):,} bytes; that of a circuit has at most {MAX_BYTES:,}.", "file")
    try:
        # Editors on Windows add a byte order mark, which JSON does not allow.
        told = msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"), type=_File)
    # Deeply nested JSON ends in a RecursionError, not in a DecodeError.
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"This is no file of a circuit: {error}. Export one as JSON, and compare.", "file") from None
    # Names of models and layers have at most 200 characters in the database.
    if too_long := next((each for each in told.members if max(len(each.model), len(each.layer)) > 200), None):
        raise InvalidInput(f"No layer is called “{too_long.model[:80]} / {too_long.layer[:80]}…”.", "file")
    # Beyond the database's integer, the lookup itself would fail.
    if wrong := next((each for each in told.members if not 0 <= each.unit < 2**31), None):
        raise InvalidInput(f"{wrong.layer} of {wrong.model} has no unit {wrong.unit}.", "file")
    if len(told.members) > MAX_MEMBERS:
        raise InvalidInput(f"A circuit has 1 to {MAX_MEMBERS} members, not {len(told.members):,}.", "file")
    drafts = [
        MemberDraft(
            CircuitMember(clean_text(each.model), clean_text(each.layer), each.unit),
            clean_text(each.revision, 100),
            each.label,
        )
        for each in told.members
    ]
    return CircuitDraft(told.name, told.note, clean_text(told.network), drafts)
