"""Plug-ins as files, for tests: a small network, a dataset of squares, and what loads them."""

from __future__ import annotations

import os
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
    """Write a plug-in, always at the same second, as one that is edited in haste; its path."""
    folder.mkdir(exist_ok=True, parents=True)
    (folder / name).write_text(text)
    os.utime(folder / name, (10**9, 10**9))
    return str(folder / name)


@contextmanager
def plugged_in(*named: str, seconds: float = 30) -> Iterator[tuple[PluginReport, ...]]:
    """Within the block these plug-ins are loaded in this process."""
    try:
        yield load_plugins(named, seconds)
    finally:
        load_plugins((), seconds)


WHOLE = (
    NETWORK.partition("def register")[0]
    + '''
import os
import pathlib

from PIL import Image

from workers.protocols import LayerInfo, Picture, Reply, Response
from workers.systems.unit import Unit

with open(pathlib.Path(__file__).with_suffix(".pids"), "a") as file:
    file.write(f"{os.getpid()}\\n")

SAYS = """[CODE]: ```python
def run_experiment(system, tools):
    activations, images = tools.dataset_exemplars()
    drawn = tools.text2image(["a grey square"] * 2)
    tools.display(tools.describe_images(drawn, [""] * len(drawn)))
    found, shown = system.call_neuron(drawn)
    tools.log_experiment(activation_list=found, image_list=shown, image_titles=["a", "b"], image_textual_information=[])
```"""


class Pictures:
    name, revision = "ours", "1"

    def __len__(self):
        return 12

    def __getitem__(self, position):
        rng = np.random.default_rng(position)
        return Picture(Image.fromarray(rng.integers(0, 256, (16, 16, 3), np.uint8)))


class Generator:
    def generate(self, prompts, seeds, progress=None):
        return [Picture(Image.new("RGB", (16, 16), (seed % 256,) * 3)) for seed in seeds]


class Describer:
    def describe(self, images):
        return ["a square as plug-ins see it"] * len(images)

    def summarize(self, images):
        return "squares"


class Scientist:
    label, sees, price_known = "Our scientist", False, True

    def reply(self, messages, load, emit, seed):
        done = any("a square as plug-ins see it" in str(each) for each in messages)
        text = "[DESCRIPTION]: grey squares\\n[LABEL]: grey" if done else SAYS
        emit(text)
        return Reply(text)


class Mean:
    name, revision = "our-mean", "1"

    def layers(self):
        return [LayerInfo("means", "means", "our-kind", 1)]

    def maps(self, images, layers):
        values = torch.stack([to_tensor(each).mean() for each in images])
        return {"means": values[:, None, None, None].expand(-1, 1, 2, 2).contiguous()}


class Doubled(Unit):
    """What the unit of a network answers, twice."""

    def respond(self, images):
        return [Response(2 * each.activation, each.masked, each.map) for each in super().respond(images)]


def load_system(settings, spec, model, index):
    return Doubled(spec, model, index, settings.batch_size)


def register(maia):
    maia.vision_model("our-net", "Our network", load)
    maia.vision_model("our-mean", "Our mean", lambda settings: Mean())
    maia.dataset("our-pictures", "Our pictures", lambda settings: Pictures())
    maia.generator("our-generator", "Our generator", lambda settings: Generator())
    maia.describer("our-describer", "Our describer", lambda settings: Describer())
    maia.toolset("our-tools", "Our tools", generator="our-generator", describer="our-describer")
    maia.backbone("our-scientist", "Our scientist (fixed)", lambda settings, model: Scientist())
    maia.system("our-kind", "Our system", load_system)
'''
)
"""A file with a part of each kind; its scientist runs one program and concludes."""
