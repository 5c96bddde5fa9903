"""Threads with all that pages and the API show of them. Those who still review a run blind are shown none of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet

from experiments.comments import anchors
from experiments.core import blindness
from experiments.models import Comment, Event, Run, Thread
from experiments.models.comment import On

OF_AN_IMAGE = 20
"""Threads that the page of an image shows."""
HIDDEN = "Comments on this run are hidden from you until you have submitted your review of it."


@dataclass(frozen=True)
class Talk:
    """A thread as it is shown. `spot` is the id of the element of the transcript that it belongs to, "" for none."""

    thread: Thread
    comments: Sequence[Comment]
    spot: str
    seq: int | None
    gone: bool

    @property
    def where(self) -> str:
        """What it hangs on, in words."""
        thread = self.thread
        if thread.on == On.IMAGE and thread.observation and thread.experiment:
            return f"Image “{thread.observation.title or 'untitled'}” of experiment {thread.experiment.number}"
        if thread.experiment:
            return f"Experiment {thread.experiment.number}"
        return {On.RUN: "The run"}.get(On(thread.on), f"Event {thread.seq}")

    @property
    def link(self) -> str:
        """Where that stands in the transcript; "" for the run as a whole."""
        if self.seq is None:
            return ""
        query = urlencode({"at": self.seq, "talk": self.thread.pk})
        return f"{self.thread.run.get_absolute_url()}?{query}#{self.spot}"

    @property
    def count(self) -> int:
        return sum(comment.deleted is None for comment in self.comments)


def hides(user: User, run: Run) -> bool:
    """Whether this person is to see no comment on the run, and to write none."""
    return blindness.is_blind(user, run.pk)


def threads(run: Run) -> QuerySet[Thread]:
    """The threads of a run, with everything that is shown of them."""
    return whole(Thread.objects.filter(run=run))


def whole(rows: QuerySet[Thread]) -> QuerySet[Thread]:
    """With all that a thread is shown with. The number of queries does not depend on how many they are."""
    rows = rows.select_related("run", "experiment", "observation__image", "resolved_by")
    return rows.prefetch_related("comments__author", "comments__mentions", "comments__wordings").order_by("pk")


def of_image(user: User, key: str) -> list[Talk]:
    """The newest threads on an image as the experiments of any run logged it."""
    seen = Thread.objects.filter(observation__image=key).exclude(run__in=blindness.blinded_runs(user))
    listed = list(whole(seen).order_by("-pk")[:OF_AN_IMAGE])
    return [Talk(each, list(each.comments.all()), *spot_of(each), gone=False) for each in listed]


def talks(run: Run, rows: Iterable[Thread]) -> list[Talk]:
    """Threads of `threads`, each with its place and whether its words are still there."""
    listed = list(rows)
    spots = spots_of(run, listed)
    gone = anchors.gone(run, listed)
    return [
        Talk(thread, list(thread.comments.all()), *spots[thread.pk], thread.pk in gone)  # by primary key
        for thread in listed
    ]


def spots_of(run: Run, rows: Sequence[Thread]) -> dict[int, tuple[str, int | None]]:
    """Key of a thread -> the id of its element in the transcript, and the event that this is drawn for."""
    seqs = {thread.seq for thread in rows if thread.seq is not None}
    events = run.events.filter(seq__in=seqs, kind__in=anchors.PROGRAMS) if seqs else Event.objects.none()
    numbers = {event.seq: event.number for event in events}
    return {thread.pk: spot_of(thread, numbers) for thread in rows}


def spot_of(thread: Thread, numbers: Mapping[int, int] = {}) -> tuple[str, int | None]:
    """The same of one; `numbers` are those of the experiments whose cards stand for events."""
    if thread.experiment is not None:
        return f"experiment-{thread.experiment.number}", thread.experiment.seq
    if thread.seq is None:
        return "", None
    return (f"experiment-{numbers[thread.seq]}" if thread.seq in numbers else f"e{thread.seq}"), thread.seq


def at_spot(run: Run, event: Event) -> QuerySet[Thread]:
    """The threads on what the element of this event shows: on it, its words, its experiment and the images of that."""
    here = Q(seq=event.seq)
    if event.kind in anchors.PROGRAMS:
        number = event.number
        seqs = run.events.filter(kind__in=anchors.PROGRAMS, payload__number=number).values_list("seq", flat=True)
        here = Q(seq__in=list(seqs)) | Q(experiment__number=number)
    return threads(run).filter(here)
