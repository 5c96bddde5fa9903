"""A short campaign of faults; `python -m tests.faults` and `make bench` run longer ones."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT
from tests.support.postgres import MISSING, programs


@pytest.mark.more
@pytest.mark.timeout(900)
def test_nothing_is_lost_under_faults(quick_laboratory: Path, tmp_path: Path) -> None:
    if programs() is None:
        pytest.skip(MISSING)
    own = {name: value for name, value in os.environ.items() if not name.startswith("MAIA_")}
    told = ["--seconds", "45", "--units", "6", "--seed", "13"]
    command = [
        sys.executable,
        "-m",
        "tests.faults",
        *told,
        "--laboratory",
        str(quick_laboratory),
        "--folder",
        str(tmp_path),
    ]
    done = subprocess.run(command, cwd=ROOT, env=own, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 violations." in done.stdout
