"""Trials: what was shown to the system and what it answered, as scenes and activations.

Turns titles and instructions into scenes by toybox's own reading of words. Titles that toybox does not fully understand
are left out, since the content of their images is unknown. Knows no image and no statistics (see `scoring`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

from workers.errors import ToolError
from workers.toybox.scientist.reading import ConversationState, ExperimentReport
from workers.toybox.world import edits, prompts
from workers.toybox.world.scenes import Scene
from workers.toybox.world.words import read_words

_EXEMPLAR = re.compile(r"exemplar \d+(?:, bright region)?: (.*)")


@dataclass(frozen=True)
class Trial:
    """One image that was drawn on purpose; positions in the scene mean nothing, words tell no more."""

    scene: Scene
    activation: float
    experiment: int
    step: str
    place: int
    source: int | None = None
    """Place, in the same experiment, of the image it was edited from."""


def read_trials(case: ConversationState) -> list[Trial]:
    """Every generated or edited image whose title says all there is to see, in order."""
    return [trial for report in case.reports for trial in _trials(report)]


def read_exemplars(case: ConversationState) -> list[tuple[Scene, float]]:
    """What the describer saw in the bright regions of the exemplars, with their activations."""
    found = []
    for report in case.reports:
        for seen in report.seen:
            if match := _EXEMPLAR.fullmatch(seen.title):
                reading = prompts.read_prompt(match.group(1), 0)
                if reading.understood:
                    found.append((reading.scene, seen.activation))
    return found


def pair_edits(trials: Sequence[Trial]) -> Iterator[tuple[Trial, Trial]]:
    """Each edit with its original."""
    places = {(trial.experiment, trial.place): trial for trial in trials}
    for trial in trials:
        original = places.get((trial.experiment, trial.source or 0))
        if original is not None:
            yield original, trial


def changed_property(before: Scene, after: Scene) -> str:
    """The one property in which two scenes differ; empty if there is none, or more than one."""
    names = [name for name in ("ground", "light") if getattr(before, name) != getattr(after, name)]
    if len(before.things) != len(after.things):
        return ""
    for old, new in zip(before.things, after.things, strict=True):
        names += [name for name in ("noun", "colour", "size") if getattr(old, name) != getattr(new, name)]
    return names[0] if len(names) == 1 else ""


def _trials(report: ExperimentReport) -> Iterator[Trial]:
    scenes: dict[int, Scene] = {}
    for seen in report.seen:
        scene: Scene | None = None
        if seen.source is None:
            scene = _scene(seen.title)
        elif seen.source in scenes:
            with suppress(ToolError):
                scene = edits.apply_edit(scenes[seen.source], seen.title, 0)
        if scene is not None:
            scenes[seen.place] = scene
            yield Trial(scene, seen.activation, report.number, report.step, seen.place, seen.source)


@lru_cache(maxsize=4096)
def _scene(title: str) -> Scene | None:
    """The scene of a caption that says everything; toybox draws at random what a prompt leaves open."""
    phrases = prompts.parse_words(read_words(title))
    whole = (
        phrases.ground and phrases.light and all(each.noun and each.colours and each.size for each in phrases.groups)
    )
    return prompts.read_prompt(title, 0).scene if whole and not phrases.ignored else None
