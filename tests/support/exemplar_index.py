"""Indexes of the tiny model."""

from __future__ import annotations

from tests.support.tiny_lab import TinyModel, TinyPictures
from workers.errors import BrokenImage
from workers.lab.exemplars import ExemplarIndex
from workers.protocols import LabSettings

NAMES = ("black 0", "grey 1", "red 3", "green 2", "red 0", "blue 1")


def index_of(tmp_path, *names, model=None, **settings):
    chosen = LabSettings(tmp_path, **{"batch_size": 4} | settings)
    return ExemplarIndex(chosen, model or TinyModel(), TinyPictures(*names or NAMES))


class Unreliable(TinyPictures):
    """Squares of which some cannot be read."""

    def __getitem__(self, index):
        if self.names[index] == "broken":
            raise BrokenImage(f"{self.source(index)}: it is torn.")
        return super().__getitem__(index)

    def source(self, index):
        return f"square-{index}"


def index_over(tmp_path, dataset, model=None):
    return ExemplarIndex(LabSettings(tmp_path, batch_size=4), model or TinyModel(), dataset)
