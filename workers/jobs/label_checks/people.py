"""A check whose judges are people: which images they are asked about, and what their answers come to.

The weighted sample that a language model would look at (`sampling`), with images of known truth among it. The check
then waits, which is a state and no error; `experiments/judging` takes the answers and has it go on.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

import numpy as np
from django.db import transaction
from django.urls import reverse
from numpy.typing import NDArray

from experiments.core import notifications
from experiments.label_checks.questions import list_judges
from experiments.models import (
    LabelCheck,
    NotificationKind,
    PresenceAnswer,
    PresenceChoice,
    PresenceQuestion,
)
from experiments.reviews.agreement.measures import krippendorff_alpha
from experiments.reviews.agreement.ratings import RatedLine, Ratings
from experiments.reviews.lists import reviewers
from workers.errors import MissingPart, RequestError
from workers.jobs.label_checks.generated import check_generated
from workers.jobs.label_checks.held_out import HeldOut, read_held_out
from workers.jobs.label_checks.images import store
from workers.jobs.label_checks.judge_answers import JudgeAnswers
from workers.jobs.label_checks.sampling import draw_images
from workers.jobs.label_checks.subject import CheckedUnit
from workers.metrics.judge_error import measure_agreement, measure_judge_error
from workers.protocols import Progress
from workers.record.estimates import Estimate
from workers.record.label_checks import CheckImage, GeneratedResult, JudgeError

KNOWN = 6
"""Known cases that show what the label says, and as many that do not."""
PRESENCE = {PresenceChoice.YES.value: 1.0, PresenceChoice.NO.value: 0.0}
"""What an answer that decides says."""


def must_wait(check: LabelCheck, unit: CheckedUnit, progress: Progress) -> bool:
    """Whether people have still to answer; the first time, they are asked. Raises MissingPart where the dataset has no
    natural images, Cancelled, and what a generator that broke raises."""
    if not check.questions.exists():
        _put_questions(check, unit, progress)
    return check.waits_for_people


def try_generated(check: LabelCheck, unit: CheckedUnit, progress: Progress) -> GeneratedResult:
    """Images drawn for the label; a problem where nobody can write or draw them, since people can judge all the
    same."""
    try:
        return check_generated(check, unit, progress)
    except (RequestError, MissingPart) as error:
        return GeneratedResult(problem=str(error))


# --- asking ---------------------------------------------------------------------------------------------------


def _put_questions(check: LabelCheck, unit: CheckedUnit, progress: Progress) -> None:
    """Store the images and have reviewers know. The order is drawn by lot, known cases among the others."""
    held, weights = draw_images(check, unit, read_held_out(check, unit, progress), progress)
    positions = held.positions.tolist()
    progress("Storing images for people to judge", 0, len(positions))
    keys = store([held.split.picture(position) for position in positions])
    questions = [
        PresenceQuestion(image_id=key, probe_position=position, weight=weight)
        for key, position, weight in zip(keys, positions, weights.tolist(), strict=True)
    ]
    drawn = try_generated(check, unit, progress)
    questions += [
        PresenceQuestion(image_id=key, expected=expected)
        for expected, images in ((True, drawn.positive), (False, drawn.neutral))
        for key in _choose_known(images)
    ]
    random.Random(check.key).shuffle(questions)
    for position, question in enumerate(questions, 1):
        question.label_check, question.position = check, position
    with transaction.atomic():
        PresenceQuestion.objects.bulk_create(questions)
        check.waits_for_people = True
        check.save(update_fields=["waits_for_people"])
        _notify_reviewers(check, len(questions))


def _choose_known(images: Iterable[CheckImage]) -> list[str]:
    """The first image of each prompt, up to `KNOWN`."""
    by_prompt: dict[str, str] = {}
    for each in images:
        by_prompt.setdefault(each.prompt, each.image)
    return list(dict.fromkeys(by_prompt.values()))[:KNOWN]


def _notify_reviewers(check: LabelCheck, images: int) -> None:
    words = f"You are asked to judge {images} images: do they show “{check.text}”?"
    for judge in reviewers():
        notifications.notify_person(
            judge, NotificationKind.REVIEW, words, reverse("judging", args=["checks", check.pk])
        )


# --- what they said -------------------------------------------------------------------------------------------


def list_asked(check: LabelCheck, unit: CheckedUnit, pilot: HeldOut, progress: Progress) -> HeldOut:
    """The images that people were asked about: all of the pilot where they were asked before samples were kept."""
    return draw_images(check, unit, pilot, progress)[0] if "sample" in check.kept else pilot


def read_answers(check: LabelCheck, positions: NDArray[np.int64]) -> JudgeAnswers:
    """For each of the natural images (n,) the mean of the answers that decide; NaN where there is none.

    "Cannot tell" counts as an answer that could not be read. Images that nobody was shown, since somebody finished
    before, are left out: pages offer images in an order drawn by lot, so those that were judged are a random part of
    the sample, and its weights hold for them too.
    """
    place = {int(position): at for at, position in enumerate(positions)}
    answers, weights = np.full(len(positions), np.nan), np.zeros(len(positions))
    unread = 0
    for question in check.questions.filter(expected=None).prefetch_related("answers"):
        at, said = place.get(question.probe_position or 0), list(question.answers.all())
        if at is None or not said:
            continue
        mean = _mean(said)
        unread += mean is None
        answers[at], weights[at] = np.nan if mean is None else mean, question.weight
    judge = f"People ({list_judges(check).count()})"
    problem = "" if np.isfinite(answers).any() else f"Nobody could tell of any image whether it shows “{check.text}”."
    return JudgeAnswers(judge, answers, free=False, weights=weights, unread=unread, problem=problem)


def measure_people(check: LabelCheck) -> tuple[JudgeError | None, Estimate, Estimate]:
    """How often they err on the known cases that they were shown, None without any; how far two people who saw the
    same image agree; and the same corrected for chance, Krippendorff's alpha."""
    said = {question: list(question.answers.all()) for question in check.questions.prefetch_related("answers")}
    known = [(_mean(answers), each.expected) for each, answers in said.items() if each.expected is not None and answers]
    error = measure_judge_error([mean for mean, _ in known], [bool(true) for _, true in known]) if known else None
    agreement = measure_agreement([[each.answer for each in answers] for answers in said.values()])
    return error, agreement, _measure_alpha(list(said.values()))


def _measure_alpha(said: Sequence[Sequence[PresenceAnswer]]) -> Estimate:
    """Of the answers to each image, any number of them, with the measure of reviews; "cannot tell" is an answer."""
    judges = sorted({each.user_id for answers in said for each in answers})
    columns = {judge: place for place, judge in enumerate(judges)}
    values = {choice: value for value, choice in enumerate(PresenceChoice.values)}
    table = np.full((len(said), len(judges)), np.nan)
    for row, answers in enumerate(said):
        for each in answers:
            table[row, columns[each.user_id]] = values[each.answer]
    line = RatedLine("presence", "Does the image show it", "nominal", tuple(values.values()))
    found = krippendorff_alpha(Ratings(line, table, tuple(judges)))
    return Estimate(found.value, found.low, found.high, found.n, "" if found.low is not None else found.why)


def _mean(said: Iterable[PresenceAnswer]) -> float | None:
    decided = [PRESENCE[each.answer] for each in said if each.answer in PRESENCE]
    return sum(decided) / len(decided) if decided else None
