"""Training of the built-in networks, for the command `train_toybox`. No Celery job: it takes minutes of both cores."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def train_toybox(arguments: Sequence[str], state: Path) -> None:
    """What `python -m workers.toybox.networks.train` does, with the state folder of this installation."""
    from workers.toybox.networks import train

    train.main([*arguments, "--state", str(state)])
