"""The laboratory on its real parts: the toybox network, renderer, editor, eyes and scenes."""

import pytest

from tests.support.toybox_run import play
from workers import registry
from workers.errors import ToolRefused
from workers.lab.imaging import image_key
from workers.lab.laboratory import Laboratory
from workers.lab.memory import ImagesInMemory
from workers.protocols import LabSettings
from workers.record.systems import SystemSpec
from workers.sandbox.host import ZygoteSandbox
from workers.toybox.dataset import ToyboxScenes
from workers.toybox.world.scenes import NOUNS


@pytest.fixture(scope="module")
def toybox(tmp_path_factory):
    """The real plug-ins over 40 of the scenes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            registry, "DATASETS", {"toybox": ("Forty scenes", "tests.toybox.test_laboratory.load_forty_scenes")}
        )
        yield Laboratory(LabSettings(tmp_path_factory.mktemp("state")))


def load_forty_scenes(settings):
    return ToyboxScenes(settings.state, 40)


def test_toybox_draws_edits_and_measures(toybox):
    context = toybox.experiment_context(SystemSpec("unit", "toybox", "layer4", 3), ImagesInMemory(), 0)
    prompt = "a red ball on grass by day"
    images, titles = context.tools.edit_images([prompt] * 2, ["make the ball blue", "make it night"])
    activations, masked = context.system.neuron(images)
    context.tools.log_experiment(activations, masked, titles)
    (entry,) = context.tools.entries
    assert [each.origin for each in entry.observations] == ["original", "edited"] * 2
    assert len({each.image for each in entry.observations}) == 3, "both edits are of one image"
    assert context.system.neuron(masked) == (activations, masked)


def test_toybox_puts_masked_images_into_words(toybox):
    context = toybox.experiment_context(SystemSpec("unit", "toybox", "layer4", 3), ImagesInMemory(), 0)
    _, masked = context.system.neuron(context.tools.text2image(["a red ball on grass", "a blue car on snow"]))
    lines = context.tools.describe_images(masked, ["one", "two"]).splitlines()
    assert [line.partition(": ")[0] for line in lines] == ["one", "two"]
    assert all(line.partition(": ")[2] for line in lines)
    assert context.tools.summarize_images(masked)


def test_toybox_edits_an_exemplar_through_the_scene_behind_it(toybox):
    layer = toybox.index("toybox", "toybox").layer("layer4")
    unit = int(layer.maximum.argmax())
    memory = ImagesInMemory()
    context = toybox.experiment_context(SystemSpec("unit", "toybox", "layer4", unit), memory, 0)
    activations, masked = context.tools.dataset_exemplars()
    assert activations == sorted(activations, reverse=True)
    assert context.tools.exemplar_mean == pytest.approx(sum(activations) / len(activations))
    images, _ = context.tools.edit_images(masked[:1] * 3, ["make it day", "make it sunset", "make it night"])
    # The index measured it in a batch of others: the last bit of a sum may differ.
    assert context.system.neuron(images[:1])[0] == pytest.approx(activations[:1], rel=1e-6)
    known = [memory.recall(image_key(image)) for image in images[1::2]]
    edited = [each for each in known if each is not None and each.origin == "edited"]
    assert [each.original for each in edited] == [image_key(images[0])] * 2  # it was one of the three before
    assert "changed nothing" in context.tools.entries[-1].text


def test_toybox_refuses_a_prompt_with_unknown_words_and_says_what_it_knows(toybox):
    context = toybox.experiment_context(SystemSpec("unit", "toybox", "layer4", 3), ImagesInMemory(), 0)
    with pytest.raises(ToolRefused, match="cannot draw xyzzy, plugh"):
        context.tools.text2image(["xyzzy plugh"])
    context.tools.text2image(["a red ball beside a xyzzy", "a red ball"])
    assert "(toybox cannot draw xyzzy). Toybox knows these toys" in context.tools.entries[-1].text


@pytest.mark.more
@pytest.mark.parametrize(
    ("toolset", "steps"),
    [
        ("toybox-exemplars", {"exemplars"}),
        ("toybox-generated", {"screen", "refine", "seek", "edit", "validate"}),
        ("toybox-no-edits", {"exemplars", "screen", "refine", "seek", "validate"}),
    ],
)
def test_the_scientist_concludes_with_what_an_ablated_toolset_leaves(toybox, toolset, steps):
    spec = SystemSpec("synthetic", "synthetic:toybox-eyes", "mono", NOUNS.index("cone"))
    with ZygoteSandbox() as sandbox:
        events = play(toybox, sandbox, spec, seed=2, toolset=toolset)
    results = [event.payload for event in events if event.kind == "result"]
    assert [each.error for each in results if each.status != "ok"] == []
    programs = [event.payload.code for event in events if event.kind == "reply" and event.payload.code]
    taken = {code.split("Step ")[1].split(":")[0] for code in programs}
    assert steps <= taken
    lacking = {"toybox-exemplars": {"screen"}, "toybox-generated": {"exemplars"}, "toybox-no-edits": {"edit", "pare"}}
    assert not taken & lacking[toolset]
    assert events[-1].kind == "concluded"
    assert "cone" in events[-1].payload.conclusion.labels[0]
