"""What exemplars share, and the labeller that sees nothing else."""

from __future__ import annotations

from pathlib import Path

from workers.protocols import LabSettings
from workers.toybox import one_shot
from workers.toybox.scientist.view import suggest_concepts
from workers.toybox.world import prompts
from workers.toybox.world.render import render
from workers.toybox.world.scenes import Scene


def scenes(*texts: str) -> list[Scene]:
    return [prompts.read_prompt(text, seed).scene for seed, text in enumerate(texts)]


def test_one_crowd_among_single_toys_is_no_trouble() -> None:
    """Three of a toy, where images show one on average, are a surprise that can still be counted."""
    single = ["a large red ball on grass by day"] * 9
    found = suggest_concepts(scenes(*single, "three large red balls on grass by day"))
    assert found[0][0].noun == "ball"


def test_the_label_is_what_the_exemplars_share(tmp_path: Path) -> None:
    grounds = ("grass", "sand", "snow", "wood", "brick", "tiles", "carpet", "water")
    shown = [render(each) for each in scenes(*(f"a large red car on {ground} by day" for ground in grounds))]
    assert "car" in one_shot.load(LabSettings(tmp_path)).label(shown)


def test_exemplars_that_share_nothing_have_no_label(tmp_path: Path) -> None:
    assert one_shot.load(LabSettings(tmp_path)).label([]) == ""
