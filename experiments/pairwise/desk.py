"""Implement the desk protocol of `experiments.judging` for pairs of a trial."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.urls import reverse

from experiments.core import notifications
from experiments.core.actors import Actor
from experiments.core.audit import Verb
from experiments.core.thumbnails import ImageUrls
from experiments.core.visibility import visible_to
from experiments.models import Judge, NotificationKind, Pair, PairwiseTrial, Role, Vote
from experiments.pairwise import actions, judging, sources
from experiments.pairwise.results import get_preferred_source, name_of

_COLUMNS = (
    "trial", "position", "kind", "repeats", "unit", "truth", "source_a", "label_a", "source_b", "label_b",
    "judge", "judged_by", "answer", "preferred", "shown_first", "seconds", "time", "reply",
)  # fmt: skip


@dataclass(frozen=True)
class PairView:
    """A pair as one judge sees it. Each exemplar has URLs of the masked and the full image."""

    pk: int
    labels: tuple[str, str]
    truth: str
    exemplars: Sequence[tuple[ImageUrls, ImageUrls]]

    @property
    def images(self) -> list[str]:
        return [masked.file for masked, _ in self.exemplars]

    @property
    def whole_images(self) -> list[str]:
        return [whole.file for _, whole in self.exemplars]


@dataclass(frozen=True)
class TrialDesk:
    """A trial, judged pair by pair."""

    row: PairwiseTrial

    NOUN: ClassVar[str] = "trial"
    ITEM: ClassVar[str] = "pair"
    ANSWERS: ClassVar[Mapping[str, str]] = {
        judging.FIRST: "the first label says it better",
        judging.SECOND: "the second one does",
        judging.NEITHER: "you cannot tell",
    }
    AHEAD: ClassVar[int] = 2
    PAGE: ClassVar[str] = "pairwise/judge.html"
    ITEMS: ClassVar[str] = "pairwise/pairs.html"
    GIVEN: ClassVar[Verb] = Verb.VOTE_CAST
    UNDONE: ClassVar[Verb] = Verb.VOTE_UNDONE
    CLOSES: ClassVar[Role] = actions.MANAGES
    COLUMNS: ClassVar[Sequence[str]] = _COLUMNS

    @classmethod
    def find(cls, pk: int) -> TrialDesk | None:
        row = PairwiseTrial.objects.filter(pk=pk).first()
        return cls(row) if row else None

    @classmethod
    def lock_open(cls, pk: int) -> TrialDesk:
        return cls(actions.lock_open_trial(pk))

    @property
    def is_open(self) -> bool:
        return self.row.closed is None

    def list_next(self, user: User, count: int, held: Collection[int] = ()) -> list[PairView]:
        pairs = list(self._list_pending(user).exclude(pk__in=held)[:count]) if self.is_open else []
        images = judging.exemplars_of(pair.profile_id for pair in pairs if pair.profile_id and not pair.truth)
        return [self._show(pair, user, images) for pair in pairs]

    def _list_pending(self, user: User) -> QuerySet[Pair]:
        """Return the pairs offered to this person, in order. If the trial wants a number of votes, those with the
        fewest come first."""
        rows = judging.offer(visible_to(self.row.pairs.all()), user)
        return rows.order_by("position") if self.row.judges_wanted is None else rows.order_by("given", "position")

    def _show(self, pair: Pair, user: User, images: Mapping[int, Sequence[Any]]) -> PairView:
        swapped = judging.is_swapped(self.row, pair, judging.key_of(user))
        labels = (pair.text_b, pair.text_a) if swapped else (pair.text_a, pair.text_b)
        shown = images.get(pair.profile_id or 0, [])
        exemplars = [(ImageUrls.of(each.masked_id), ImageUrls.of(each.image_id)) for each in shown]
        return PairView(pair.pk, labels, pair.truth, exemplars)

    def count_progress(self, user: User) -> tuple[int, int]:
        done = Vote.objects.filter(judge__trial=self.row, judge__user=user).count()
        return done, done + (self._list_pending(user).count() if self.is_open else 0)

    def describe(self, user: User) -> dict[str, Any]:
        done, total = self.count_progress(user)
        way = [("Pairwise trials", reverse("pairwise")), (self.row.name, self.row.get_absolute_url()), ("Judging", "")]
        return {"breadcrumbs": way, "full": done == total < self.row.pairs.count()}

    def find_item(self, pk: int) -> Pair | None:
        return self.row.pairs.filter(pk=pk).first()

    def keep(self, user: User, item: Pair, said: str, seconds: float | None) -> tuple[bool, bool]:
        judge, _ = Judge.objects.get_or_create(trial=self.row, user=user)
        swapped = judging.is_swapped(self.row, item, judging.key_of(user))
        answer = judging.answer_of(said, swapped)
        known = {"answer": answer, "swapped": swapped, "seconds": seconds}
        # A repeated request must not count twice
        vote, new = Vote.objects.get_or_create(judge=judge, pair=item, defaults=known)
        return vote.answer == answer, new

    def find_last(self, user: User) -> tuple[Vote, Pair] | None:
        # Votes are ordered by key, so the last one is the newest.
        last = Vote.objects.filter(judge__trial=self.row, judge__user=user).select_related("pair").last()
        return (last, last.pair) if last else None

    def follow(self, item: Pair | None) -> None:
        """Notify the owner once the last wanted vote is cast. `item` is the pair of that vote."""
        actions.publish(self.row.pk)
        wanted = self.row.judges_wanted
        # Exactly at the wanted number, so that the owner is told once.
        if item is None or not wanted or item.votes.filter(judge__user__isnull=False).count() != wanted:
            return
        if not judging.count_votes(self.row.pairs.all()).filter(given__lt=wanted).exists():
            words = f"Every pair of “{self.row.name}” has the {wanted} votes that were asked for: it can be closed."
            link = self.row.get_absolute_url()
            notifications.notify_person(self.row.owner, NotificationKind.REVIEW, words, link)

    def close(self, actor: Actor) -> None:
        actions.close_trial(actor, self.row.pk)

    def explain_hidden(self) -> str:
        if self.is_open:
            return "Which label is whose is hidden until the trial is closed; then its votes can be exported here."
        return ""

    def list_rows(self) -> Iterator[Sequence[Any]]:
        return _list_votes(self.row)


def _list_votes(trial: PairwiseTrial) -> Iterator[Sequence[Any]]:
    """Yield a row for each vote; for a pair without any, one with empty columns."""
    votes: dict[int, list[Vote]] = defaultdict(list)
    for vote in Vote.objects.filter(judge__trial=trial).select_related("judge__user", "pair"):
        votes[vote.pair_id].append(vote)
    for pair in visible_to(trial.pairs.select_related("original")).order_by("position"):
        repeats = pair.original.position if pair.original else None
        said = (sources.words(pair.source_a), pair.text_a, sources.words(pair.source_b), pair.text_b)
        known = [trial.name, pair.position, pair.kind, repeats, pair.unit_name, pair.truth, *said]
        for cells in [_vote_cells(vote) for vote in votes[pair.pk]] or [[None] * 8]:
            yield [*known, *cells]


def _vote_cells(vote: Vote) -> list[Any]:
    by = "person" if vote.judge.user_id else "backbone"
    source = get_preferred_source(vote)
    won = sources.words(source) if source else ""
    first = "b" if vote.swapped else "a"
    return [name_of(vote.judge), by, vote.answer, won, first, vote.seconds, vote.time, vote.reply]
