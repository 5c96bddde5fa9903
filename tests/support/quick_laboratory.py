"""A state folder in which the toybox laboratory need not measure what many tests ask of it, made once for all of them.

Its first scenes are drawn and indexed, and what the synthetic neurons answer to them and to those of both held-out
splits is measured.
"""

from __future__ import annotations

from pathlib import Path

QUICK_IMAGES = 200
"""Scenes in the dataset of installations that tests start."""
CHECKED = (("synthetic:toybox-eyes", "mono"), ("synthetic:toybox-eyes", "or"), ("toybox", "layer4"))
"""Models and layers whose labels tests check."""


def draw_laboratory(state: Path) -> None:
    """Make it. Loads PyTorch."""
    from workers.lab.laboratory import Laboratory
    from workers.protocols import LabSettings

    state.mkdir()
    laboratory = Laboratory(LabSettings(state, dataset_images=QUICK_IMAGES))
    for model, layer in CHECKED:
        laboratory.index(model, "toybox").layer(layer)
        for split in ("development", "probe"):
            laboratory.held_out(model, "toybox", split).activations(layer)
