"""Fuzzing: ask the check's judge about parts of images where the unit responds, and about parts where it does not.

Uses the natural images with the highest activation. They are read and measured again to get their maps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from experiments.label_checks.requests import BACKBONE, PEOPLE
from experiments.models import LabelCheck
from experiments.models.evaluation import DEVELOPMENT
from workers.errors import RequestError
from workers.jobs.label_checks.held_out import HeldOut, read_held_out
from workers.jobs.label_checks.images import AT_ONCE
from workers.jobs.label_checks.subject import CheckedUnit
from workers.jobs.label_checks.vlm_judge import look_at_parts
from workers.jobs.laboratory import laboratory
from workers.lab.imaging import mask_image
from workers.lab.parts import PartPair, Region, find_region, pair_regions
from workers.metrics.fuzzing import MAX_PARTS, assign_parts, choose_top, explain_few_parts, score_fuzzing
from workers.protocols import PartJudge, Picture, Progress, Subject, no_progress
from workers.record.estimates import Estimate
from workers.record.other_tests import FuzzingResult

BACKBONE_PARTS = 25
"""Maximum number of parts of each kind for a language model: each costs as much as an image."""
TRIED = "labels tried during a run are not tested on parts"
NO_PEOPLE = "people do not judge parts of images"
NO_PARTS = "its judge cannot be asked about parts of images"
NO_MAP = "the system gives no map of where in an image it responds"


@dataclass(frozen=True)
class PartQuestion:
    """A part of an image of the split, and whether the unit responds there."""

    position: int
    picture: Picture
    part: Region
    responds: bool


Ask = Callable[[Sequence[PartQuestion]], Sequence[float | None]]
"""Return a judge's answer for each part, in [0, 1]. May raise RequestError for a label that cannot be judged on
parts."""


def fuzz(check: LabelCheck, unit: CheckedUnit, held: HeldOut, threshold: float, progress: Progress) -> FuzzingResult:
    """Return the result of fuzzing. Raises Cancelled, and the errors of a backbone."""
    named = str(check.options.get("judge") or "")
    if why := TRIED if check.split == DEVELOPMENT else _explain_judge(named):
        return FuzzingResult(Estimate(None, why=why))
    by_backbone = named == BACKBONE
    if by_backbone:  # `held` is only the judged sample here; fuzzing needs all measured images
        held = read_held_out(check, unit, progress, int(check.kept["sample"]["images"]))

    def ask(questions: Sequence[PartQuestion]) -> Sequence[float | None]:
        return _ask_backbone(check, questions, progress) if by_backbone else _ask_plugin(check, questions, progress)

    most = BACKBONE_PARTS if by_backbone else MAX_PARTS
    subject, seed = unit.lab.subject(unit.spec), int(check.key[:8], 16)
    found = _fuzz_parts(subject, held, threshold, ask, most=most, seed=seed, progress=progress)
    return replace(found, dimmed=by_backbone or laboratory().presence_judge(named).kind != "exact")


def _fuzz_parts(
    subject: Subject,
    held: HeldOut,
    threshold: float,
    ask: Ask,
    *,
    most: int = MAX_PARTS,
    seed: int = 0,
    progress: Progress = no_progress,
) -> FuzzingResult:
    """Ask about parts of the images with the highest activation, up to `most` of each kind."""
    # Twice as many, because each image gives one part of either kind
    places = choose_top(held.activations, threshold, 2 * most)
    if why := explain_few_parts(len(places) // 2, len(places) // 2):
        return FuzzingResult(Estimate(None, n=len(places), why=why))
    positions = held.positions[places].tolist()
    pictures, regions = _find_regions(subject, held, positions, progress)
    if all(each is None for each in regions):
        return FuzzingResult(Estimate(None, n=len(places), why=NO_MAP))
    questions = _assign_parts(positions, pictures, pair_regions(regions, np.random.default_rng(seed)), seed)
    responds = np.array([each.responds for each in questions], bool)
    left_out = len(positions) - len(questions)
    if why := explain_few_parts(int(responds.sum()), int((~responds).sum())):
        return FuzzingResult(Estimate(None, n=len(questions), why=why), left_out=left_out)
    try:
        said = ask(questions)
    except RequestError as error:
        return FuzzingResult(Estimate(None, n=len(questions), why=str(error).rstrip(".")), left_out=left_out)
    answers = np.array([np.nan if each is None else each for each in said], np.float64)
    covers = [float(each.part.mean()) for each in questions]
    return replace(score_fuzzing(answers[responds], answers[~responds], covers), left_out=left_out)


def _explain_judge(named: str) -> str:
    """Return why the judge cannot be asked, "" if it can."""
    if named == PEOPLE:
        return NO_PEOPLE
    if named != BACKBONE and not hasattr(laboratory().presence_judge(named), "judge_parts"):
        return NO_PARTS
    return ""


def _find_regions(
    subject: Subject, held: HeldOut, positions: Sequence[int], progress: Progress
) -> tuple[list[Picture], list[Region | None]]:
    pictures: list[Picture] = []
    regions: list[Region | None] = []
    for start in range(0, len(positions), AT_ONCE):
        progress("Finding where the unit responds", start, len(positions))
        some = [held.split.picture(each) for each in positions[start : start + AT_ONCE]]
        answers = subject.respond([each.image for each in some])
        regions += [find_region(answer.map, each.image.size) for each, answer in zip(some, answers, strict=True)]
        pictures += some
    return pictures, regions


def _assign_parts(
    positions: Sequence[int], pictures: Sequence[Picture], pairs: Sequence[PartPair | None], seed: int
) -> list[PartQuestion]:
    """Return one part of each image that has both kinds."""
    whole = [
        (position, picture, pair)
        for position, picture, pair in zip(positions, pictures, pairs, strict=True)
        if pair is not None
    ]
    return [
        PartQuestion(position, picture, pair.responding if responds else pair.elsewhere, responds)
        for (position, picture, pair), responds in zip(whole, assign_parts(len(whole), seed=seed).tolist(), strict=True)
    ]


def _ask_plugin(check: LabelCheck, questions: Sequence[PartQuestion], progress: Progress) -> list[float | None]:
    judge = cast("PartJudge", laboratory().presence_judge(str(check.options["judge"])))
    return judge.judge_parts(
        check.text, [each.picture for each in questions], [each.part for each in questions], progress
    )


def _ask_backbone(check: LabelCheck, questions: Sequence[PartQuestion], progress: Progress) -> list[float | None]:
    # The part as a map, so that parts look like the masked images elsewhere.
    marked = [mask_image(each.picture.image, each.part.astype(np.float32), 0.5) for each in questions]
    # The name is the key of the answer that is kept.
    names = [f"{each.position} {'responds' if each.responds else 'elsewhere'}" for each in questions]
    return look_at_parts(check, check.text, names, marked, progress)
