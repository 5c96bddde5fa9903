"""A generator with planted failures: a known share of prompts comes out with one word changed, without an error."""

from __future__ import annotations

import random

from workers.toybox.flawed_images import SHARE, FlawedGenerator, plant_failure
from workers.toybox.images import ToyboxGenerator
from workers.toybox.world.prompts import caption
from workers.toybox.world.scenes import random_scene


def test_the_documented_share_of_prompts_comes_out_otherwise() -> None:
    rng = random.Random(4)
    prompts = [caption(random_scene(rng)) for _ in range(600)]
    changed = sum(plant_failure(prompt, seed) != prompt for seed, prompt in enumerate(prompts))
    assert abs(changed / 600 - SHARE) < 0.06
    assert [plant_failure(prompt, 3) for prompt in prompts[:50]] == [
        plant_failure(prompt, 3) for prompt in prompts[:50]
    ]


def test_one_word_changes_and_nothing_is_said() -> None:
    prompt = "two red balls on grass"
    found = {plant_failure(prompt, seed) for seed in range(60)}
    assert len(found) > 4
    for other in found - {prompt}:
        assert sum(one != two for one, two in zip(prompt.split(), other.split(), strict=True)) == 1
    seed = next(seed for seed in range(60) if plant_failure(prompt, seed) != prompt)
    flawed, whole = (maker.generate([prompt], [seed])[0] for maker in (FlawedGenerator(), ToyboxGenerator()))
    assert flawed.scene != whole.scene
    assert flawed.refused + flawed.note == ""


def test_what_toybox_cannot_draw_is_refused_as_ever() -> None:
    assert FlawedGenerator().generate(["a giraffe"], [0])[0].refused
