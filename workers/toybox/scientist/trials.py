"""Trials: what was shown to the system and how it responded, as scenes and activations.

Titles and instructions become scenes by toybox's own reading of words. Titles that it does not fully understand are
left out, because the content of their images is unknown. `scoring` computes statistics.
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

# The titles that `EXEMPLARS_PROGRAM` writes
_EXEMPLAR = re.compile(r"exemplar \d+(?:, bright region)?: (.*)")


@dataclass(frozen=True)
class Trial:
    """One image that was drawn on purpose. Only the words of the scene are meaningful, not its positions."""

    scene: Scene
    activation: float
    experiment: int
    step: str
    place: int
    source: int | None = None
    """Position, in the same experiment, of the image it was edited from."""


def read_trials(case: ConversationState) -> list[Trial]:
    """Return every generated or edited image whose title describes it completely, in order."""
    return [trial for report in case.reports for trial in _trials(report)]


def read_exemplars(case: ConversationState) -> list[tuple[Scene, float]]:
    """Return what the describer saw in the bright regions of the exemplars, with their activations."""
    found = []
    for report in case.reports:
        for seen in report.seen:
            if match := _EXEMPLAR.fullmatch(seen.title):
                reading = prompts.read_prompt(match.group(1), 0)
                # Words that are not understood would leave the content of the image open
                if reading.understood:
                    found.append((reading.scene, seen.activation))
    return found


def pair_edits(trials: Sequence[Trial]) -> Iterator[tuple[Trial, Trial]]:
    """Yield each original with its edit."""
    places = {(trial.experiment, trial.place): trial for trial in trials}
    for trial in trials:
        # Position 0 does not exist, so a trial without a source finds none
        original = places.get((trial.experiment, trial.source or 0))
        if original is not None:
            yield original, trial


def changed_property(before: Scene, after: Scene) -> str:
    """Return the one property in which two scenes differ; "" if there is none or more than one."""
    names = [name for name in ("ground", "light") if getattr(before, name) != getattr(after, name)]
    # Removed things change the number; which property that is cannot be told
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
            # An instruction that cannot be applied leaves the image's content unknown
            with suppress(ToolError):
                scene = edits.apply_edit(scenes[seen.source], seen.title, 0)
        if scene is not None:
            scenes[seen.place] = scene
            yield Trial(scene, seen.activation, report.number, report.step, seen.place, seen.source)


# The same titles are read again in each round
@lru_cache(maxsize=4096)
def _scene(title: str) -> Scene | None:
    """Return the scene of a caption that says everything. Toybox draws at random what a prompt leaves open."""
    phrases = prompts.parse_words(read_words(title))
    whole = (
        phrases.ground and phrases.light and all(each.noun and each.colours and each.size for each in phrases.groups)
    )
    return prompts.read_prompt(title, 0).scene if whole and not phrases.ignored else None
