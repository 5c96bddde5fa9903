"""A laboratory with a model and a dataset of one's own: a small checkpoint and a folder of images, on disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.checkpoints import noise, resnet
from tests.support.single_thread import one_thread  # noqa: F401 - used by whoever imports this
from workers.jobs import laboratory as place

IMAGES = 10


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ResNet with the layers conv1, stem, layer1 to layer4 and logits of 5 classes."""
    return resnet(tmp_path_factory.mktemp("models") / "own-resnet")


@pytest.fixture(scope="module")
def photographs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten images in a folder below, and two files that are none."""
    folder = tmp_path_factory.mktemp("data") / "photographs"
    (folder / "below").mkdir(parents=True)
    for number, image in enumerate(noise(IMAGES)):
        image.save(folder / "below" / f"{number}.png")
    (folder / "broken <b>.jpg").write_bytes(b"no image")
    (folder / "empty.png").touch()
    return folder


@pytest.fixture
def laboratory(tmp_path: Path, settings, db: None) -> Iterator[None]:
    """The laboratory of this process, with a state folder of its own and no provider."""
    settings.STATE = tmp_path / "state"
    settings.OPENAI_API_KEY = settings.OPENAI_BASE_URL = ""
    settings.LAB_DATASET_IMAGES = 20
    place.build_laboratory.cache_clear()
    yield
    place.build_laboratory.cache_clear()
