"""Tests, laid out as the code is; what they share is in `support/`."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
