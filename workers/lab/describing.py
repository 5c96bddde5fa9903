"""Describe images with a backbone that sees: each time in a fresh conversation, without any hypothesis in it.

Implements `protocols.Describer` for one experiment of a run. Made by `jobs/run_round.py`; its usage is part of the
experiment's result.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event

import msgspec
from PIL.Image import Image

from workers.errors import BackboneUnavailable, Cancelled, ContentRefused, MaiaError, ToolRefused
from workers.lab.imaging import image_key
from workers.protocols import Backbone, ImagePart, Message, Progress, Reply, StatusNote, no_progress, usage_of
from workers.record.limits import Usage

OBSERVER = """\
You look at images for a study of a vision network and put them into words. You are told nothing else of the study, so
your words hang on the images alone. An image may be masked: a red line encloses the region in question, which is
bright, and the rest is dimmed. Of a masked image describe what the bright region shows and what that is a part of;
leave the rest out unless you are asked for it. Be concrete: things and their parts, colours, textures, materials,
shapes, poses, the place. Do not speak of lines and dimness otherwise, and do not guess what the study looks for."""

DESCRIBE = "Describe this image in one or two plain sentences."

SUMMARIZE = """\
These images belong together. Say in at most four plain sentences what their regions in question have in common, and
in how many of them you see each thing you name. Then name what differs between them. If they are masked, add one
sentence that begins "Outside the regions:": which things stand there in more than one image, and in how many; what
decides may lie there."""
NOT_DESCRIBED = "image_list[%d] cannot be described: {reason} Leave this image out."
NOT_SUMMARIZED = "These images cannot be summarized: {reason} Try fewer, or others."
AT_ONCE = 8
"""Maximum number of images asked about at the same time."""
LOOK_EVERY = 0.25
"""Seconds between two checks whether a person stopped the run."""


@dataclass(frozen=True)
class _Question:
    """A question about images, which are given by key, and the name under which the answer is kept."""

    words: str
    images: Mapping[str, Image]
    name: str
    refusal: str
    """Message if a content filter stops it; {reason} is the filter's reason."""

    @classmethod
    def of(cls, words: str, images: Sequence[Image], refusal: str) -> _Question:
        # By key: the same image twice is shown once.
        shown = {image_key(image): image for image in images}
        # The words are part of the name: another question about the same images is another answer.
        return cls(words, shown, hashlib.sha256("\n".join([words, *shown]).encode()).hexdigest(), refusal)


class BackboneDescriber:
    """A `protocols.Describer` for one thread. Raises what the backbone raises, and what `progress` raises.

    The caller's thread alone calls `progress`.
    """

    def __init__(self, backbone: Backbone, seed: int, kept: Path, progress: Progress = no_progress) -> None:
        """`kept` is a file for this experiment alone; `progress` is called for every piece of an answer."""
        self._backbone = backbone
        self._seed = seed
        self._kept = kept
        self._progress = progress
        self._answers = _read_answers(kept)
        self._lost: list[Usage] = []

    @property
    def usage(self) -> Usage:
        """Usage of this experiment's answers, including earlier attempts and refused answers."""
        found = [*(answer.usage for answer in self._answers.values()), *self._lost]
        return sum(found, Usage())

    def describe(self, images: Sequence[Image]) -> list[str]:
        """Return one line for each image, `AT_ONCE` of them asked for at a time.

        Raises ToolRefused, naming the image, if a content filter stops one; what was answered before is kept.
        """
        questions = [_Question.of(DESCRIBE, [image], NOT_DESCRIBED % at) for at, image in enumerate(images)]
        self._ask(questions)
        return [self._answers[each.name].text for each in questions]

    def summarize(self, images: Sequence[Image]) -> str:
        """Return a few sentences. Raises ToolRefused if a content filter stops them."""
        question = _Question.of(SUMMARIZE, images, NOT_SUMMARIZED)
        self._ask([question])
        reply = self._answers[question.name]
        if not reply.captions:
            return reply.text
        return f"{reply.text} ({reply.captions} of the {len(images)} images were too many to be looked at.)"

    def _ask(self, questions: Sequence[_Question]) -> None:
        """Answer all questions, each asked once. Raises the first failure."""
        # By name: equal questions are asked, and paid for, once.
        left = {each.name: each for each in questions if each.name not in self._answers}
        stop = Event()
        with ThreadPoolExecutor(AT_ONCE, "describe") as pool:
            asked = {pool.submit(self._reply, each, stop): name for name, each in left.items()}
            # The pool's threads do not know the run, so only this thread reports progress and hears of a stop.
            try:
                self._collect(asked, len(questions))
            except BaseException:
                stop.set()  # requests under way stop at their next piece
                # The pool is left only when its threads are done, so what they cost is known.
                pool.shutdown(wait=True, cancel_futures=True)
                raise
        self._progress("describing images", len(questions), len(questions))

    def _collect(self, asked: Mapping[Future[Reply], str], total: int) -> None:
        """Keep each answer as it comes. After a failure no more are started."""
        waiting = set(asked)
        while waiting:
            self._progress("describing images", total - len(waiting), total)
            done, waiting = wait(waiting, LOOK_EVERY, FIRST_COMPLETED)
            for future in done:
                if not future.cancelled() and future.exception() is None:
                    self._answers[asked[future]] = future.result()
                    self._kept.parent.mkdir(parents=True, exist_ok=True)
                    # At once: a program that has to run again, because its provider refused or its worker died, must
                    # not pay twice.
                    with self._kept.open("ab") as file:
                        file.write(msgspec.json.encode((asked[future], future.result())) + b"\n")
                else:
                    # Requests under way are kept: they are paid for.
                    waiting = {each for each in waiting if not each.cancel()}
        # The first failure by position, not by time, so that the same images give the same message.
        for future in asked:  # in the order of the images
            if not future.cancelled():
                future.result()

    def _reply(self, question: _Question, stop: Event) -> Reply:
        """Return the observer's answer on one line. Raises Cancelled if the caller no longer waits."""

        def check_stop(_: str | StatusNote | None) -> None:
            if stop.is_set():
                raise Cancelled("This description is not needed any more.")

        # Numbered captions stand in for images that the backbone must leave out.
        parts = [ImagePart(key, f"(image {n}, left out)") for n, key in enumerate(question.images, 1)]
        asked = [Message("system", (OBSERVER,)), Message("user", (*parts, question.words))]
        try:
            said = self._backbone.reply(asked, question.images.__getitem__, check_stop, self._seed)
        except MaiaError as error:
            # Failed requests may cost, too.
            self._lost.append(usage_of(error))
            if isinstance(error, ContentRefused):
                raise ToolRefused(question.refusal.format(reason=error)) from error
            raise
        line = " ".join(said.text.split()).encode("utf-8", "replace").decode()  # half characters are no text
        if not line:
            self._lost.append(said.usage)
            raise BackboneUnavailable(
                f"{self._backbone.label} called a function where it was to describe an image. Choose another model."
            )
        return Reply(line, said.usage, said.captions)


def _read_answers(path: Path) -> dict[str, Reply]:
    """Read the kept answers; a line cut short by a crash is skipped."""
    found = {}
    for line in path.read_bytes().splitlines() if path.exists() else ():
        with suppress(msgspec.MsgspecError):
            name, answer = msgspec.json.decode(line, type=tuple[str, Reply])
            found[name] = answer
    return found
