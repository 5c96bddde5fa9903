"""Label checks judged by people: choose the images, store the questions, and score the answers.

Meanwhile the check waits, which is not an error; `experiments/judging` collects the answers and resumes it.
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
    ConceptAnswer,
    ConceptChoice,
    ConceptQuestion,
    LabelCheck,
    NotificationKind,
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
"""Number of known cases that show the label, and of those that do not."""
PRESENCE = {ConceptChoice.YES.value: 1.0, ConceptChoice.NO.value: 0.0}
"""Value of an answer. "Cannot tell" has none."""


def has_to_wait(check: LabelCheck, unit: CheckedUnit, progress: Progress) -> bool:
    """True if people still have to answer. Asks them the first time. Raises MissingPart if the dataset has no natural
    images, Cancelled, and the errors of a broken generator."""
    if not check.questions.exists():
        _put_questions(check, unit, progress)
    return check.waits_for_people


def try_generated(check: LabelCheck, unit: CheckedUnit, progress: Progress) -> GeneratedResult:
    """Return images generated for the label, or a problem if no writer or generator is available."""
    try:
        return check_generated(check, unit, progress)
    # People can judge without these images.
    except (RequestError, MissingPart) as error:
        return GeneratedResult(problem=str(error))


# --- asking ---------------------------------------------------------------------------------------------------


def _put_questions(check: LabelCheck, unit: CheckedUnit, progress: Progress) -> None:
    """Store the images and notify reviewers. The order is random, with known cases among the others."""
    # The same sample as a language model would judge, so that both can be compared.
    held, weights = draw_images(check, unit, read_held_out(check, unit, progress), progress)
    positions = held.positions.tolist()
    progress("Storing images for people to judge", 0, len(positions))
    keys = store([held.split.picture(position) for position in positions])
    questions = [
        ConceptQuestion(image_id=key, probe_position=position, weight=weight)
        for key, position, weight in zip(keys, positions, weights.tolist(), strict=True)
    ]
    drawn = try_generated(check, unit, progress)
    questions += [
        ConceptQuestion(image_id=key, expected=expected)
        for expected, images in ((True, drawn.positive), (False, drawn.neutral))
        for key in _choose_known(images)
    ]
    # Known cases must not be recognizable by their position
    random.Random(check.key).shuffle(questions)
    for position, question in enumerate(questions, 1):
        question.label_check, question.position = check, position
    # A check with questions but without the flag would never resume
    with transaction.atomic():
        ConceptQuestion.objects.bulk_create(questions)
        check.waits_for_people = True
        check.save(update_fields=["waits_for_people"])
        _notify_reviewers(check, len(questions))


def _choose_known(images: Iterable[CheckImage]) -> list[str]:
    """Return the first image of each prompt, up to `KNOWN`."""
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


# --- answers ---


def list_asked(check: LabelCheck, unit: CheckedUnit, pilot: HeldOut, progress: Progress) -> HeldOut:
    """Return the images that people were asked about: the whole pilot for checks from before samples were kept."""
    return draw_images(check, unit, pilot, progress)[0] if "sample" in check.kept else pilot


def read_answers(check: LabelCheck, positions: NDArray[np.int64]) -> JudgeAnswers:
    """Return the mean of the decisive answers for each natural image, (n,); NaN if there are none. "Cannot tell" counts
    as unreadable."""
    place = {int(position): at for at, position in enumerate(positions)}
    answers, weights = np.full(len(positions), np.nan), np.zeros(len(positions))
    unread = 0
    for question in check.questions.filter(expected=None).prefetch_related("answers"):
        at, said = place.get(question.probe_position or 0), list(question.answers.all())
        # Judging may end early. Pages show images in random order, so the judged ones are a random part of the sample
        # and its weights still apply.
        if at is None or not said:
            continue
        mean = _mean(said)
        unread += mean is None
        answers[at], weights[at] = np.nan if mean is None else mean, question.weight
    judge = f"People ({list_judges(check).count()})"
    problem = "" if np.isfinite(answers).any() else f"No answer decides whether an image shows “{check.text}”."
    return JudgeAnswers(judge, answers, free=False, weights=weights, unread=unread, problem=problem)


def measure_people(check: LabelCheck) -> tuple[JudgeError | None, Estimate, Estimate]:
    """Return people's error on known cases (None without any), their agreement on the same image, and Krippendorff's
    alpha, which is corrected for chance."""
    said = {question: list(question.answers.all()) for question in check.questions.prefetch_related("answers")}
    known = [(_mean(answers), each.expected) for each, answers in said.items() if each.expected is not None and answers]
    error = measure_judge_error([mean for mean, _ in known], [bool(true) for _, true in known]) if known else None
    agreement = measure_agreement([[each.answer for each in answers] for answers in said.values()])
    return error, agreement, _measure_alpha(list(said.values()))


def _measure_alpha(said: Sequence[Sequence[ConceptAnswer]]) -> Estimate:
    """Return Krippendorff's alpha over images with any number of answers, as for reviews. "Cannot tell" is a
    category."""
    judges = sorted({each.user_id for answers in said for each in answers})
    columns = {judge: place for place, judge in enumerate(judges)}
    values = {choice: value for value, choice in enumerate(ConceptChoice.values)}
    table = np.full((len(said), len(judges)), np.nan)
    for row, answers in enumerate(said):
        for each in answers:
            table[row, columns[each.user_id]] = values[each.answer]
    line = RatedLine("presence", "Does the image show it", "nominal", tuple(values.values()))
    found = krippendorff_alpha(Ratings(line, table, tuple(judges)))
    return Estimate(found.value, found.low, found.high, found.n, "" if found.low is not None else found.why)


def _mean(said: Iterable[ConceptAnswer]) -> float | None:
    decided = [PRESENCE[each.answer] for each in said if each.answer in PRESENCE]
    return sum(decided) / len(decided) if decided else None
