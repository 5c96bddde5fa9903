"""`system.neuron`: exact activations, exact masks, and whatever a program may pass."""

import numpy as np
import pytest
from PIL import Image

from tests.support.exemplar_index import index_of
from tests.support.tiny_lab import DEAD, RED, RED_NOT_BLUE, TinyContext, square, to_base64
from workers.errors import ToolMisuse
from workers.lab.imaging import decode_image_base64, image_key
from workers.protocols import Provenance
from workers.record.origins import Origin


@pytest.fixture
def context(tmp_path):
    return TinyContext(index_of(tmp_path))


def test_it_says_what_is_under_study(context):
    system = context.system
    assert (system.model_name, system.layer, system.neuron_num, system.unit) == ("tiny", "patches", RED, RED)


def test_it_gives_the_spatial_maximum_as_the_network_has_it(context):
    activations, masked = context.system.neuron([square("red"), square("grey", 3), square("blue")])
    assert activations == pytest.approx([1.0, 0.2, 0.0])
    assert all(isinstance(each, str) for each in masked)
    third = Image.new("RGB", (8, 8), (85, 0, 0))
    assert context.system.neuron([third])[0] == pytest.approx([1 / 3])
    faint = context.system.neuron([Image.new("RGB", (8, 8), (1, 0, 0))])[0]
    assert faint == pytest.approx([1 / 255])


def test_it_knows_no_negative_zero(tmp_path):
    context = TinyContext(index_of(tmp_path), RED_NOT_BLUE)
    assert str(context.system.neuron([Image.new("RGB", (8, 8))])[0]) == "[0.0]"


def test_it_keeps_the_region_above_the_units_quantile_bright_and_dims_the_rest(tmp_path):
    context = TinyContext(index_of(tmp_path, mask_quantile=0.9))
    assert context.subject._index.unit("patches", RED).quantile == pytest.approx(0.2, abs=0.001)
    image = Image.new("RGB", (8, 8), (0, 100, 40))
    image.paste((255, 100, 40), (0, 0, 4, 4))
    shown = np.array(decode_image_base64(context.system.neuron([image])[1][0]))
    # The map [[1, 0], [0, 0]] falls from left to right, and from top to bottom, as 1, 1, 7/8, 5/8, 3/8, 1/8, 0, 0.
    bright = np.zeros((8, 8), dtype=bool)
    bright[:4, :5] = bright[:5, :4] = True
    near = np.zeros((8, 8), dtype=bool)
    near[:5, :6] = near[:6, :5] = True
    assert (shown[bright] == np.array(image)[bright]).all()
    assert (shown[near & ~bright] == (255, 32, 32)).all()
    assert (shown[~near] == (18, 44, 28)).all()


def test_it_leaves_the_whole_image_as_it_is_if_the_unit_is_not_active_on_it(tmp_path):
    context = TinyContext(index_of(tmp_path), DEAD)
    activations, masked = context.system.neuron([square("red")])
    assert activations == [0.0]
    assert image_key(decode_image_base64(masked[0])) == image_key(square("red"))


def test_it_leaves_the_image_bright_where_the_unit_has_no_map(tmp_path):
    context = TinyContext(index_of(tmp_path), RED, layer="logits")
    activations, masked = context.system.neuron([square("red")])
    assert activations == [0.25]
    assert image_key(decode_image_base64(masked[0])) == image_key(square("red"))


def test_it_answers_the_same_whatever_the_batch(context):
    images = [square(colour, corner) for colour in ("red", "grey", "blue") for corner in range(4)]
    alone = [context.system.neuron([image]) for image in images]
    together = context.system.neuron(images)
    assert together == ([each[0][0] for each in alone], [each[1][0] for each in alone])


def test_it_takes_pil_images_base64_strings_and_a_lone_image(context):
    image = square("red")
    wanted = context.system.neuron([image])
    assert context.system.neuron([to_base64(image)]) == wanted
    assert context.system.neuron((image,)) == wanted
    assert context.system.neuron(image) == wanted
    assert context.system.neuron(to_base64(image)) == wanted
    assert context.system.call_neuron([image]) == wanted


def test_it_measures_a_masked_image_through_the_raw_image_behind_it(tmp_path):
    context = TinyContext(index_of(tmp_path, mask_quantile=0.9))
    activations, masked = context.system.neuron([square("red")])
    assert image_key(decode_image_base64(masked[0])) != image_key(square("red"))
    assert context.system.neuron(masked) == (activations, masked)


def test_it_remembers_what_a_masked_image_shows(tmp_path):
    context = TinyContext(index_of(tmp_path, mask_quantile=0.9))
    raw = square("red", 1)
    known = Provenance("generated", "a red square", 5, {"colour": "red"})
    key = context.memory.remember(raw, known)
    _, masked = context.system.neuron([raw])
    assert context.memory.recall(image_key(decode_image_base64(masked[0]))) == Provenance(
        "generated", "a red square", 5, None, raw=key
    )
    assert context.memory.recall(key) == known


def test_it_keeps_pixels_it_never_saw_as_external(context):
    context.system.neuron([square("green")])
    assert context.memory.recall(image_key(square("green"))) == Provenance(Origin.EXTERNAL)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "image_list must be a list of images, but is None"),
        (7, r"image_list must be a list of images, but is of type int \(7\)"),
        ([], "image_list is empty. Pass a list of 1 to 64 images."),
        ([None], r"image_list\[0\] must be an image, but is a NoneType"),
        ([Image.new("RGB", (8, 8)), 3.5], r"image_list\[1\] must be an image, but is a float"),
        (["bird"], r"image_list\[0\] must be an image, but is the text 'bird'"),
        ("a red ball", r"image_list\[0\] must be an image, but is the text 'a red ball'"),
        ([[Image.new("RGB", (8, 8))]], r"image_list\[0\] must be an image, but is a list"),
        ([Image.new("RGB", (8, 8))] * 65, "image_list holds 65 images; one call takes 64 at most"),
        ([Image.new("RGB", (4097, 4096))], "too large"),
        ({"a": 1}, "image_list must be a list of images, but is of type dict"),
    ],
)
def test_it_says_what_is_wrong_with_an_argument(context, value, message):
    with pytest.raises(ToolMisuse, match=message):
        context.system.neuron(value)
