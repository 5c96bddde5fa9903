"""What a label says is read whole or not at all, and scenes decide; words of titles claim nothing."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User

from experiments.display.bearing import images
from experiments.display.evidence import read_evidence, split_by_label
from experiments.display.label_meaning import parse_label
from experiments.models import Image, Run
from tests.support.builders import make_run
from workers.toybox.world.scenes import Scene, Thing


def scene(*things: tuple[str, str, str], ground: str = "grass", light: str = "day") -> Scene:
    return Scene(tuple(Thing(noun, colour, size, n, 0) for n, (noun, colour, size) in enumerate(things)), ground, light)


@pytest.mark.parametrize(
    ("label", "shown", "not_shown"),
    [
        ("blue things", scene(("ball", "blue", "large")), scene(("ball", "red", "large"))),
        ("balls OR boats", scene(("boat", "red", "small")), scene(("cone", "red", "small"))),
        (
            "small rockets",
            scene(("rocket", "red", "small")),
            scene(("rocket", "red", "large"), ("ball", "red", "small")),
        ),
        ("sunset scenes", scene(("ball", "red", "small"), light="sunset"), scene(("ball", "red", "small"))),
        ("two red balls", scene(("ball", "red", "small"), ("ball", "red", "large")), scene(("ball", "red", "small"))),
        ("balls and boats", scene(("ball", "red", "small"), ("boat", "red", "large")), scene(("ball", "red", "small"))),
        ("a red ball on snow", scene(("ball", "red", "small"), ground="snow"), scene(("ball", "red", "small"))),
    ],
)
def test_a_label_that_toybox_can_say_is_decided_by_the_scene(label: str, shown: Scene, not_shown: Scene) -> None:
    read = parse_label(label)
    assert read is not None
    assert read.holds(shown)
    assert not read.holds(not_shown)


@pytest.mark.parametrize(
    "label",
    ["striped boats", "a car behind a house", "exactly two red balls", "no cars", "balls, not boats", "", "红色"],
)
def test_a_label_that_is_not_understood_whole_says_nothing(label: str) -> None:
    assert parse_label(label) is None


def logged(run: Run, number: int, title: str, activation: float, drawn: Scene | None) -> Any:
    image = Image.objects.create(key=f"{number:064x}", width=8, height=8, scene=drawn.to_json() if drawn else None)
    experiment, _ = run.experiments.get_or_create(number=1, defaults={"round": 1, "code": "", "status": "ok"})
    known = {"title": title, "activation": activation, "image": image, "origin": "generated", "run": run}
    return experiment.observations.create(position=number, **known)


@pytest.fixture
def run(owner: User) -> Run:
    """Blue things are never called blue; what is called small is large."""
    run = make_run(owner)
    logged(run, 1, "a ball", 9.0, scene(("ball", "blue", "large")))
    logged(run, 2, "a boat", 7.0, scene(("boat", "blue", "small")))
    logged(run, 3, "blue? no, a red rocket, small in words alone", 1.0, scene(("rocket", "red", "large")))
    logged(run, 4, "from elsewhere", 5.0, None)
    Run.objects.filter(pk=run.pk).update(observation_count=4, experiment_count=1)
    return Run.objects.get(pk=run.pk)


def test_evidence_for_a_label_is_what_shows_it_whatever_its_title_says(run: Run) -> None:
    found = read_evidence([run], "blue things", None)
    assert (found.is_known, found.showing.count, found.others.count, found.unread) == (True, 2, 1, 1)
    assert [each.card.activation for each in found.showing.strongest] == [9.0, 7.0]
    assert [each.card.activation for each in found.others.strongest] == [1.0]
    assert read_evidence([run], "balls OR boats", None).showing.count == 2


def test_titles_hold_a_label_of_alternatives_if_they_hold_one(run: Run) -> None:
    found = read_evidence([run], "striped balls OR a boat", None)
    assert not found.is_known
    assert [each.card.title for each in found.showing.strongest] == ["a boat"]
    assert split_by_label([], "anything") == ([], [])


def test_a_hypothesis_stands_beside_what_speaks_against_it(run: Run) -> None:
    small, blue = images(run, ["small rockets", "blue things"])
    assert (small.is_known, list(small.strongest)) == (True, [])
    assert [each.card.activation for each in small.others] == [9.0, 7.0, 1.0]
    assert [each.card.activation for each in blue.strongest] == [9.0, 7.0]
    assert [each.card.activation for each in blue.others] == [1.0]
