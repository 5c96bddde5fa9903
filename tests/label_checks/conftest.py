"""What these tests start from."""

from __future__ import annotations

from tests.support.checked_labels import checks, done, runs, units

__all__ = ["checks", "done", "runs", "units"]
