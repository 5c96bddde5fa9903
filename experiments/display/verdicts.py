"""Verdicts as somebody may see them, and the labels that reviewers would give instead."""

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
"""What runs are filtered by, in words."""


@dataclass(frozen=True)
class Correction:
    """A label that somebody who judged a run would give instead."""

    run: int
    text: str
    by: User
    is_final: bool


@dataclass(frozen=True)
class Verdict:
    """What reviewers made of a run: `agreeing` of `opinions` share the verdict."""

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
        """How it came about, with its numbers."""
        counted = f"{self.agreeing} of {self.opinions} reviews" if self.opinions != 1 else "1 review"
        if self.is_final:
            return f"final; {counted} said so" if self.opinions > 1 else "final"
        return f"{self.opinions} reviews differ" if self.value == Outcome.SPLIT else counted

    @property
    def in_words(self) -> str:
        """All of it in one line, as a comparison has it."""
        labels = "".join(f"; “{each.text}” instead, says {person(each.by)}" for each in self.corrections)
        return f"{self.words}, {self.basis}{labels}"


def find_verdicts(runs: Iterable[Run], viewer: User | None) -> Mapping[int, Verdict]:
    """By run what this person may see of it; nothing of the others. Three queries, none if no run has a verdict."""
    rows = [run for run in runs if run.verdict]
    if not rows:
        return {}
    keys = [run.pk for run in rows]
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
    """The labels given instead by final verdicts and by opinions that count, the final ones first. `which` is of rows
    with an `item`; whoever asks has made sure that they may be seen."""
    given = Adjudication.objects.filter(which).select_related("adjudicator", "item").order_by("pk")
    final = {row.item.run_id: row for row in given}  # the last of each run
    found = [Correction(run, row.corrected_label, row.adjudicator, is_final=True) for run, row in final.items()]
    rows = Review.objects.filter(OPEN, which, state=ReviewState.SUBMITTED).exclude(corrected_label="")
    found += [
        Correction(review.item.run_id, review.corrected_label, review.reviewer, is_final=False)
        for review in rows.select_related("reviewer", "item").order_by("-submitted", "-pk")
    ]
    return [each for each in found if each.text]


def of_unit(model: str, layer: str, unit: int, viewer: User) -> list[Correction]:
    """The corrected labels of the runs on one unit that this person may see."""
    runs = Run.objects.filter(model=model, layer=layer, unit=unit).exclude(verdict="")
    seen = runs.exclude(blindness.has_hidden_verdict(viewer)).order_by()
    return corrections(Q(item__run__in=seen.values("pk")))


def filter_by_verdict(text: str, viewer: User | None) -> Q:
    """Of runs: the verdict that this person may see is as `text`, one of CHOICES, says."""
    hidden = blindness.has_hidden_verdict(viewer)
    if text == UNREVIEWED:
        return Q(verdict="") | hidden
    if text == REVIEWED:
        return ~Q(verdict="") & ~hidden
    return (Q(verdict_final=True) if text == FINAL else Q(verdict=text)) & ~hidden


def annotate_rank(runs: QuerySet[Run], viewer: User | None) -> QuerySet[Run]:
    """Each with `verdict_rank`, from accepted to disputed; None without a verdict that this person may see."""
    places = [When(verdict=value, then=Value(place)) for place, value in enumerate(Outcome.values)]
    hidden = When(blindness.has_hidden_verdict(viewer), then=Value(None))
    return runs.alias(verdict_rank=Case(hidden, *places, output_field=IntegerField()))
