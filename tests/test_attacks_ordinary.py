"""The attacks once more, as an ordinary user, where the tests are run by root."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.as_ordinary_user import CANNOT, NOBODY

HERE = Path(__file__).resolve().parent
ATTACKS = sorted(path for path in HERE.glob("test_attacks_*.py") if path.name != Path(__file__).name)
OPTIONS = ["-q", "-p", "no:cacheprovider", *map(str, ATTACKS)]


@pytest.mark.skipif(os.getuid() != 0, reason="the attacks have run as an ordinary user, since the tests do")
def test_every_attack_fails_for_an_ordinary_user_too():
    with tempfile.TemporaryDirectory(prefix="maia-attacks-") as folder:
        os.chown(folder, NOBODY, NOBODY)
        done = subprocess.run(
            [sys.executable, str(HERE / "as_ordinary_user.py"), sys.executable, "-B", "-m", "pytest", *OPTIONS],
            cwd=HERE.parent,
            env={"MAIA_STATE": folder, "TMPDIR": folder, "HOME": folder},
            capture_output=True,
            text=True,
        )
    if done.returncode == CANNOT:
        pytest.skip(f"the interpreter lies where only root may go, and {done.stderr.strip()}")
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) > 40
