"""What is refused: prompts that cannot be drawn, and images that nobody here can put into words."""

import math

import pytest
from PIL import Image

from tests.support.exemplar_index import index_of
from tests.support.tiny_lab import TinyContext, TinyDescriber
from workers import registry
from workers.errors import ToolMisuse, ToolRefused
from workers.lab.imaging import image_key
from workers.protocols import LabSettings
from workers.record.experiments import LogEntry


@pytest.fixture
def context(tmp_path):
    return TinyContext(index_of(tmp_path))


def test_an_observer_is_asked_only_about_images_it_was_made_for(tmp_path):
    class Choosy(TinyDescriber):
        def refusal(self, scene):
            return "" if scene else "It knows squares alone. Look at the image instead."

    context = TinyContext(index_of(tmp_path), describer=Choosy)
    images = context.tools.text2image(["red", "blue"])
    _, masked = context.system.neuron(images)
    assert context.tools.describe_images(masked).count("\n") == 1
    stranger = Image.new("RGB", (8, 8), "white")
    for ask in (context.tools.describe_images, context.tools.summarize_images):
        with pytest.raises(ToolRefused, match=r"image_list\[1\] is not described\. It knows squares alone"):
            ask([images[0], stranger])


def test_tools_that_draw_photographs_have_nobody_who_takes_them_for_toys():
    nobody = registry.load(registry.DESCRIBERS, registry.TOOLSETS["diffusion"].describer)(LabSettings(None))
    for ask in (nobody.describe, nobody.summarize):
        with pytest.raises(ToolRefused, match=r"Log the images and look at them instead"):
            ask([Image.new("RGB", (8, 8))])
    assert nobody.refusal({"things": []})


def test_a_refused_prompt_leaves_the_others_and_the_lengths_of_lists_as_they_are(context):
    prompts = ["red", "a forbidden thing", "blue"]
    images = context.tools.text2image(prompts)
    assert [context.memory.recall(image_key(image)).prompt for image in images[::2]] == ["red", "blue"]
    activations, masked = context.system.neuron(images)
    described = context.tools.describe_images(masked, prompts).splitlines()
    assert described[1] == "a forbidden thing: refused"
    assert "of 2" in context.tools.summarize_images(masked)
    context.tools.log_experiment(activations, masked, prompts, "three")
    context.tools.display(images[1], images[2])
    three, shown, remarks = context.tools.entries
    assert math.isnan(activations[1])
    assert [seen.title for seen in three.observations] == ["red", "blue"]
    assert three.text == "a forbidden thing (refused: the filter refuses 'forbidden')\nthree"
    assert len(shown.observations) == 1
    assert "without an image or an activation: 'a forbidden thing' (the filter refuses 'forbidden')" in remarks.text
    assert context.tools.measured == 2, "what stands in the place of an image is no measurement"
    for image in (images[1], masked[1]):
        with pytest.raises(ToolRefused, match=r"'make it red' .*stands for one that was not made"):
            context.tools.edit_images([image], ["make it red"])


def test_a_refused_instruction_leaves_the_other_edits_as_they_are(context):
    stranger = Image.new("RGB", (8, 8), "white")
    given = ["red", "red", "a forbidden thing", stranger]
    images, titles = context.tools.edit_images(given, ["make it green", "make it fly", "make it grey", "make it blue"])
    assert titles == [
        *("red", "make it green", "red", "make it fly (refused: there is no way to make it fly)"),
        "a forbidden thing (refused: the filter refuses 'forbidden')",
        "make it grey (refused: its original was not made: the filter refuses 'forbidden')",
        *("original image", "make it blue (refused: the scene behind this image is unknown, so it cannot be edited)"),
    ]
    activations, masked = context.system.neuron(images)
    context.tools.log_experiment(activations, masked, titles, "four edits")
    context.tools.display(images[3], "a title of its own")
    logged, shown, remarks = context.tools.entries
    assert [seen.title for seen in logged.observations] == ["red", "make it green", "red", "original image"]
    assert [seen.origin for seen in logged.observations] == ["original", "edited", "original", "external"]
    assert shown == LogEntry((), "a title of its own (refused)")
    assert "'make it fly' (there is no way to make it fly); 'make it grey' (its original" in remarks.text
    assert "It knows red and green." in remarks.text
    assert context.editor.seeds == [context.memory.recall(image_key(images[0])).seed] * 2 + context.editor.seeds[2:]


def test_single_edits_are_refused_one_by_one_too(context):
    image = context.tools.text2image("red")[0]
    fly, green = context.tools.edit_image(image, ["make it fly", "make it green"])
    assert context.memory.recall(image_key(green)).prompt == "make it green"
    context.tools.log_experiment([0.0, 0.0], [fly, green], ["fly", "green"])
    assert [seen.title for seen in context.tools.entries[0].observations] == ["green"]
    with pytest.raises(ToolRefused, match=r"^Not made: 'make it fly' \(there is no way .* It knows red and green\."):
        context.tools.edit_image(image, "make it fly")


def test_a_call_of_which_nothing_can_be_made_is_refused(context):
    with pytest.raises(ToolRefused, match=r"^Not made: 'a forbidden thing'"):
        context.tools.text2image(["a forbidden thing", "another forbidden thing"])
    with pytest.raises(ToolRefused, match="forbidden"):
        context.tools.edit_images(["a forbidden thing"], ["make it blue"])
    with pytest.raises(ToolRefused, match=r"forbidden.*make it fly"):
        context.tools.edit_images(["a forbidden thing", "red"], ["make it blue", "make it fly"])


def test_only_a_refused_image_may_be_logged_without_a_number(context):
    images = context.tools.text2image(["red", "a forbidden thing"])
    context.tools.log_experiment(math.nan, [images[1]], ["none"])
    context.tools.display(math.nan, images[1])
    for say in (
        lambda: context.tools.log_experiment([math.nan] * 2, images, ["red", "none"]),
        lambda: context.tools.display(math.nan, images[0]),
    ):
        with pytest.raises(ToolMisuse, match=r"must be a finite number, but is of type float \(nan\)"):
            say()
    assert [entry.observations for entry in context.tools.entries] == [(), (), ()]
