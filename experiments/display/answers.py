"""Show a run's answer at the top of its pages: labels and a sentence, its label check, the strongest images for and
against it, and the plot that decides. For an active run, what is known so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from django.db.models import Max
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from experiments.core.system_names import SystemNameMasker
from experiments.display.contrasts import Contrast, find_contrast
from experiments.display.evidence import Edit, Evidence, read_evidence
from experiments.display.functions.plots import plot_samples
from experiments.display.functions.samples import MAX_RECENT_SAMPLES, FunctionEvidence, read_function
from experiments.display.image_cards import ImageSource, LoggedCard, list_first_distinct
from experiments.display.label_checks import CheckFigures, CheckMark, describe_check, read_figures
from experiments.display.plots import HALF, Plot
from experiments.display.prose import first_sentence
from experiments.display.rounds import OutlineLine, outline
from experiments.display.strips import draw_strips
from experiments.models import Hypothesis, Layer, Run
from workers import registry
from workers.record import tasks
from workers.record.circuits import CIRCUIT
from workers.record.events import Audience

MAX_IMAGES = 5
"""Images for, and images against."""
STEPS = 8
"""Rounds in the line of progress."""
CONTRAST = "Activations with and without what was concluded"
DOTS = 600
"""Maximum dots in a strip of the plot that decides."""
RANK = ("supported", "open", "refuted")


@dataclass(frozen=True)
class RunAnswer:
    """The content of the card.

    `truth` is "" unless the system is a synthetic neuron, its run has ended, and the viewer may read it. `wrong`
    counts the images on the wrong side of what the label says.
    """

    run: Run
    labels: Sequence[str]
    sentence: str
    mark: CheckMark
    check: CheckFigures | None
    evidence: Evidence
    best: Sequence[LoggedCard]
    against: Sequence[LoggedCard]
    wrong: int
    contrast: Plot | None
    parted_by: str
    """What the contrast compares."""
    auc: float | None
    edit: Edit | None
    truth: str = ""
    unit: Layer | None = None
    """The layer that lists the unit; None if it has no page or is hidden."""
    leading: Sequence[Hypothesis] = field(default=())
    function: FunctionEvidence | None = None
    """Set for a run on a function; `contrast` is then the plot of its samples."""
    rounds: Sequence[OutlineLine] = field(default=())
    """Newest rounds of an active run."""

    @property
    def places(self) -> tuple[range, range]:
        """Return a place for each image that an active run may still find, for and against: the page reserves room."""
        # Otherwise the page would jump whenever a live run finds an image.
        kept = 0 if self.run.has_ended else MAX_IMAGES
        return range(kept - len(self.best)), range(kept - len(self.against))

    @property
    def is_tested(self) -> bool:
        """True if the labels say what the unit responds to; a check cannot test a task's verdict."""
        return bool(self.labels) and not tasks.find_task(self.run.task).gives_verdict

    @property
    def is_given(self) -> bool:
        return bool(self.labels or self.sentence)


def read_answer(
    run: Run, names: SystemNameMasker, *, evidence: Evidence | None = None, team: bool = True, dots: int = DOTS
) -> RunAnswer:
    """Return the current answer, in a few queries over at most 500 images: those of the run, or the given
    `evidence` of more. `team` members get links; `dots` is the maximum per strip of the plot."""
    # 1. The evidence, and the images for and against.
    labels = run.labels
    evidence = evidence or read_evidence([run], labels[0] if labels else "", run.exemplar_mean)
    best = _choose_best(evidence, labelled=bool(labels))
    against, wrong = _find_against(evidence, best)
    # 2. What may be shown of the unit.
    layer = None if names.is_masked(run) else Layer.with_circuits.filter(model__name=run.model, name=run.layer).first()
    # A run can be imported: its unit may have a number that the installed layer does not have.
    layer = layer if layer and (layer.kind == CIRCUIT or run.unit < layer.units) else None
    # The name of a synthetic neuron in its layer is the truth; it is revealed only after the end of the run.
    reveals = layer and run.system_kind == registry.BLINDED_KIND and run.has_ended
    # 3. The plot that decides, and the edit with the largest effect.
    contrast = find_contrast(run, evidence)
    function = None if run.takes_images else read_function(run, MAX_RECENT_SAMPLES)
    moved = max(evidence.edits, key=lambda edit: abs(edit.change), default=None)
    return RunAnswer(
        run,
        labels,
        first_sentence(run.statement or str(run.conclusion.get("reasoning") or "")),
        describe_check(run.label_check),
        read_figures(run.label_check, ceiling=run.has_ended and not names.is_masked(run)) if run.label_check else None,
        evidence,
        best,
        against,
        wrong,
        _draw_contrast(contrast, evidence, function, team=team, most=dots),
        contrast.title if contrast else "",
        contrast.auc if contrast else None,
        moved if moved and moved.moved else None,
        layer.name_of(run.unit) if layer and reveals else "",
        layer,
        () if run.has_ended else _find_leading(run),
        function,
        () if run.has_ended else outline(run)[-STEPS:],
    )


def _draw_contrast(
    contrast: Contrast | None, evidence: Evidence, function: FunctionEvidence | None, *, team: bool, most: int
) -> Plot | None:
    """Return the two groups of images that decide; for a function of numbers, its samples."""
    if function:
        return plot_samples(function, HALF, most, linked=team) if function.is_numeric else None
    return draw_strips(contrast.strips, evidence.scale, CONTRAST, team=team, most=most) if contrast else None


def _find_against(evidence: Evidence, best: Sequence[LoggedCard]) -> tuple[Sequence[LoggedCard], int]:
    """Return the images that most contradict the label, or come nearest to that, each once: the weakest that show
    it, and the strongest that do not.

    Also return how many of all images lie beyond the midpoint of the two means; 0 if it is unknown what images
    show.
    """
    showing, others = evidence.showing, evidence.others
    taken = {each.card.image for each in best}
    if not evidence.is_known or showing.mean is None or others.mean is None:
        # Without scenes, words of titles decide which images show the label: too unreliable to call an image wrong.
        weakest = [each for each in reversed(showing.images or others.images) if each.card.image not in taken]
        return list_first_distinct(weakest, attrgetter("card.image"), MAX_IMAGES), 0
    middle = (showing.mean + others.mean) / 2
    beyond = [(middle - each.card.activation, each) for each in showing.images]
    beyond += [(each.card.activation - middle, each) for each in others.images]
    wrong = {each.card.image for by, each in beyond if by > 0}
    ordered = sorted((pair for pair in beyond if pair[1].card.image not in taken), key=lambda pair: -pair[0])
    return list_first_distinct((each for _, each in ordered), attrgetter("card.image"), MAX_IMAGES), len(wrong)


def _choose_best(evidence: Evidence, *, labelled: bool) -> Sequence[LoggedCard]:
    """Return the strongest images that show the label; without a label or such images, the run's strongest, else
    the exemplars."""
    # Without a label no image shows it, so the first group is skipped.
    groups = (evidence.showing, evidence.others, evidence.exemplars)
    return next((each.strongest[:MAX_IMAGES] for each in groups[0 if labelled else 1 :] if each.count), ())


def _find_leading(run: Run) -> Sequence[Hypothesis]:
    """Return an active run's hypotheses of its newest list: supported ones first, without refuted ones."""
    latest = run.hypotheses.aggregate(Max("round"))["round__max"]
    listed = [each for each in run.hypotheses.filter(round=latest) if each.status != "refuted"]
    order = {status: place for place, status in enumerate(RANK)}
    # An unknown status comes last. Two fit on the card.
    return sorted(listed, key=lambda each: (order.get(each.status, len(order)), each.number))[:2]


def render_answer(
    run: Run,
    names: SystemNameMasker,
    audience: Audience = Audience.TEAM,
    pictures: ImageSource | None = None,
    *,
    acts: bool = True,
    judges: bool = False,
) -> SafeString:
    """Return the card as HTML; `acts` adds the next actions. A person who still `judges` the label blind does not
    see its check. A viewer outside the team gets no link into the site, and `pictures` of their own."""
    team = audience == Audience.TEAM
    context = {"answer": read_answer(run, names, team=team), "run": run, "team": team, "pictures": pictures}
    context |= {"acts": team and acts, "judges": judges}
    return render_to_string("display/answer.html", context)
