"""A quarter of the attacks again as an ordinary user, where root runs the tests; `make test-more` tries all of them."""

import os
import re
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests import ROOT
from tests.support.as_ordinary_user import CANNOT, NOBODY

HERE = Path(__file__).resolve().parent
ATTACKS = sorted(str(path) for path in HERE.glob("test_attacks_*.py") if path.name != Path(__file__).name)
OPTIONS = ["-q", "-p", "no:cacheprovider"]


def attacked(attacks, folder, every):
    """A process that tries some of the attacks as an ordinary user, with a folder for its files."""
    os.chown(folder, NOBODY, NOBODY)
    return subprocess.Popen(
        [
            sys.executable,
            ROOT / "tests/support/as_ordinary_user.py",
            sys.executable,
            "-B",
            "-m",
            "pytest",
            *OPTIONS,
            *attacks,
        ],
        cwd=ROOT,
        env={"MAIA_STATE": folder, "TMPDIR": folder, "HOME": folder, "TESTS_EVERY": str(every)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.skipif(os.getuid() != 0, reason="the attacks have run as an ordinary user, since the tests do")
@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.more)])
def test_attacks_fail_for_an_ordinary_user_too(every):
    with ExitStack() as stack:
        folders = [stack.enter_context(tempfile.TemporaryDirectory(prefix="maia-attacks-")) for _ in range(2)]
        started = [attacked(ATTACKS[half::2], folder, every) for half, folder in enumerate(folders)]
        said = [process.communicate()[0] for process in started]
    if CANNOT in {process.returncode for process in started}:
        pytest.skip(f"the interpreter lies where only root may go, and {said[0].strip()}")
    for process, words in zip(started, said, strict=True):
        assert process.returncode == 0, words[-5000:]
        assert re.search(r"\d+ passed", words)
