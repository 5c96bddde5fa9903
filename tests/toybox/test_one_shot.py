"""What exemplars share, and the labeller that sees nothing else."""

from __future__ import annotations

from pathlib import Path

from workers.protocols import LabSettings
from workers.toybox import one_shot
from workers.toybox.concept_match import match
from workers.toybox.scientist.view import read_around, suggest_concepts, suggest_label
from workers.toybox.world import prompts
from workers.toybox.world.concepts import phrase_label
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


def vary(*toys: str) -> list[Scene]:
    """Each toy in scenes that share nothing else."""
    sizes, colours, lights = ("large", "small"), ("red", "blue", "green"), ("by day", "at night", "at sunset")
    grounds = ("grass", "sand", "snow", "wood", "brick", "tiles")
    return scenes(
        *(
            f"a {sizes[at % 2]} {colours[at % 3]} {toy} on {ground} {lights[(at + at // 3) % 3]}"
            for at, ground in enumerate(grounds)
            for toy in toys
        )
    )


def test_it_may_name_alternatives(tmp_path: Path) -> None:
    label = one_shot.load(LabSettings(tmp_path)).label([render(each) for each in vary("car", "tree")])
    assert match(label, "car or tree").right, label


def test_it_may_name_a_condition_that_stands_outside_the_bright_regions() -> None:
    summary = "12 of 12 show a car. Outside the bright regions: 11 of 12 show a tree; 3 of 12 show a ball"
    label = phrase_label(suggest_label(vary("car"), read_around(summary)))
    assert match(label, "car & tree").right, label


def test_exemplars_that_share_nothing_have_no_label(tmp_path: Path) -> None:
    assert one_shot.load(LabSettings(tmp_path)).label([]) == ""
