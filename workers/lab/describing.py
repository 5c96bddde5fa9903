"""Puts images into words with a backbone that sees: each time in a fresh conversation, without any hypothesis in it.

Implements `protocols.Describer` for one experiment of a run. Answers are kept in a file until the experiment has its
result, so a program that has to run again, since its provider refused or its worker died, pays for none of them twice.
Made by `jobs.conduct`; what it took is part of the experiment's result.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import msgspec
from PIL.Image import Image

from workers.errors import ContentRefused, ToolRefused
from workers.lab.imaging import image_key
from workers.protocols import Backbone, ImagePart, Message, Progress, Reply, Usage, silent

OBSERVER = """\
You look at images for a study of a vision network and put them into words. You are told nothing else of the study, so
your words hang on the images alone. An image may be masked: a red line encloses the region in question, which is
bright, and the rest is darkened. Of a masked image describe what the bright region shows and what that is a part of;
leave the rest out. Of an image that is dark all over, say that nothing in it is bright. Be concrete: things and their
parts, colours, textures, materials, shapes, poses, the place. Do not speak of lines and darkness otherwise, and do not
guess what the study looks for."""

DESCRIBE = "Describe this image in one or two plain sentences."

SUMMARIZE = """\
These images belong together. Say in at most four plain sentences what their regions in question have in common, and
in how many of them you see each thing you name. Then name what differs between them."""


class BackboneDescriber:
    """See `protocols.Describer`; used by one thread. Raises what the backbone raises, and what `progress` raises."""

    def __init__(self, backbone: Backbone, seed: int, kept: Path, progress: Progress = silent) -> None:
        """`kept` is a file for this experiment alone; `progress` is called with every piece of an answer."""
        self._backbone = backbone
        self._seed = seed
        self._kept = kept
        self._progress = progress
        self._answers = answers(kept)

    @property
    def usage(self) -> Usage:
        """What this experiment's answers took, those of earlier attempts at it included."""
        found = [answer.usage for answer in self._answers.values()]
        return Usage(
            sum(usage.prompt_tokens for usage in found),
            sum(usage.completion_tokens for usage in found),
            sum(usage.cost for usage in found),
        )

    def describe(self, images: Sequence[Image]) -> list[str]:
        """One line for each image. Raises ToolRefused, naming the image, if a content filter stops one."""
        told = []
        for done, image in enumerate(images):
            self._progress("describing images", done, len(images))
            try:
                told.append(self._answer(DESCRIBE, [image], done, len(images)).text)
            except ContentRefused as error:
                raise ToolRefused(f"image_list[{done}] cannot be described: {error} Leave this image out.") from error
        self._progress("describing images", len(images), len(images))
        return told

    def summarize(self, images: Sequence[Image]) -> str:
        """A few sentences. Raises ToolRefused if a content filter stops them."""
        try:
            reply = self._answer(SUMMARIZE, images, 0, 1)
        except ContentRefused as error:
            raise ToolRefused(f"These images cannot be summarized: {error} Try fewer, or others.") from error
        self._progress("describing images", 1, 1)
        if not reply.captions:
            return reply.text
        return f"{reply.text} ({reply.captions} of the {len(images)} images were too many to be looked at.)"

    def _answer(self, question: str, images: Sequence[Image], done: int, total: int) -> Reply:
        """The observer's answer on one line; asked for unless it is there already."""
        shown = {image_key(image): image for image in images}
        name = hashlib.sha256("\n".join([question, *shown]).encode()).hexdigest()
        if name not in self._answers:
            parts = [ImagePart(key, f"(image {n}, left out)") for n, key in enumerate(shown, 1)]
            said = self._backbone.reply(
                [Message("system", (OBSERVER,)), Message("user", (*parts, question))],
                shown.__getitem__,
                lambda _: self._progress("describing images", done, total),
                self._seed,
            )
            line = " ".join(said.text.split()).encode("utf-8", "replace").decode()  # half characters are no text
            answer = Reply(line, said.usage, said.captions)
            keep(self._kept, name, answer)
            self._answers[name] = answer
        return self._answers[name]


class Kept(msgspec.Struct):
    """One line of the file."""

    name: str
    answer: Reply


def keep(path: Path, name: str, answer: Reply) -> None:
    """Add an answer to the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.write(msgspec.json.encode(Kept(name, answer)) + b"\n")


def answers(path: Path) -> dict[str, Reply]:
    """What the file holds; a line cut short by a crash is passed over."""
    found = {}
    for line in path.read_bytes().splitlines() if path.exists() else ():
        try:
            kept = msgspec.json.decode(line, type=Kept)
        except msgspec.MsgspecError:
            continue
        found[kept.name] = kept.answer
    return found
