"""A language model describes images: several at a time, in order, paid for once, stopped with the run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Barrier, Lock

import pytest
from PIL import Image

from workers.errors import BackboneUnavailable, Cancelled, ContentRefused, ToolRefused
from workers.lab.describing import AT_ONCE, BackboneDescriber
from workers.protocols import ImagePart, Message, Reply
from workers.record.limits import Usage

LONG = 60
"""Seconds after which a test that would wait for ever fails."""


def greys(count: int) -> list[Image.Image]:
    return [Image.new("RGB", (8, 8), (value, value, value)) for value in range(count)]


class Observer:
    """Says how bright an image is. `meanwhile` is called with the brightness before it answers."""

    label, sees = "observer", True

    def __init__(self, meanwhile: Callable[[int, Callable[[str], None]], None] = lambda *_: None) -> None:
        self.meanwhile = meanwhile
        self.asked: list[int] = []
        self.at_work = self.most = 0
        self._lock = Lock()

    def reply(self, messages: Sequence[Message], load, emit, seed: int) -> Reply:
        (part,) = (part for part in messages[1].parts if isinstance(part, ImagePart))
        bright = load(part.key).getpixel((0, 0))[0]
        with self._lock:
            self.asked.append(bright)
            self.at_work += 1
            self.most = max(self.most, self.at_work)
        try:
            self.meanwhile(bright, emit)
        finally:
            with self._lock:
                self.at_work -= 1
        return Reply(f"brightness {bright}", Usage(10, 1, 0.5))


def test_images_are_described_several_at_a_time_in_their_order_and_every_answer_is_paid_for(tmp_path: Path) -> None:
    together = Barrier(AT_ONCE)
    observer = Observer(lambda *_: together.wait(LONG) and None)
    describer = BackboneDescriber(observer, 0, tmp_path / "kept")
    images = greys(2 * AT_ONCE)
    assert describer.describe([*images, images[0]]) == [f"brightness {n}" for n in [*range(2 * AT_ONCE), 0]]
    assert observer.most == AT_ONCE
    assert sorted(observer.asked) == list(range(2 * AT_ONCE)), "the same image is asked about once"
    assert describer.usage == Usage(20 * AT_ONCE, 2 * AT_ONCE, AT_ONCE)


def test_a_person_stops_all_of_them(tmp_path: Path) -> None:
    begun = Barrier(AT_ONCE + 1)

    def endless(bright: int, emit: Callable[[str], None]) -> None:
        begun.wait(LONG)
        while True:
            emit("")

    def progress(what: str, done: int, total: int) -> None:
        begun.wait(LONG)
        raise Cancelled("A person stopped the run.")

    observer = Observer(endless)
    with pytest.raises(Cancelled, match="A person"):
        BackboneDescriber(observer, 0, tmp_path / "kept", progress).describe(greys(3 * AT_ONCE))
    assert observer.at_work == 0
    assert len(observer.asked) == AT_ONCE


def test_what_was_answered_beside_a_failure_is_kept_and_not_asked_for_again(tmp_path: Path) -> None:
    together = Barrier(3)

    def fails(bright: int, emit: Callable[[str], None]) -> None:
        together.wait(LONG)
        if bright == 1:
            raise BackboneUnavailable("busy")

    with pytest.raises(BackboneUnavailable, match="busy"):
        BackboneDescriber(Observer(fails), 0, tmp_path / "kept").describe(greys(3))
    observer = Observer()
    again = BackboneDescriber(observer, 0, tmp_path / "kept")
    assert again.describe(greys(3)) == [f"brightness {n}" for n in range(3)]
    assert observer.asked == [1]
    assert again.usage.cost == 1.5


def test_an_image_that_is_refused_is_named(tmp_path: Path) -> None:
    def refuses(bright: int, emit: Callable[[str], None]) -> None:
        if bright == 2:
            raise ContentRefused("The filter stopped it.")

    with pytest.raises(ToolRefused, match=r"image_list\[2\] cannot be described: The filter stopped it\. Leave"):
        BackboneDescriber(Observer(refuses), 0, tmp_path / "kept").describe(greys(4))


def test_what_a_refused_answer_took_is_paid_for_too(tmp_path: Path) -> None:
    def refuse(bright: int, emit: Callable[[str], None]) -> None:
        if bright == 1:
            error = ContentRefused("no")
            error.spent = Usage(7, 3, 0.25)
            raise error

    describer = BackboneDescriber(Observer(refuse), 0, tmp_path / "kept")
    with pytest.raises(ToolRefused, match=r"image_list\[1\] cannot be described: no"):
        describer.describe(greys(2))
    assert describer.usage == Usage(17, 4, 0.75)
