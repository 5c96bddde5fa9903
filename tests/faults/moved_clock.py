"""`python -m tests.faults.moved_clock MODULE …`: as `python -m MODULE …`, for a process whose clock libfaketime moves.

libfaketime mistakes the moment until which `time.sleep` sleeps by the monotonic clock, so that each call fails.
"""

from __future__ import annotations

import runpy
import select
import sys
import time


def _sleep(seconds: float) -> None:
    select.select([], [], [], seconds)


if __name__ == "__main__":
    time.sleep = _sleep
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
