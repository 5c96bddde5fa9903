"""Run pytest, then run the tests that failed once more with nothing beside them.

Called by `make test` and `make test-more` with pytest's own arguments. The result is red only if a test fails again.
"""

from __future__ import annotations

import subprocess
import sys
from tempfile import TemporaryDirectory

import pytest

MAX_FIRST_FAILURES = 3
"""More failures than this are no accident: red at once."""

RED_AT_ONCE = (
    "tests/sandbox/",
    "tests/faults/",
    "tests/house/test_faults.py",
    "tests/house/test_access",
    "tests/house/test_small_rights.py",
    "tests/house/test_walk_everything.py",
    "tests/api/test_access.py",
    "tests/core/test_blindness.py",
    "tests/core/test_ownership.py",
    "tests/core/test_visibility.py",
)
"""Tests of the sandbox, of access and of what faults must not break: one failure in a thousand runs is a hole."""

HEADING = "Passed only when run alone"


class FirstFailures:
    """A pytest plug-in that keeps the message of each test that failed, by node id."""

    def __init__(self) -> None:
        self.messages: dict[str, str] = {}
        self.unreadable = False

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self.unreadable |= report.failed

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            self.messages.setdefault(report.nodeid, crash.message if crash else report.longreprtext)

    def may_be_accidents(self) -> bool:
        """Return whether the failures are few, and none is of a file or of what must hold each time."""
        few = 1 <= len(self.messages) <= MAX_FIRST_FAILURES
        return few and not self.unreadable and not any(test.startswith(RED_AT_ONCE) for test in self.messages)


def main(arguments: list[str]) -> int:
    """Run pytest with the arguments, twice if need be, and return the exit code."""
    first = FirstFailures()
    with TemporaryDirectory() as cache:
        options = [*arguments, "-o", f"cache_dir={cache}"]
        code = int(pytest.main(options, plugins=[first]))
        if code != pytest.ExitCode.TESTS_FAILED or not first.may_be_accidents():
            return code
        print(f"\nA second look at {len(first.messages)} of them, alone:", flush=True)
        # A process of its own: what the first run left in memory, threads or connections is gone
        alone = [sys.executable, "-m", "pytest", *options, "--last-failed", "--numprocesses", "0"]
        code = subprocess.run(alone).returncode
    if code == pytest.ExitCode.OK:
        print(f"\n{HEADING} ({len(first.messages)}):")
        for test, message in first.messages.items():
            print(f"  {test}\n    {message.strip().splitlines()[0]}")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
