"""Threads with all that pages and the API show of them. Those who still review a run blind are shown none of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet

from experiments.comments import anchors
from experiments.models import Comment, Event, Run, Thread
from experiments.models.comment import On
from experiments.review import blindness

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


def visible(user: User) -> QuerySet[Comment]:
    """All comments that this person may read, of whatever run."""
    return Comment.objects.exclude(thread__run__in=blindness.blinded_runs(user))


def threads(run: Run) -> QuerySet[Thread]:
    """The threads of a run, with everything that is shown of them. The number of queries does not depend on theirs."""
    rows = run.threads.select_related("run", "experiment", "observation__image", "resolved_by")
    return rows.prefetch_related("comments__author", "comments__mentions", "comments__wordings").order_by("pk")


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
    numbers = {event.seq: event.payload["number"] for event in events}
    found: dict[int, tuple[str, int | None]] = {}
    for thread in rows:
        if thread.experiment is not None:
            found[thread.pk] = (f"experiment-{thread.experiment.number}", thread.experiment.seq)
        elif thread.seq in numbers:
            found[thread.pk] = (f"experiment-{numbers[thread.seq]}", thread.seq)
        else:
            found[thread.pk] = (f"e{thread.seq}", thread.seq) if thread.seq else ("", None)
    return found


def at_spot(run: Run, event: Event) -> QuerySet[Thread]:
    """The threads on what the element of this event shows: on it, its words, its experiment and the images of that."""
    here = Q(seq=event.seq)
    if event.kind in anchors.PROGRAMS:
        number = event.payload["number"]
        seqs = run.events.filter(kind__in=anchors.PROGRAMS, payload__number=number).values_list("seq", flat=True)
        here = Q(seq__in=list(seqs)) | Q(experiment__number=number)
    return threads(run).filter(here)
