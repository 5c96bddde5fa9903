"""Training of the built-in networks, for the command `train_toybox`. No Celery job: it takes minutes of both cores."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from workers import registry


def train_toybox(arguments: Sequence[str], state: Path) -> None:
    """What `python -m workers.toybox.networks.train` does, with the state folder of this installation."""
    registry.load(registry.TRAINERS, "toybox")([*arguments, "--state", str(state)])
