"""Find verdicts that a viewer may see, and the labels that reviewers suggest instead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db.models import Case, IntegerField, Q, QuerySet, Value, When

from experiments.core import blindness
from experiments.core.blindness import OPEN
from experiments.core.display_name import person
from experiments.models import Adjudication, Outcome, Review, ReviewState, Run

REVIEWED, UNREVIEWED, FINAL = "reviewed", "none", "final"
CHOICES = [(REVIEWED, "Reviewed"), (UNREVIEWED, "Not reviewed"), *Outcome.choices, (FINAL, "Final")]
"""Choices of the filter of runs, in words."""


@dataclass(frozen=True)
class Correction:
    """A label that a person who judged a run suggests instead."""

    run: int
    text: str
    by: User
    is_final: bool


@dataclass(frozen=True)
class Verdict:
    """The verdict on a run: `agreeing` of `opinions` share it."""

    value: str
    is_final: bool
    opinions: int
    agreeing: int
    corrections: Sequence[Correction] = ()

    @property
    def words(self) -> str:
        return str(Outcome(self.value).label)

    @property
    def basis(self) -> str:
        """Return how the verdict was reached, with its numbers."""
        counted = f"{self.agreeing} of {self.opinions} reviews" if self.opinions != 1 else "1 review"
        if self.is_final:
            return f"final; {counted} said so" if self.opinions > 1 else "final"
        return f"{self.opinions} reviews differ" if self.value == Outcome.SPLIT else counted

    @property
    def in_words(self) -> str:
        """Return all of it in one line, for comparisons."""
        labels = "".join(f"; “{each.text}” instead, says {person(each.by)}" for each in self.corrections)
        return f"{self.words}, {self.basis}{labels}"


def find_verdicts(runs: Iterable[Run], viewer: User | None) -> Mapping[int, Verdict]:
    """Return by run the verdicts that this person may see. Three queries, none if no run has a verdict."""
    rows = [run for run in runs if run.verdict]
    if not rows:
        return {}
    keys = [run.pk for run in rows]
    # People who still have to judge a run blind must not learn its verdict.
    hidden = set(Run.objects.filter(blindness.has_hidden_verdict(viewer), pk__in=keys).values_list("pk", flat=True))
    corrected = corrections(Q(item__run__in=[key for key in keys if key not in hidden]))
    found = {}
    for run in rows:
        if run.pk not in hidden:
            instead = [each for each in corrected if each.run == run.pk]
            counts = (run.verdict_opinions, run.verdict_agreeing)
            found[run.pk] = Verdict(run.verdict, run.verdict_final, *counts, instead)
    return found


def corrections(which: Q) -> list[Correction]:
    """Return labels suggested by final verdicts and by opinions that count, final ones first. `which` filters rows
    with an `item`; the caller has checked that they may be seen."""
    given = Adjudication.objects.filter(which).select_related("adjudicator", "item").order_by("pk")
    final = {row.item.run_id: row for row in given}  # the last of each run
    found = [Correction(run, row.corrected_label, row.adjudicator, is_final=True) for run, row in final.items()]
    rows = Review.objects.filter(OPEN, which, state=ReviewState.SUBMITTED).exclude(corrected_label="")
    found += [
        Correction(review.item.run_id, review.corrected_label, review.reviewer, is_final=False)
        for review in rows.select_related("reviewer", "item").order_by("-submitted", "-pk")
    ]
    # A final verdict may come without a corrected label.
    return [each for each in found if each.text]


def of_unit(model: str, layer: str, unit: int, viewer: User) -> list[Correction]:
    """Return the corrected labels of the runs on one unit that this person may see."""
    runs = Run.objects.filter(model=model, layer=layer, unit=unit).exclude(verdict="")
    seen = runs.exclude(blindness.has_hidden_verdict(viewer)).order_by()
    return corrections(Q(item__run__in=seen.values("pk")))


def filter_by_verdict(text: str, viewer: User | None) -> Q:
    """Return a filter for runs whose verdict, as this person may see it, is `text`, one of CHOICES."""
    hidden = blindness.has_hidden_verdict(viewer)
    # A hidden verdict counts as none, so that filtering does not reveal it.
    if text == UNREVIEWED:
        return Q(verdict="") | hidden
    if text == REVIEWED:
        return ~Q(verdict="") & ~hidden
    return (Q(verdict_final=True) if text == FINAL else Q(verdict=text)) & ~hidden


def annotate_rank(runs: QuerySet[Run], viewer: User | None) -> QuerySet[Run]:
    """Annotate runs with `verdict_rank`, from accepted to disputed; None without a verdict that this person may see."""
    # The hidden case comes first: the first one that applies counts.
    places = [When(verdict=value, then=Value(place)) for place, value in enumerate(Outcome.values)]
    hidden = When(blindness.has_hidden_verdict(viewer), then=Value(None))
    return runs.alias(verdict_rank=Case(hidden, *places, output_field=IntegerField()))
