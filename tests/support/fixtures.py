"""Fixtures of several rooms, a plug-in that tests/conftest.py names. What they need is imported when they run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from django.contrib.auth.models import User

from tests.support.people import member

if TYPE_CHECKING:
    from tests.support.postgres import Cluster


@pytest.fixture
def first(db: None) -> User:
    """A reviewer."""
    return member("first", "REVIEWER")


@pytest.fixture
def second(db: None) -> User:
    """Another one."""
    return member("second", "REVIEWER")


@pytest.fixture
def admin(db: None) -> User:
    return member("admin", "ADMIN")


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """PyTorch computes on one thread: several slow small networks down."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def postgres() -> Iterator[Cluster]:
    """A private cluster on a socket, with no port and no password."""
    from tests.support.postgres import MISSING, Cluster, programs

    if programs() is None:
        pytest.skip(MISSING)
    cluster = Cluster()
    cluster.start()
    yield cluster
    cluster.remove()


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ResNet with the layers conv1, stem, layer1 to layer4 and logits of 5 classes."""
    from tests.support.checkpoints import resnet

    return resnet(tmp_path_factory.mktemp("models") / "own-resnet")


@pytest.fixture(scope="module")
def photographs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten images in a folder below, and two files that are none."""
    from tests.support.checkpoints import noise

    folder = tmp_path_factory.mktemp("data") / "photographs"
    (folder / "below").mkdir(parents=True)
    for number, image in enumerate(noise(10)):
        image.save(folder / "below" / f"{number}.png")
    (folder / "broken <b>.jpg").write_bytes(b"no image")
    (folder / "empty.png").touch()
    return folder


@pytest.fixture
def laboratory(tmp_path: Path, settings, db: None) -> Iterator[None]:
    """The laboratory of this process, with a state folder of its own and no provider."""
    from workers.jobs.laboratory import build_laboratory

    settings.STATE = tmp_path / "state"
    settings.OPENAI_API_KEY = settings.OPENAI_BASE_URL = ""
    settings.LAB_DATASET_IMAGES = 20
    build_laboratory.cache_clear()
    yield
    build_laboratory.cache_clear()
