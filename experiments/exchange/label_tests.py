"""Labels that came in a file are tested on fresh images: what that takes, what stands in its way, and its beginning."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import QueryDict

from experiments.core import compatibility
from experiments.core.actors import Actor
from experiments.core.errors import ActionRefused
from experiments.evaluations import actions, forecast
from experiments.evaluations.forecast import Forecast
from experiments.evaluations.form import MAX_COST, NewEvaluation
from experiments.models import Evaluation, EvaluationKind, Import, ImportKind, JobStatus, Label, Unit, VisionModelRow
from experiments.pairwise import sources

MAX_TOYS, MAX_ASKED = 1_000, 100
"""Units whose labels are tested at once: of toybox, whose checks share their images and cost nothing; and of other
models, where somebody is asked to look."""
MAX_SOURCES = 8
"""Sources whose tests the page of imports works out."""


@dataclass(frozen=True)
class LabelTest:
    """A test of the labels that one source gives units of one model."""

    model: str
    source: str
    """Its key, as `import:milan`."""
    units: int
    """How many units it labels."""
    most: int
    """How many of them are tested at once."""
    backbone: str = ""
    """Who writes prompts and looks at photographs, as `openai:gpt-4o`; "" where nobody has to."""
    obstacle: str = ""
    """Why nothing can be tested here, with the remedy."""
    refusal: str = ""
    """Why it does not begin by itself, though a person may begin it."""
    evaluation: Evaluation | None = None
    """The newest that tests them."""
    expected: Forecast | None = None

    @property
    def fields(self) -> Mapping[str, str]:
        """What the form of a new evaluation is sent."""
        count = min(self.units, self.most)
        cost = min(settings.LABEL_CHECK_COST * count, MAX_COST)
        return {
            "kind": EvaluationKind.LABELS.value,
            "name": f"Labels of {self.model}: {sources.words(self.source)}"[:120],
            "source": self.source,
            "model": self.model,
            "units": str(count),
            "backbone": self.backbone,
            "cost": f"{cost:.2f}" if self.backbone else "",
        }

    @property
    def data(self) -> QueryDict:
        sent = QueryDict(mutable=True)
        sent.update(self.fields)
        return sent


def count_labels(model: str, source: str) -> int:
    """How many labels this source gives units of a model."""
    return Label.objects.filter(source=source, units__layer__model__name=model).distinct().count()


def plan_test(model: str, source: str) -> LabelTest:
    """How the labels that `source`, such as milan, gives units of a model are tested."""
    key = f"{sources.IMPORT}:{source}"
    units = Unit.objects.filter(layer__model__name=model, labels__source=source).distinct().count()
    newest = Evaluation.objects.filter(kind=EvaluationKind.LABELS, options__sources=[key], options__model=model)
    toys = compatibility.is_toybox(model)
    backbone, obstacle, refusal = ("", "", "") if toys else _choose_backbone(model)
    most = MAX_ASKED if backbone else MAX_TOYS
    obstacle = _explain_absence(model) or obstacle
    return LabelTest(model, key, units, most, backbone, obstacle, refusal, newest.select_related("job").first())


def _explain_absence(model: str) -> str:
    """Why the units of a model cannot be measured; "" if they can."""
    row = VisionModelRow.objects.filter(name=model).first()
    if row is not None and row.available:
        return ""
    remedy = row.remedy.strip() if row else ""
    return f"{model} is not ready here, so none of its labels can be tested. {remedy or 'Settings, Models says more.'}"


def _choose_backbone(model: str) -> tuple[str, str, str]:
    """Who looks at photographs, what stands in the way, and why it does not begin by itself."""
    backbone = compatibility.fitting(model)["backbone"]
    if backbone in (compatibility.SCRIPTED, compatibility.PERSON):
        if settings.LAB_PRESENCE_JUDGE:
            return "", "", ""
        return "", "Nobody here can say what photographs show. Settings, Models says how to add who does.", ""
    name = compatibility.model_of(backbone, "")
    unpriced = compatibility.price_unknown(backbone, name)
    refusal = f"No price is known for {name}, so no allowance would hold." if unpriced else ""
    return f"{backbone}:{name}" if name else backbone, "", refusal


def begin(actor: Actor, model: str, source: str) -> str:
    """Have labels that have just come tested, where the installation tests by itself. Returns what a person should
    know of that; "" where it does not."""
    if not settings.LABEL_CHECK:
        return ""
    test = plan_test(model, source)
    if why := test.obstacle or test.refusal:
        return f"They are not tested: {why}"
    waiting = test.evaluation
    if waiting and not waiting.planned and waiting.job and waiting.job.status == JobStatus.QUEUED:
        return f"Evaluation {waiting.pk}, which waits, tests them too."
    try:
        begun = actions.start(actor, NewEvaluation(test.data, sources.list_sources()))
    except (ActionRefused, PermissionDenied) as refused:
        return f"They are not tested: {refused}"
    rest = f", of {test.most:,} of their {test.units:,} units" if test.units > test.most else ""
    return f"They are tested in evaluation {begun.pk}{rest}."


def offer_tests(rows: Iterable[Import]) -> dict[int, LabelTest]:
    """By key of an import of labels that is done: the test of them, beside the newest of each source alone."""
    offered: dict[tuple[str, str], int] = {}
    for row in rows:
        if row.kind == ImportKind.LABELS and row.job.status == JobStatus.DONE and len(offered) < MAX_SOURCES:
            named = str(row.job.options.get("model") or ""), " ".join(str(row.job.options.get("source") or "").split())
            offered.setdefault(named, row.pk)
    return {pk: _foretell(plan_test(*named)) for named, pk in offered.items()}


def _foretell(test: LabelTest) -> LabelTest:
    """With what it would take, where it can be begun."""
    if test.obstacle or not test.units:
        return test
    form = NewEvaluation(test.data, [sources.LabelSource(test.source, sources.words(test.source), test.units)])
    expected = forecast.predict(form.draft(), test.units) if form.is_valid() else None
    return LabelTest(**{**test.__dict__, "expected": expected})
