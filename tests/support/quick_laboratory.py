"""A state folder with the toybox's first scenes drawn and indexed, as installations that tests start find it."""

from __future__ import annotations

from pathlib import Path

QUICK_IMAGES = 200
"""Scenes in the dataset of installations that tests start."""


def draw_laboratory(state: Path) -> None:
    """Make it. Loads PyTorch."""
    from workers.lab.laboratory import Laboratory
    from workers.protocols import LabSettings
    from workers.record.systems import SystemSpec

    state.mkdir()
    laboratory = Laboratory(LabSettings(state, dataset_images=QUICK_IMAGES))
    laboratory.subject(SystemSpec("unit", "toybox", "layer4", 0)).exemplars()
