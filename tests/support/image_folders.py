"""Folders of images as datasets."""

from __future__ import annotations

import pytest
from PIL import Image

from workers import registry
from workers.errors import BrokenImage
from workers.protocols import LabSettings

RED = (250, 10, 20)


def plain(size=(20, 10), colour=RED):
    return Image.new("RGB", size, colour)


def opened(root, **settings):
    return registry.load(registry.DATASETS, f"folder:{root}")(LabSettings(root.parent / "state", **settings))


def reason(dataset, index=0):
    with pytest.raises(BrokenImage) as caught:
        dataset[index]
    return str(caught.value)
