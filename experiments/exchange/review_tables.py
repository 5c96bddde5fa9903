"""Reviews, final verdicts and agreement as rows of tables, for whoever asks: no more than the pages show that person.

Whose file holds opinions of others has seen them: `note_shown` keeps that, before the first row is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Exists, OuterRef, QuerySet

from experiments.core import blindness
from experiments.core.blindness import may_see_agreement
from experiments.core.params import parse_number
from experiments.exchange.safe_zip import ExchangeError
from experiments.models import Adjudication, Review, ReviewItem, ReviewQueue, Run
from experiments.reviews.agreement import lists as agreement_lists
from experiments.reviews.agreement.lists import AgreementRow, measures_of


def reviews(given: Mapping[str, str], viewer: User | None) -> QuerySet[Review]:
    """The submitted reviews that this person may read; of nobody, none. Raises ExchangeError for a queue that is
    none."""
    rows = blindness.visible(viewer) if viewer else Review.objects.none()
    return rows.filter(item__queue=queue_key(given)) if "queue" in given else rows


def verdicts(given: Mapping[str, str], viewer: User | None) -> QuerySet[Adjudication]:
    """The final verdicts that this person may read, each with whether it stands: none later took its place. Those of
    runs that are still to be reviewed unseen are hidden, as on the pages. Raises ExchangeError for a queue that is
    none."""
    if viewer is None:
        return Adjudication.objects.none()
    later = Adjudication.objects.filter(item=OuterRef("item"), pk__gt=OuterRef("pk")).order_by()
    hidden = Run.objects.filter(blindness.has_hidden_verdict(viewer)).order_by()
    rows = Adjudication.objects.exclude(item__run__in=hidden.values("pk")).annotate(stands=~Exists(later))
    return rows.filter(item__queue=queue_key(given)) if "queue" in given else rows


def note_shown(rows: Any, viewer: User | None) -> None:
    """Keep that this person is shown what these rows hold of opinions; rows of other tables hold none."""
    if viewer is None:
        return
    if isinstance(rows, Agreement):
        items = ReviewItem.objects.filter(queue__in=rows.queues).order_by().values_list("pk", flat=True)
    elif rows.model is Review:
        items = rows.order_by().values_list("item_id", flat=True)
    else:
        return
    blindness.note_shown(viewer, items)


@dataclass(frozen=True)
class Agreement:
    """Measures of the queues that a person may see, computed while they are read: a queryset as far as files need."""

    queues: tuple[ReviewQueue, ...]
    viewer: User

    def count(self) -> int:
        from experiments.reviews.agreement.ratings import LINES

        pairs = 0
        for queue in self.queues:
            people = agreement_lists.reviews(self.viewer, queue).order_by().values("reviewer").distinct().count()
            pairs += people * (people - 1) // 2
        return len(LINES) * (2 * len(self.queues) + pairs)

    def exists(self) -> bool:
        return bool(self.queues)

    def iterator(self, chunk_size: int = 0) -> Iterator[AgreementRow]:
        del chunk_size  # a queue at a time
        for queue in self.queues:
            yield from measures_of(queue, self.viewer)


def agreement(given: Mapping[str, str], viewer: User | None) -> Agreement | QuerySet[Review]:
    """Of one queue, or of all that this person may see the agreement of. Raises ExchangeError."""
    if viewer is None:
        return Review.objects.none()
    queues = ReviewQueue.objects.filter(pk=queue_key(given)) if "queue" in given else ReviewQueue.objects.all()
    return Agreement(tuple(queue for queue in queues.order_by("pk") if may_see_agreement(viewer, queue)), viewer)


def queue_key(given: Mapping[str, str]) -> int:
    """Raises ExchangeError for what is no number of a queue."""
    text: Any = given["queue"]
    if (number := parse_number(text)) is None:
        raise ExchangeError(f"queue: “{text[:40]}” is no number of a queue.")
    return number
