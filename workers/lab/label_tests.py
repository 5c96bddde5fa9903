"""Test labels during a run, for programs: r of a label on development images.

Made by `laboratory`, called by `tools`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.errors import MissingPart, RequestError, ToolMisuse
from workers.lab.measured_splits import MeasuredSplit
from workers.lab.memory import store_images
from workers.lab.presence import judge_images
from workers.metrics.natural import NaturalScores, Surprises, find_surprises, score_natural
from workers.protocols import ImageMemory, PresenceJudge, Progress, Provenance, no_progress
from workers.record.origins import Origin
from workers.record.systems import SystemSpec

MAX_TESTS = 3
"""Maximum number of labels that a run may test."""
MIN_TEST_IMAGES = 100
"""Number of development images in a test."""
MAX_SHOWN = 3
"""Number of images of either kind shown that disagree with a label."""
NO_JUDGE = "nothing here can say what images show without asking a language model or people"
_REMEDY = "Draw images with tools.text2image and measure them with system.neuron instead."


@dataclass(frozen=True)
class LabelTestRules:
    """What a run may test, and the judge."""

    judge: str = ""
    """A key of `registry.PRESENCE_JUDGES`; "" if no label can be tested."""
    problem: str = NO_JUDGE
    """Why no label can be tested, if there is no judge."""
    used: int = 0
    """Labels that the run has already tested."""


class LabelTests:
    """The tests of one experiment."""

    def __init__(
        self,
        rules: LabelTestRules,
        spec: SystemSpec,
        development: MeasuredSplit,
        load_judge: Callable[[str], PresenceJudge],
        memory: ImageMemory,
        progress: Progress = no_progress,
    ) -> None:
        self._rules, self._spec, self._development = rules, spec, development
        self._load_judge, self._memory, self._progress = load_judge, memory, progress
        self._left = MAX_TESTS - rules.used

    def score(self, label: str) -> dict[str, Any]:
        """See `Tools.test_label`. Raises ToolMisuse, which does not count as a test, and Cancelled."""
        if not self._rules.judge:
            raise ToolMisuse(f"No label can be tested in this run: {self._rules.problem}. {_REMEDY}")
        if self._left <= 0:
            raise ToolMisuse(f"This run has tested {MAX_TESTS} labels, which is all that a run may. {_REMEDY}")
        # Development images are neither exemplars nor in the probe split, so a test reveals nothing of the images on
        # which the conclusion is checked.
        positions, activations = self._measure()
        try:
            judge = self._load_judge(self._rules.judge)
            reading = judge.read(label)
            presence = judge_images(judge, label, self._development.images, positions.tolist(), self._progress)
            scores = score_natural(activations, presence)
            if scores.r.value is None:
                # Without an r, as where no image shows the label, a test says nothing.
                raise RequestError(
                    f"The label {label!r} has no r on {scores.n} images: {scores.r.why}. Test a label that some show."
                )
            shown = self._show(positions, find_surprises(activations, presence, MAX_SHOWN))
        except RequestError as error:
            raise ToolMisuse(f"{error} This does not count: {_count_left(self._left)}.") from error
        # Only a test that gave an r counts.
        self._left -= 1
        words = [_describe_scores(scores), reading.words if reading else "", f"Now {_count_left(self._left)}."]
        return {
            "summary": f"“{label}”: {' '.join(each for each in words if each)}",
            "r": round(scores.r.value, 3),
            "n": scores.n,
            "base_rate": round(scores.base_rate or 0.0, 3),
            **shown,
        }

    def _measure(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return positions of the development images, (n,), and the unit's activations on them. Raises ToolMisuse."""
        try:
            positions, table = self._development.activations(self._spec.layer, progress=self._progress)
        # A dataset without development images is no fault of the program, but it must hear why.
        except MissingPart as error:
            raise ToolMisuse(f"No label can be tested in this run: {error} {_REMEDY}") from error
        # With fewer images r would be chance.
        if len(positions) < MIN_TEST_IMAGES:
            raise ToolMisuse(
                f"No label can be tested in this run: a test takes {MIN_TEST_IMAGES} development images, and of the "
                f"dataset {len(positions)} are. {_REMEDY}"
            )
        return positions, table[:, self._spec.unit].astype(np.float64)

    def _show(self, positions: NDArray[np.int64], found: Surprises) -> dict[str, Any]:
        """Store the images that disagree, with a title for each."""
        pictures = [self._development.picture(int(positions[at])) for at in (*found.bright, *found.dark)]
        known = [(each.image, Provenance(Origin.EXTERNAL, scene=each.scene)) for each in pictures]
        titles = ["bright, not in the label"] * len(found.bright) + ["dark, in the label"] * len(found.dark)
        return {"images": [kept.image for kept in store_images(self._memory, known)], "titles": titles}


def _describe_scores(scores: NaturalScores) -> str:
    """Describe r with its interval, the number of images and the base rate, in a sentence."""
    r = scores.r
    interval = "" if r.low is None or r.high is None else f" (95 % interval {r.low:.2f} to {r.high:.2f})"
    share = f"of which the label describes {scores.base_rate or 0.0:.1%}"
    return f"r = {r.value:.2f}{interval} on {scores.n} development images, {share}."


def _count_left(left: int) -> str:
    return f"{left or 'no'} {'test is' if left == 1 else 'tests are'} left in this run"
