"""Images of a label check that people judge blind: the desk for `experiments.judging`.

People see the label and an image, but neither the unit's activation nor others' answers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from django.contrib.auth.models import User
from django.db.models import Count, Q
from django.urls import reverse

from experiments.core.actors import Actor
from experiments.core.audit import Verb
from experiments.core.visibility import visible_to
from experiments.label_checks import actions
from experiments.label_checks.questions import count_wanted, list_judges, list_open
from experiments.models import ConceptAnswer, ConceptChoice, ConceptQuestion, LabelCheck, Role

_COLUMNS = (
    "check", "label", "position", "image", "dataset_position", "draws", "weight", "expected",
    "judge", "answer", "seconds", "time",
)  # fmt: skip


@dataclass(frozen=True)
class QuestionView:
    """One image to judge. Its key is not shown, because it leads to further data."""

    pk: int
    check: int
    label: str

    truth: ClassVar[str] = ""
    whole_images: ClassVar[Sequence[str]] = ()

    @property
    def labels(self) -> tuple[str, ...]:
        return (self.label,)

    @property
    def images(self) -> list[str]:
        return [reverse("api:fetch_judged_image", args=[self.check, self.pk])]


@dataclass(frozen=True)
class CheckDesk:
    """A label check that asks people about images."""

    row: LabelCheck

    NOUN: ClassVar[str] = "check"
    ITEM: ClassVar[str] = "image"
    ANSWERS: ClassVar[Mapping[str, str]] = {
        ConceptChoice.YES: "it shows what the label says",
        ConceptChoice.NO: "it does not",
        ConceptChoice.UNSURE: "you cannot tell",
    }
    AHEAD: ClassVar[int] = 3
    PAGE: ClassVar[str] = "label_checks/judge.html"
    ITEMS: ClassVar[str] = "label_checks/questions.html"
    GIVEN: ClassVar[Verb] = Verb.IMAGE_JUDGED
    UNDONE: ClassVar[Verb] = Verb.JUDGEMENT_UNDONE
    CLOSES: ClassVar[Role] = actions.STARTS
    COLUMNS: ClassVar[Sequence[str]] = _COLUMNS

    @classmethod
    def find(cls, pk: int) -> CheckDesk | None:
        row = visible_to(LabelCheck.objects.filter(pk=pk)).first()
        return cls(row) if row else None

    @classmethod
    def lock_open(cls, pk: int) -> CheckDesk:
        return cls(actions.lock_asking(pk))

    @property
    def is_open(self) -> bool:
        return self.row.waits_for_people

    def list_next(self, user: User, count: int, held: Collection[int] = ()) -> list[QuestionView]:
        if not self.is_open:
            return []
        # `held` are images that the page has already loaded
        rows = [row for row in self.list_pending(user) if row.pk not in held][:count]
        return [QuestionView(row.pk, self.row.pk, self.row.text) for row in rows]

    def list_pending(self, user: User) -> list[ConceptQuestion]:
        """Return images that need answers and that this person has not judged, in the order of display."""
        done = ConceptAnswer.objects.filter(question__label_check=self.row, user=user).values("question")
        rows = list(list_open(self.row).exclude(pk__in=done))
        # Fewest answers first, then in random order per person: two people at once seldom get the same image, and the
        # judged images are always a random sample, on which `workers/jobs/label_checks/people.py` relies
        return sorted(rows, key=lambda row: (row.said, _draw_lot(user, row)))  # type: ignore[attr-defined]

    def count_progress(self, user: User) -> tuple[int, int]:
        every = self.row.questions.count()
        return every - len(self.list_pending(user)), every

    def describe(self, user: User) -> dict[str, Any]:
        return {
            # The breadcrumbs must not reveal the unit
            "breadcrumbs": [("Review", reverse("review")), ("Images to judge", "")],
            "others": [each for each in list_judges(self.row) if each.pk != user.pk],
        }

    def find_item(self, pk: int) -> ConceptQuestion | None:
        return self.row.questions.filter(pk=pk).first()

    def keep(self, user: User, item: ConceptQuestion, said: str, seconds: float | None) -> tuple[bool, bool]:
        known = {"answer": said, "seconds": seconds}
        # A repeated request must not count twice
        row, new = ConceptAnswer.objects.get_or_create(question=item, user=user, defaults=known)
        return row.answer == said, new

    def find_last(self, user: User) -> tuple[ConceptAnswer, ConceptQuestion] | None:
        own = ConceptAnswer.objects.filter(question__label_check=self.row, user=user)
        last = own.select_related("question").last()
        return (last, last.question) if last else None

    def follow(self, item: ConceptQuestion | None) -> None:
        """Resume the check after the last missing answer."""
        if item is not None and not list_open(self.row).exists():
            actions.resume_check(self.row)
        else:
            actions.update_progress_message(self.row)

    def close(self, actor: Actor) -> None:
        actions.finish_asking(actor, self.row.pk)

    def explain_hidden(self) -> str:
        if self.is_open:
            return "Other people's answers are hidden while people judge. They are available once the check resumes."
        return "" if self.row.questions.exists() else "People were not asked about images of this check."

    def list_rows(self) -> Iterator[Sequence[Any]]:
        return _list_answers(self.row)


def _draw_lot(user: User, question: ConceptQuestion) -> bytes:
    return hashlib.sha256(f"{user.pk} {question.pk}".encode()).digest()


def list_asking(user: User, most: int) -> list[tuple[LabelCheck, int, int]]:
    """Return the newest checks that ask people: (check, number of images, number left for this person)."""
    # `kept` and `result` can be megabytes
    checks = visible_to(LabelCheck.objects.filter(waits_for_people=True)).defer("kept", "result")[:most]
    questions = ConceptQuestion.objects.filter(label_check__in=[each.pk for each in checks]).order_by()
    said, mine = Count("answers"), Count("answers", filter=Q(answers__user=user))
    found: dict[int, list[tuple[int, int]]] = {}
    for pk, answers, own in questions.annotate(said=said, mine=mine).values_list("label_check", "said", "mine"):
        found.setdefault(pk, []).append((answers, own))
    return [(each, *_count_left(found.get(each.pk, []), count_wanted(each))) for each in checks]


def _count_left(answers: Sequence[tuple[int, int]], wanted: int) -> tuple[int, int]:
    """Return (images, images left for this person). `answers` holds for each image all answers and this person's."""
    return len(answers), sum(count < wanted and not own for count, own in answers)


def _list_answers(check: LabelCheck) -> Iterator[Sequence[Any]]:
    """Yield a row for each answer; for an image without any, one with empty columns."""
    for question in check.questions.prefetch_related("answers__user"):
        known = _question_cells(check, question)
        for cells in [_answer_cells(each) for each in question.answers.all()] or [[None] * 4]:
            yield [*known, *cells]


def _question_cells(check: LabelCheck, question: ConceptQuestion) -> list[Any]:
    natural = question.expected is None
    sampled = [question.draws, question.weight] if natural else [None, None]
    place = [question.position, question.image_id, question.probe_position]
    return [check.pk, check.text, *place, *sampled, question.expected]


def _answer_cells(answer: ConceptAnswer) -> list[Any]:
    return [answer.user.get_username(), answer.answer, answer.seconds, answer.created]
