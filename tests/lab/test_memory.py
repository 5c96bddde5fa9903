"""What the laboratory remembers of an image, and what gives way."""

import base64
from io import BytesIO

import pytest

from tests.support.tiny_lab import square
from workers.errors import ToolMisuse
from workers.lab.memory import ImagesInMemory, ImageTexts, encode_text, image_texts, look_up
from workers.protocols import Provenance
from workers.record.origins import Origin

IMAGE = square("red")


def test_memory_keeps_what_it_knows_and_only_external_gives_way():
    memory = ImagesInMemory()
    key = memory.remember(IMAGE, Provenance(Origin.EXTERNAL))
    memory.remember(IMAGE, Provenance("generated", "red", 1))
    memory.remember(IMAGE, Provenance("exemplar"))
    memory.remember(IMAGE, Provenance(Origin.EXTERNAL))
    assert memory.recall(key) == Provenance("generated", "red", 1)
    assert memory.load(key).tobytes() == IMAGE.tobytes()
    assert memory.recall("nothing") is None
    with pytest.raises(KeyError):
        memory.load("nothing")


# --- texts that are known again -------------------------------------------------------------------------


def test_a_text_that_was_given_out_is_known_again_and_others_are_decoded():
    memory = ImagesInMemory()
    key = memory.remember(IMAGE, Provenance("generated", "red", 1))
    text = encode_text(memory, key)
    assert image_texts.key(text) == key
    found = look_up(memory, text, "image")
    assert (found.key, found.provenance.prompt) == (key, "red")
    assert found.image.tobytes() == IMAGE.tobytes()
    slow = BytesIO()
    IMAGE.save(slow, "PNG", compress_level=9)
    other = base64.b64encode(slow.getvalue()).decode()
    assert image_texts.key(other) is None
    assert look_up(memory, other, "image").key == key


def test_a_text_of_another_run_is_looked_at_anew():
    text = encode_text(memory := ImagesInMemory(), memory.remember(square("blue"), Provenance("generated", "blue", 1)))
    found = look_up(ImagesInMemory(), text, "image")
    assert found.provenance == Provenance(Origin.EXTERNAL)
    assert found.image.tobytes() == square("blue").tobytes()


@pytest.mark.parametrize("text", ["", "\ud800", "bird", "data:image/png;base64,AAAA"])
def test_a_text_that_is_no_image_is_refused_as_before(text):
    with pytest.raises(ToolMisuse, match="image_list"):
        look_up(ImagesInMemory(), text, "image_list[0]")


def test_texts_used_longest_ago_are_forgotten():
    known = ImageTexts(2)
    known.note("a", "A")
    known.note("b", "B")
    assert known.key("a") == "A"
    known.note("c", "C")
    assert [known.key(text) for text in "abc"] == ["A", None, "C"]
