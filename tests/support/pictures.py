"""Images in the store, and payloads that show them."""

from __future__ import annotations

from typing import Any

from PIL import Image

from workers.jobs import thumbnails
from workers.jobs.images import ImagesInDatabase
from workers.protocols import Provenance
from workers.record.events import ExperimentEnded
from workers.record.experiments import LogEntry, Observation


def stored(colour: str, **known: Any) -> str:
    """The key of a small image of this colour, which is in the store and the database, with its small versions."""
    images = ImagesInDatabase()
    key = images.remember(Image.new("RGB", (8, 8), colour), Provenance("generated", **known))
    images.flush()
    thumbnails.mark_made(wait=True)
    return key


def seen(title: str, activation: float, colour: str, **known: Any) -> Observation:
    """An observation of an image of this colour; its masked image is darker."""
    return Observation(title, activation, stored(colour), stored(f"dark{colour}"), "generated", title, 0, **known)


def logged(*observations: Observation, text: str = "", number: int = 1, **fields: Any) -> ExperimentEnded:
    """The result of an experiment that logged these."""
    return ExperimentEnded(number, number, "ok", (LogEntry(observations, text),), **fields)
