"""Final verdicts: one person who has read the opinions of an item settles what is to become of its run."""

from __future__ import annotations

from django.contrib.auth.models import User

from experiments.core import blindness
from experiments.core.access import role_of
from experiments.models import Adjudication, ReviewItem
from experiments.models.member import Role
from experiments.models.review import LABEL_CHARS, State, Verdict
from experiments.reviews import projection, reservation

REASON_CHARS = 4_000


class Refused(Exception):
    """Raised when no final verdict is given; the message says why. `is_about_words` if the words themselves are why."""

    def __init__(self, words: str, *, is_about_words: bool = False) -> None:
        super().__init__(words)
        self.is_about_words = is_about_words


def obstacle(user: User, item: ReviewItem) -> str:
    """Why this person may not settle the item; "" if they may. Admins may, and reviewers who are neither among its
    opinions nor asked for the run: nobody is the judge of a dispute of their own."""
    role = role_of(user) or Role.VIEWER
    if role < Role.REVIEWER:
        return "A final verdict is given by an admin, or by a reviewer who is not among the opinions."
    if not (item.complete or item.queue.closed):
        return "A final verdict is given once the item is complete or its queue is closed."
    if not item.reviews.filter(state=State.SUBMITTED).exists():
        return "There is no opinion to settle: nobody has reviewed this item."
    if blindness.is_blind(user, item.run_id):
        return "You are still to review this run unseen: submit or decline your review first."
    if role == Role.ADMIN:
        return ""
    if item.reviews.filter(state=State.SUBMITTED, reviewer=user).exists():
        return "You are among the opinions: another reviewer or an admin gives the final verdict."
    return "You asked for this run: another reviewer or an admin gives the final verdict." * (item.run.owner == user)


def adjudicate(item: int, user: User, verdict: str, label: str, reason: str) -> Adjudication:
    """Give the final verdict on an item, or another in its place. Raises Refused."""
    words = (verdict.strip(), label.strip(), reason.replace("\r\n", "\n").strip())
    if problem := unfit(*words):
        raise Refused(problem, is_about_words=True)
    with reservation.locked(item) as row:
        if problem := obstacle(user, row):
            raise Refused(problem)
        given = dict(zip(("verdict", "corrected_label", "reason"), words, strict=True))
        made = Adjudication.objects.create(item=row, adjudicator=user, **given)
        projection.project([row.run_id], by=user)
    return made


def unfit(verdict: str, label: str, reason: str) -> str:
    """What is wrong with the words; "" if nothing is."""
    if verdict not in Verdict.values:
        return f"Choose the final verdict: one of {', '.join(Verdict.values)}."
    if len(label) > LABEL_CHARS:
        return f"The corrected label has {len(label):,} characters; at most {LABEL_CHARS} are kept."
    if not reason or len(reason) > REASON_CHARS:
        return f"Say why in 1 to {REASON_CHARS:,} characters: the author and the reviewers will read it."
    return "The words hold a zero byte, which cannot be kept." if "\x00" in label + reason else ""
