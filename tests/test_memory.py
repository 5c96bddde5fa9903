"""What the laboratory remembers of an image, and what gives way."""

import pytest

from tests.tiny_lab import square
from workers.lab.memory import ImagesInMemory
from workers.protocols import Provenance

IMAGE = square("red")


def test_memory_keeps_what_it_knows_and_only_uploaded_gives_way():
    memory = ImagesInMemory()
    key = memory.remember(IMAGE, Provenance("uploaded"))
    memory.remember(IMAGE, Provenance("generated", "red", 1))
    memory.remember(IMAGE, Provenance("exemplar"))
    memory.remember(IMAGE, Provenance("uploaded"))
    assert memory.recall(key) == Provenance("generated", "red", 1)
    assert memory.load(key).tobytes() == IMAGE.tobytes()
    assert memory.recall("nothing") is None
    with pytest.raises(KeyError):
        memory.load("nothing")
