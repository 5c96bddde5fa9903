"""The log: what is known of each image, what was measured, what the program claimed, and what it displayed."""

import base64
import io
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from tests.support.exemplar_index import index_of
from tests.support.tiny_lab import TinyContext, TinyModel, square, to_base64
from workers.lab.image_tools import derive_seed
from workers.lab.imaging import decode_image_base64, image_key
from workers.lab.memory import ImagesInMemory
from workers.record.experiments import LogEntry, Observation


@pytest.fixture
def context(tmp_path):
    return TinyContext(index_of(tmp_path))


def key_of(image):
    return image_key(decode_image_base64(image) if isinstance(image, str) else image)


def logged(context):
    return [seen for entry in context.tools.entries for seen in entry.observations]


def test_it_logs_raw_and_masked_image_with_all_that_is_known(context):
    images, titles = context.tools.edit_images(["a red one"], ["make it grey"])
    activations, masked = context.system.neuron(images)
    context.tools.log_experiment(activations, masked, titles, ["one", "two"])
    (entry,) = context.tools.entries
    seed = derive_seed(0, "a red one", 0)
    first, second = (image_key(image) for image in images)
    assert entry.text == "one\ntwo"
    assert tuple(replace(each, plain=False, map=None) for each in entry.observations) == (
        Observation(
            "a red one", 1.0, first, key_of(masked[0]), "original", "a red one", seed, claimed=1.0, measured=True
        ),
        Observation(
            *("make it grey", activations[1], second, key_of(masked[1]), "edited", "make it grey", seed, first),
            claimed=activations[1],
            measured=True,
        ),
    )


def test_it_keeps_the_map_of_each_image_beside_it(tmp_path):
    context = TinyContext(index_of(tmp_path, mask_quantile=0.9))
    image = Image.new("RGB", (8, 8), (0, 100, 40))
    image.paste((255, 0, 0), (0, 0, 4, 4))
    image.paste((51, 0, 0), (4, 4, 8, 8))
    _, masked = context.system.neuron([image])
    context.tools.log_experiment([1.0], masked, ["two red places"])
    kept = logged(context)[0].map
    assert (kept.low, kept.high) == (0.0, 1.0)
    assert kept.threshold == pytest.approx(0.2, abs=0.001)
    grey = np.asarray(context.memory.load(kept.image))
    assert grey[..., 0].tolist() == [[255, 0], [0, 51]]
    assert (grey == grey[..., :1]).all()
    assert context.memory.recall(kept.image).raw is None, "the same map may belong to other images"


def test_it_finds_the_masked_image_when_the_raw_one_is_logged(context):
    images = context.tools.text2image(["red"])
    activations, masked = context.system.neuron(images)
    context.tools.log_experiment(activations, images, ["a"])
    assert logged(context)[0].image == key_of(images[0])
    assert logged(context)[0].masked == key_of(masked[0])


def test_it_logs_an_image_it_never_saw_as_external(context):
    context.tools.save_experiment_log([0.5], [square("red", 2)], ["mine"])
    (seen,) = logged(context)
    assert (seen.image, seen.origin) == (image_key(square("red", 2)), "external")


def test_a_number_is_what_was_measured_whatever_the_program_says(context):
    red, grey = square("red"), square("grey")
    activations, masked = context.system.neuron([red, grey])
    again = Image.open(io.BytesIO(base64.b64decode(to_base64(grey))))
    context.tools.log_experiment(
        [0.2, 7.1, 0.2], [masked[0], masked[1], again], ["mixed up", "made up", "encoded anew"]
    )
    context.tools.log_experiment([1.0, 0.0], [square("red", 2), square("green")], ["never measured", "nor this"])
    assert [(each.activation, each.claimed, each.differs) for each in logged(context)] == [
        (pytest.approx(1.0), 0.2, True),
        (pytest.approx(0.2), 7.1, True),
        (pytest.approx(0.2), 0.2, False),
        (pytest.approx(1.0), 1.0, False),
        (0.0, 0.0, False),
    ]
    assert all(each.measured for each in logged(context))
    assert context.tools.results_list[1] == {"made up": {"activation": activations[1], "image": masked[1]}}


def test_what_was_never_measured_is_measured_in_one_batch(tmp_path):
    model = TinyModel()
    context = TinyContext(index_of(tmp_path), model=model)
    before = len(model.batches)
    context.tools.log_experiment([0.0] * 3, [square("green", corner) for corner in range(3)], ["a", "b", "c"])
    assert model.batches[before:] == [3]


def test_it_knows_whether_the_image_itself_was_logged_or_its_masked_one(tmp_path):
    context = TinyContext(index_of(tmp_path, mask_quantile=0.9))
    image = square("red")
    _, masked = context.system.neuron([image])
    context.tools.log_experiment([1.0, 1.0], [image, masked[0]], ["plain", "masked"])
    assert [each.plain for each in logged(context)] == [True, False]
    assert len({(each.image, each.masked) for each in logged(context)}) == 1


def test_an_image_in_which_nothing_is_bright_is_shown_as_it_is(tmp_path):
    context = TinyContext(index_of(tmp_path, mask_quantile=0.9))
    _, masked = context.system.neuron([square("green"), square("red")])
    context.tools.log_experiment([0.0, 1.0], masked, ["silent", "lit"])
    assert [each.masked == each.image for each in logged(context)] == [True, False]


def test_it_cuts_long_titles_and_too_much_text(context):
    context.tools.log_experiment([1], [square("red")], ["x" * 500], "y" * 50_000)
    context.tools.display("z" * 100)
    assert len(logged(context)[0].title) == 300
    texts = [entry.text for entry in context.tools.entries]
    assert texts[0].count("y") == 40_000
    assert "[cut" in texts[0]
    assert "z" not in texts[1]


def test_it_gives_programs_the_log_of_the_whole_run(tmp_path):
    memory = ImagesInMemory()
    first = TinyContext(index_of(tmp_path), memory=memory)
    _, masked = first.system.neuron([square("red")])
    first.tools.log_experiment([1.0], masked, ["before"], "words")
    second = TinyContext(index_of(tmp_path), memory=memory, earlier=first.tools.entries)
    second.tools.log_experiment([0.2], [square("grey")], ["now"])
    assert second.tools.experiment_log == [
        {"images": [{"title": "before", "activation": 1.0}], "text": "words"},
        {"images": [{"title": "now", "activation": pytest.approx(0.2)}], "text": ""},
    ]
    assert second.tools.results_list == [
        {"before": {"activation": 1.0, "image": masked[0]}},
        {"now": {"activation": pytest.approx(0.2), "image": second.system.neuron([square("grey")])[1][0]}},
    ]
    assert len(second.tools.entries) == 1


def test_it_displays_images_then_the_words_that_follow_them(context):
    red, grey = square("red"), square("grey")
    context.tools.display("first", red, "one", to_base64(grey), {"a": 1}, None, 2.5)
    assert [(len(entry.observations), entry.text) for entry in context.tools.entries] == [
        (0, "first"),
        (1, ""),
        (1, "{'a': 1}\nNone\n2.5"),
    ]
    assert [(each.title, each.activation) for each in logged(context)] == [("one", 1.0), ("", pytest.approx(0.2))]
    assert all(seen.masked and seen.claimed is None and not seen.differs for seen in logged(context))


@pytest.mark.parametrize(
    ("things", "titles", "texts"),
    [
        (["IMAGE", "after it"], ["after it"], [""]),
        (["before it", "IMAGE"], ["before it"], [""]),
        (["one", "IMAGE", "two", "IMAGE"], ["one", "two"], [""]),
        (["IMAGE", "one", "IMAGE", "two"], ["one", "two"], ["", ""]),
        (["both", "IMAGE", "IMAGE"], ["", ""], ["both", ""]),
        (["IMAGE", "IMAGE", "both"], ["", ""], ["both"]),
        (["IMAGE", "one", "two"], [""], ["one\ntwo"]),
        (["IMAGE", "two\nlines"], [""], ["two\nlines"]),
        (["IMAGE", "x" * 201], [""], ["x" * 201]),
        (["IMAGE", "  "], [""], ["  "]),
    ],
)
def test_a_line_beside_a_displayed_image_is_its_title(context, things, titles, texts):
    context.tools.display(*(square("red") if each == "IMAGE" else each for each in things))
    assert [each.title for each in logged(context)] == titles
    assert [entry.text for entry in context.tools.entries] == texts


def test_it_displays_pairs_of_activation_and_image_and_text_that_was_unpacked(context):
    context.tools.display([(0.25, square("red")), [3, square("grey")]])
    context.tools.display(0.75, square("red"))
    context.tools.display([0.5, [1, None]], [])
    assert context.tools.entries[-1] == LogEntry((), "[0.5, [1, None]]\n[]")
    context.tools.display(*"a line\nand another")
    assert [seen.claimed for seen in logged(context)] == [0.25, 3.0, 0.75]
    assert [seen.activation for seen in logged(context)] == pytest.approx([1.0, 0.2, 1.0])
    assert context.tools.entries[-1].text == "a line\nand another"
