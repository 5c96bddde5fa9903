"""Colour units by the reviewers' newest verdict on a run, or by runs that wait for reviewers. Two queries, whatever
the size of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.db.models import Q, QuerySet

from experiments.core import blindness
from experiments.core.system_names import SystemNameMasker
from experiments.core.visibility import visible_to
from experiments.models import Layer, Outcome, Run
from experiments.units.colours import Colour


class ReviewColour(Colour):
    """The reviewers' verdict on a unit's newest run that has one."""

    ACCEPTED = "review-accept", "Accepted", "reviewers accept the conclusion"
    REVISE = "review-revise", "To be revised", "reviewers want the conclusion changed"
    REJECTED = "review-reject", "Rejected", "reviewers reject the conclusion"
    DISPUTED = "review-split", "Disputed", "reviewers do not agree"
    WAITING = "review-waiting", "In review", "a run waits for reviewers"
    NONE = "band-none", "Not reviewed", "no run of it has a verdict, or waits for one"

    @property
    def mark(self) -> str:
        """Return one character; the words beside it are for people who cannot see it."""
        return _MARKS.get(self, "")


_MARKS = {
    ReviewColour.ACCEPTED: "✓",
    ReviewColour.REVISE: "✎",
    ReviewColour.REJECTED: "✕",
    ReviewColour.DISPUTED: "≠",
    ReviewColour.WAITING: "…",
}
_OF_VERDICTS = {
    Outcome.ACCEPT: ReviewColour.ACCEPTED,
    Outcome.REVISE: ReviewColour.REVISE,
    Outcome.REJECT: ReviewColour.REJECTED,
    Outcome.SPLIT: ReviewColour.DISPUTED,
}
Reviews = Mapping[int, Mapping[int, ReviewColour]]
"""Id of a layer -> number of a unit -> its colour; without units that are not under review."""
_Row = tuple[str, str, int, ReviewColour]


def find_reviews(layers: Sequence[Layer], names: SystemNameMasker) -> Reviews:
    """Return the verdicts that this viewer may see on the units of these layers, of one model or several."""
    ids = {(layer.model.name, layer.name): layer.pk for layer in layers}
    found: dict[int, dict[int, ReviewColour]] = {pk: {} for pk in ids.values()}
    # Verdicts come last, so that they win over waiting runs.
    for model, name, number, colour in [*_list_waiting(layers, names), *_list_verdicts(layers, names)]:
        if (model, name) in ids:
            found[ids[model, name]][number] = colour
    return found


def _list_waiting(layers: Sequence[Layer], names: SystemNameMasker) -> list[_Row]:
    # Items of a closed queue are never completed: only open queues count.
    runs = _find_runs(layers, names).filter(review_items__complete=False, review_items__queue__closed=None)
    places = runs.order_by().values_list("model", "layer", "unit").distinct()
    return [(*place, ReviewColour.WAITING) for place in places]


def _list_verdicts(layers: Sequence[Layer], names: SystemNameMasker) -> list[_Row]:
    """Return verdicts, oldest run first, so that the newest one wins."""
    # A verdict of others would bias a reviewer who has still to judge the run.
    runs = _find_runs(layers, names).exclude(verdict="").exclude(blindness.has_hidden_verdict(names.viewer))
    rows = runs.order_by("pk").values_list("model", "layer", "unit", "verdict")
    return [(model, layer, unit, _OF_VERDICTS[Outcome(verdict)]) for model, layer, unit, verdict in rows]


def _find_runs(layers: Sequence[Layer], names: SystemNameMasker) -> QuerySet[Run]:
    # Models and layers are matched apart, which may find too much; the caller drops pairs that are not asked for.
    meant = Q(model__in={layer.model.name for layer in layers}, layer__in={layer.name for layer in layers})
    return visible_to(Run.objects.filter(meant)).exclude(names.are_hidden())
