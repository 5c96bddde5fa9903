"""A campaign of faults for MAIA_BENCH_FAULT_SECONDS (default 120): kills, and what was lost."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests import ROOT
from tests.support.postgres import MISSING, programs


@pytest.mark.bench
def test_what_is_lost_under_faults() -> None:
    if programs() is None:
        pytest.skip(MISSING)
    seconds = os.environ.get("MAIA_BENCH_FAULT_SECONDS", "120")
    command = [sys.executable, "-m", "tests.faults", "--seconds", seconds, "--units", "16", "--seed", "1"]
    assert subprocess.run(command, cwd=ROOT).returncode == 0
