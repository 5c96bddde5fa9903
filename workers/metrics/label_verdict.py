"""The rule of reflection: whether a label passes its check, and what is wrong with one that fails. Pure.

A label passes if
- AUC of the images drawn for it is at least `AUC`,
- at least `HALF` of these images reach half of the mean of the exemplars,
- r over natural images comes near the r that is reachable.

A figure that could not be measured is not held against the label. The last condition finds labels that are too narrow
or too broad, which the others do not. What is reachable is the r of the truth where it is known (a synthetic neuron).
Else it is the largest r that any yes/no label could have with these activations: the best cut of their ranking. That
bound needs no truth. No true label exceeds it, but a true label may stay below it, as units err.

Thresholds come from 240 synthetic neurons of toybox-eyes, and 110 more with drawn images. Of the true labels of 1,200
neurons none fails by natural images, of 60 with drawn images and fresh seeds one does; of 3,780 labels with a property
too many or too few 1 % pass, of those with a size added 3 % (a part of this is a test).
Against the truth, `OF_TRUTH` parts true labels from wrong ones. Against the best cut it depends on how many natural
images are bright. With `MANY` and more, true labels have over `OF_BEST_CUT` of it, and labels with a property too many
or too few have less. With fewer, true labels fall as low as .6, while "large trees" may reach .9 for trees: 1,000
images cannot tell these apart, so the rule lets them pass: 10 % of the wrong labels, 31 % of those with a size added.

The share of the 20 brightest images that the label describes fails true labels of rare concepts, since dark images fill
the 20. Even of images that are bright, the truth describes fewer than .75 for one neuron in ten. So this share decides
only where r has no value.

Source of the idea of reflection: SAIA (2510.21704).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from workers.record.events import Direction
from workers.record.label_checks import CheckResult, GeneratedResult, NaturalResult

AUC = 0.8
"""What the AUC of generated images has to reach: at .9, 3 of 110 true labels failed, as the eyes miss drawn toys."""
HALF = 0.5
"""Share of the drawn images that have to reach this share of the exemplars' mean; "bright" means above that."""
BRIGHTEST = 20
"""Bright natural images that are looked at, at most."""
OF_TRUTH = 0.9
"""Share of the truth's r that a label has to reach."""
OF_BEST_CUT, OF_BEST_CUT_OF_FEW = 0.85, 0.6
"""Share of the best cut's r, where the truth is not known: with `MANY` bright images, and with fewer."""
MANY = 30


@dataclass(frozen=True)
class LabelVerdict:
    """A label by the rule. `figures` are those that were measured, by the names of the fields of `events.Graded`."""

    figures: Mapping[str, float] = field(default_factory=dict)
    needed: Mapping[str, float] = field(default_factory=dict)
    """What figures have to reach. A figure without a threshold decides nothing."""
    reachable: float | None = None
    """The r that `needed["pearson"]` is a share of."""
    direction: Direction = ""

    @property
    def failed(self) -> tuple[str, ...]:
        """Names of the figures that are too low."""
        return tuple(name for name, least in self.needed.items() if self.figures[name] < least)

    @property
    def passed(self) -> bool:
        return not self.failed


def judge_label(result: CheckResult) -> LabelVerdict:
    """Judge a label by its check. Raises ValueError for a check without an AUC of generated images."""
    natural, drawn = result.natural or NaturalResult(), result.generated or GeneratedResult()
    if drawn.auc.value is None:
        raise ValueError("There is no AUC of generated images, so there is no verdict.")
    mark = find_mark(drawn)
    measured = {
        "pearson": natural.pearson.value,
        "auprc": natural.auprc.value,
        "generated_auc": drawn.auc.value,
        "bright_positives": None if mark is None else _share(each.activation > mark for each in drawn.positive),
        "described": None if mark is None else _share(_of_bright(natural, mark)[:BRIGHTEST]),
    }
    figures = {name: value for name, value in measured.items() if value is not None}
    reachable, share = _find_reachable(natural, mark)
    needed = {"generated_auc": AUC, "bright_positives": HALF}
    if reachable is not None and "pearson" in figures:
        needed["pearson"] = share * reachable
    else:
        needed["described"] = HALF
    needed = {name: least for name, least in needed.items() if name in figures}
    verdict = LabelVerdict(figures, needed, reachable)
    return verdict if verdict.passed else LabelVerdict(figures, needed, reachable, _find_direction(natural, mark))


def find_mark(drawn: GeneratedResult) -> float | None:
    """The activation above which an image is bright; None without exemplars, or where their mean is not above 0."""
    return HALF * drawn.exemplar_mean if drawn.exemplar_mean is not None and drawn.exemplar_mean > 0 else None


def find_best_cut(activations: ArrayLike) -> float | None:
    """The largest correlation that a yes/no label could have with activations (n,); None where all are equal.

    For any number k of described images, the k with the highest activations correlate best, so only cuts of the ranking
    are tried.
    """
    ranked = np.sort(np.asarray(activations, np.float64))[::-1]
    count, spread = len(ranked), float(ranked.std()) if len(ranked) else 0.0
    if count < 2 or spread == 0:
        return None
    described = np.arange(1, count)
    above = np.cumsum(ranked)[:-1] - described * ranked.mean()
    return float((above / (spread * np.sqrt(described * (count - described)))).max())


def _find_reachable(natural: NaturalResult, mark: float | None) -> tuple[float | None, float]:
    """The r that a label can have, and the share of it that is enough."""
    if natural.ceiling and natural.ceiling.pearson is not None and natural.ceiling.pearson > 0:
        return natural.ceiling.pearson, OF_TRUTH
    bright = 0 if mark is None else sum(each > mark for each in natural.activations)
    return find_best_cut(natural.activations), OF_BEST_CUT if bright >= MANY else OF_BEST_CUT_OF_FEW


def _of_bright(natural: NaturalResult, mark: float) -> list[bool]:
    """For each bright image that the judge could read, the brightest first, whether the label describes it."""
    return [said for value, said in sorted(_read_answers(natural), reverse=True) if value > mark]


def _read_answers(natural: NaturalResult) -> list[tuple[float, bool]]:
    """Activation, and whether the label describes the image, of images that the judge could read."""
    pairs = zip(natural.activations, natural.expected, strict=True)
    return [(value, said >= HALF) for value, said in pairs if said is not None]


def _find_direction(natural: NaturalResult, mark: float | None) -> Direction:
    """What natural images say; where they say nothing, images drawn for the label were dark, so it is too broad."""
    if mark is None:
        return ""
    missed = _share(not said for said in _of_bright(natural, mark)) or 0.0
    dark = _share(value <= mark for value, said in _read_answers(natural) if said)
    if dark is None:  # no natural image shows it
        return "elsewhere" if missed else "too broad"
    if missed > HALF and dark > HALF:
        return "elsewhere"
    return "too narrow" if missed > dark else "too broad"


def _share(answers: Iterable[bool]) -> float | None:
    found = list(answers)
    return sum(found) / len(found) if found else None
