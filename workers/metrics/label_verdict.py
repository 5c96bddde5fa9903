"""The rule of reflection: whether a label passes its check, and what is wrong with one that fails.

A label passes if

- AUC of the images drawn for it is at least `AUC`,
- at least `HALF` of these images reach half of the mean of the exemplars,
- r over natural images comes near the r that is reachable.

A figure that could not be measured is not required. Only the last condition detects labels that are too narrow or too
broad. The reachable r is that of the truth if it is known (a synthetic neuron). Otherwise it is the largest r that any
yes/no label could have with these activations: the best cut of their ranking. That bound needs no truth. No true label
exceeds it, but a true label may be below it, because units err.

Thresholds come from 240 synthetic neurons of toybox-eyes, and 110 more with drawn images. Of the true labels of 1,200
neurons none fails by natural images; of 60 with drawn images and fresh seeds one does. Of 3,780 labels with a property
too many or too few 1 % pass, of those with a size added 3 % (part of this is a test).

Compared with the truth, `OF_TRUTH` separates true labels from wrong ones. Compared with the best cut, the threshold
depends on the number of bright natural images. With at least `MANY`, true labels have over `OF_BEST_CUT` of it, and
labels with a property too many or too few have less. With fewer, true labels fall as low as .6, while "large trees" may
reach .9 for trees. 1,000 images cannot separate these, so the rule lets them pass: 10 % of the wrong labels, 31 % of
those with a size added.

The share of the 20 brightest images that the label describes fails true labels of rare concepts, because dark images
are among the 20. Even among bright images, the truth describes fewer than .75 for one neuron in ten. So this share
decides only if r has no value.

The idea of reflection is from SAIA (2510.21704).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from workers.record.events import Direction
from workers.record.label_checks import CheckResult, GeneratedResult, NaturalResult

AUC = 0.8
"""Required AUC of generated images. At .9, 3 of 110 true labels failed, because the eyes miss drawn toys."""
HALF = 0.5
"""Share of the drawn images that must reach this share of the exemplars' mean. An image above that is "bright"."""
BRIGHTEST = 20
"""Maximum number of bright natural images to check."""
OF_TRUTH = 0.9
"""Required share of the truth's r."""
OF_BEST_CUT, OF_BEST_CUT_OF_FEW = 0.85, 0.6
"""Required share of the best cut's r if the truth is unknown: with `MANY` bright images, and with fewer."""
MANY = 30


@dataclass(frozen=True)
class LabelVerdict:
    """The verdict on a label. `figures` are the measured ones, named as the fields of `events.Graded`."""

    figures: Mapping[str, float] = field(default_factory=dict)
    needed: Mapping[str, float] = field(default_factory=dict)
    """Thresholds of figures. A figure without a threshold decides nothing."""
    reachable: float | None = None
    """The r of which `needed["pearson"]` is a share."""
    direction: Direction = ""

    @property
    def failed(self) -> tuple[str, ...]:
        """Names of the figures below their threshold."""
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
        "described": None if mark is None else _share(_judge_bright(natural, mark)[:BRIGHTEST]),
    }
    figures = {name: value for name, value in measured.items() if value is not None}
    reachable, share = _find_reachable(natural, mark)
    needed = {"generated_auc": AUC, "bright_positives": HALF}
    # r alone falls both for labels that are too narrow and too broad; `described` replaces it if r has no value.
    if reachable is not None and "pearson" in figures:
        needed["pearson"] = share * reachable
    else:
        needed["described"] = HALF
    # A figure that could not be measured is not required.
    needed = {name: least for name, least in needed.items() if name in figures}
    verdict = LabelVerdict(figures, needed, reachable)
    return verdict if verdict.passed else LabelVerdict(figures, needed, reachable, _find_direction(natural, mark))


def find_mark(drawn: GeneratedResult) -> float | None:
    """Return the activation above which an image is bright; None without a positive mean of exemplars."""
    return HALF * drawn.exemplar_mean if drawn.exemplar_mean is not None and drawn.exemplar_mean > 0 else None


def find_best_cut(activations: ArrayLike) -> float | None:
    """Return the largest correlation that a yes/no label could have with activations (n,); None if all are equal."""
    ranked = np.sort(np.asarray(activations, np.float64))[::-1]
    count, spread = len(ranked), float(ranked.std()) if len(ranked) else 0.0
    if count < 2 or spread == 0:
        return None
    # For any number of described images, those with the highest activations correlate best, so only cuts are tried.
    described = np.arange(1, count)
    above = np.cumsum(ranked)[:-1] - described * ranked.mean()
    return float((above / (spread * np.sqrt(described * (count - described)))).max())


def _find_reachable(natural: NaturalResult, mark: float | None) -> tuple[float | None, float]:
    """Return the reachable r, and the share of it that is required."""
    if natural.ceiling and natural.ceiling.pearson is not None and natural.ceiling.pearson > 0:
        return natural.ceiling.pearson, OF_TRUTH
    # With few bright images the best cut is high by chance, so less of it is required.
    bright = 0 if mark is None else sum(each > mark for each in natural.activations)
    return find_best_cut(natural.activations), OF_BEST_CUT if bright >= MANY else OF_BEST_CUT_OF_FEW


def _judge_bright(natural: NaturalResult, mark: float) -> list[bool]:
    """Return for each bright image with a readable answer, brightest first, whether the label describes it."""
    return [said for value, said in sorted(_read_answers(natural), reverse=True) if value > mark]


def _read_answers(natural: NaturalResult) -> list[tuple[float, bool]]:
    """Return the activation and whether the label describes the image, for images with a readable answer."""
    pairs = zip(natural.activations, natural.expected, strict=True)
    return [(value, said >= HALF) for value, said in pairs if said is not None]


def _find_direction(natural: NaturalResult, mark: float | None) -> Direction:
    """Return what natural images say. If they say nothing, images drawn for the label were dark, so it is too broad."""
    if mark is None:
        return ""
    # Bright, but not described: the label misses what excites the unit.
    missed = _share(not said for said in _judge_bright(natural, mark)) or 0.0
    dark = _share(value <= mark for value, said in _read_answers(natural) if said)
    if dark is None:  # no natural image shows it
        return "elsewhere" if missed else "too broad"
    if missed > HALF and dark > HALF:
        return "elsewhere"
    return "too narrow" if missed > dark else "too broad"


def _share(answers: Iterable[bool]) -> float | None:
    found = list(answers)
    return sum(found) / len(found) if found else None
