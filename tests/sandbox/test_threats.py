"""The threat model is true: what it names, modules and attacks, is there."""

from __future__ import annotations

import re

from tests import ROOT

SANDBOX = ROOT / "workers" / "sandbox"
TEXT = (SANDBOX / "THREATS.md").read_text()


def test_every_module_it_names_is_there() -> None:
    assert [name for name in re.findall(r"`(\w+\.py)`", TEXT) if not (SANDBOX / name).is_file()] == []


def test_every_attack_it_names_is_a_test() -> None:
    tests = "".join(path.read_text() for path in (ROOT / "tests" / "sandbox").glob("test_*.py"))
    rows = [line for line in TEXT.splitlines() if line.startswith("| ") and "`" in line]
    named = [name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[3])]
    assert len(named) >= 2 * len(rows) - 1
    assert [name for name in named if f"def test_{name}(" not in tests] == []
