"""Experiments with the toolset "diffusion": every tool, on the real laboratory with small pipelines and toybox-net."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import pipelines
from workers.errors import ToolRefused
from workers.lab.imaging import image_key
from workers.lab.laboratory import Laboratory
from workers.lab.memory import ImagesInMemory
from workers.protocols import LabSettings
from workers.record.systems import SystemSpec

pytestmark = [
    pytest.mark.filterwarnings(f"ignore:{pipelines.OLD_ARRAYS}:DeprecationWarning"),
    pytest.mark.usefixtures("one_thread"),
]


@pytest.fixture(scope="module")
def state(tmp_path_factory) -> Path:
    """A state folder, and small pipelines beside it."""
    folder = tmp_path_factory.mktemp("state")
    pipelines.stable_diffusion(folder / "drawing")
    pipelines.pix2pix(folder / "editing")
    return folder


@pytest.fixture
def lab(state) -> Laboratory:
    editing, drawing = str(state / "editing"), str(state / "drawing")
    return Laboratory(LabSettings(state, generator=drawing, editor=editing, image_steps=2, dataset_images=16))


def context(lab, memory, seed=0, **more):
    units = (SystemSpec("unit", "toybox", "layer4", unit) for unit in range(64))
    active = next(spec for spec in units if lab.subject(spec).exemplars())
    return lab.experiment_context(active, memory, seed, toolset="diffusion", **more)


def test_prompts_are_drawn_edited_and_measured(lab):
    memory, progress = ImagesInMemory(), []
    first = context(lab, memory, progress=lambda *said: progress.append(said))
    instructions = ["make the ball blue", "make it night"]
    images, titles = first.tools.edit_images(["a red ball", "a cone"], instructions)
    assert titles == ["a red ball", instructions[0], "a cone", instructions[1]]
    activations, masked = first.system.neuron(images)
    first.tools.log_experiment(activations, masked, titles)
    (entry,) = first.tools.entries
    assert [each.origin for each in entry.observations] == ["original", "edited"] * 2
    drawn, edited = entry.observations[::2], entry.observations[1::2]
    assert [each.original for each in edited] == [each.image for each in drawn]
    assert [each.seed for each in edited] == [each.seed for each in drawn]
    assert all(each.seed is not None for each in drawn)
    assert {what for what, _, _ in progress} >= {
        "Drawing images, denoising steps",
        "Editing images, denoising steps",
    }


def test_images_that_came_back_as_pixels_are_edited_again(lab):
    memory = ImagesInMemory()
    tools = context(lab, memory).tools
    (drawn,) = tools.text2image(["a red ball"])
    (once,) = tools.edit_images([drawn.copy()], ["make it blue"])[0][1::2]
    (twice,) = tools.edit_images([once.copy()], ["make it night"])[0][1::2]
    known = memory.recall(image_key(twice))
    assert (known.origin, known.prompt, known.original) == ("edited", "make it night", image_key(once))
    assert known.seed == memory.recall(image_key(drawn)).seed


def test_exemplars_are_edited_whole_at_their_own_size(lab):
    memory = ImagesInMemory()
    tools = context(lab, memory).tools
    _, masked = tools.dataset_exemplars()
    images, _ = tools.edit_images(masked[:2], ["replace the ball with a cone"] * 2)
    assert len({image.size for image in images}) == 1
    assert memory.recall(image_key(images[0])).origin == "exemplar"
    assert memory.recall(image_key(images[1])).original == image_key(images[0])


def test_the_same_run_draws_the_same_and_another_seed_something_else(lab):
    one, two, other = (context(lab, ImagesInMemory(), seed) for seed in [0, 0, 1])
    images = [each.tools.text2image(["a red ball", "a red ball"]) for each in [one, two, other]]
    keys = [[image_key(image) for image in drawn] for drawn in images]
    assert keys[0] == keys[1]
    assert len({*keys[0], *keys[2]}) == 4


def test_what_a_long_prompt_lost_is_in_the_log(lab):
    tools = context(lab, ImagesInMemory()).tools
    tools.text2image(["a" * 75 + " dog"])
    assert "only the first 77 tokens were read" in tools.entries[-1].text


def test_a_refusal_reaches_the_program_as_one_of_a_tool(lab, state):
    pipelines.stable_diffusion(state / "prim", threshold=-2.0)
    settings = LabSettings(state, generator=str(state / "prim"), image_steps=1, dataset_images=16)
    tools = context(Laboratory(settings), ImagesInMemory()).tools
    with pytest.raises(ToolRefused, match=r"'a red ball' \(the safety checker of .* withheld it"):
        tools.text2image(["a red ball"])
    assert tools.entries == []
