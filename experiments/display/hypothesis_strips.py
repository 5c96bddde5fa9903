"""Draw for each hypothesis how far images with and without what it says differ: two rows of strokes on the run's scale,
the AUC and the numbers of images. A transcript lists each hypothesis in every round, so it is small."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from django.utils.html import format_html
from django.utils.safestring import SafeString

from experiments.display import bearing
from experiments.display.effect_sizes import separate
from experiments.display.plots import Scale
from experiments.models import Run
from workers.record.figures import figure

STEPS = 100
"""Positions along a strip."""
STRIP = (
    '<span class="sides-strip" title="{}"><svg viewBox="0 0 100 14" width="100" height="14" aria-hidden="true">'
    '<path class="with" d="{}"/><path class="without" d="{}"/></svg>AUC {} <span class="muted">n {} | {}</span></span>'
)


@dataclass(frozen=True)
class ListedHypothesis:
    """A hypothesis as a reply lists it. Its evidence was logged before that round."""

    round: int
    text: str


Bearings = dict[str, bearing.Bearing]
"""Text of a hypothesis -> its evidence; kept by callers that draw the strips of several parts of a page."""


def draw_strips(
    run: Run, listed: Collection[ListedHypothesis], scale: Scale, known: Bearings | None = None
) -> Mapping[ListedHypothesis, SafeString]:
    """Draw the strips of hypotheses with images on both sides; two queries for all texts that are not `known`."""
    known = {} if known is None else known
    texts = list(dict.fromkeys(each.text for each in listed if each.text not in known))
    if texts:
        known.update(zip(texts, bearing.images(run, texts), strict=True))
    # Evidence is found once for each text and then cut at the round of each list.
    rounds = {row.pk: row.experiment.round for each in known.values() for row in (*each.having, *each.lacking)}
    drawn = {each: _draw_strip(known[each.text], each.round, rounds, scale) for each in listed}
    return {each: strip for each, strip in drawn.items() if strip}


def _draw_strip(found: bearing.Bearing, before: int, rounds: Mapping[int, int], scale: Scale) -> SafeString:
    sides = found.having, found.lacking
    having, lacking = ([row.activation for row in rows if rounds[row.pk] < before] for rows in sides)
    auc = separate(having, lacking)
    if auc is None:
        return SafeString("")
    kinds = ("that show it", "that do not") if found.is_known else ("titled so", "titled else")
    words = f"Above: images {kinds[0]}; below: {kinds[1]}. Cliff's δ {figure(2 * auc - 1)}"
    paths = _draw_strokes(having, scale, 1), _draw_strokes(lacking, scale, 8)
    return format_html(STRIP, words, *paths, figure(auc), len(having), len(lacking))


def _draw_strokes(values: Sequence[float], scale: Scale, top: int) -> str:
    """Draw a vertical stroke at each position that holds a value."""
    # A divisor.
    span = (scale.high - scale.low) or 1.0
    # A set: equal places need one stroke, and a strip at most 101.
    places = sorted({round(STEPS * min(max((each - scale.low) / span, 0.0), 1.0)) for each in values})
    return "".join(f"M{place} {top}v5" for place in places)
