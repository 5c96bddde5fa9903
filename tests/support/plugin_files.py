"""Plug-ins as files, for tests: a small network, a dataset of squares, and what loads them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from workers.plugins.loading import PluginReport, load_plugins

NETWORK = """
import numpy as np
import torch
from torch import nn

from workers.plugins import Registrar
from workers.plugins.modules import study


class OurNet(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.stem = nn.Conv2d(3, 6, 3, stride=2, padding=1)
        self.block = nn.Sequential(nn.ReLU(), nn.Conv2d(6, 8, 3, padding=1), nn.ReLU())
        self.head = nn.Linear(8, 2)

    def forward(self, images):
        return self.head(self.block(self.stem(images)).mean((2, 3)))


def to_tensor(image):
    return torch.from_numpy(np.array(image.resize((16, 16)))).permute(2, 0, 1).float() / 255


def load(settings):
    return study(OurNet(), to_tensor, ["cat", "dog"], ["stem", "block"])


def register(maia: Registrar) -> None:
    maia.vision_model("our-net", "Our network", load)
"""
"""A file with one network: what a person writes, with random weights."""


def write_plugin(folder: Path, text: str, name: str = "parts.py") -> str:
    """Write a plug-in; its path."""
    folder.mkdir(exist_ok=True, parents=True)
    (folder / name).write_text(text)
    return str(folder / name)


@contextmanager
def plugged_in(*named: str, seconds: float = 30) -> Iterator[tuple[PluginReport, ...]]:
    """Within the block these plug-ins are loaded in this process."""
    try:
        yield load_plugins(named, seconds)
    finally:
        load_plugins((), seconds)
