"""Test imported labels on new images: plan the test, find obstacles, start it."""

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
"""Maximum units per test: of toybox, whose checks share images and cost nothing; of other models, where a
vision-language model or a person looks at images."""
MAX_SOURCES = 8
"""Maximum number of sources for which the page of imports plans tests."""


@dataclass(frozen=True)
class LabelTest:
    """A test of one source's labels of one model."""

    model: str
    source: str
    """Key of the source, such as `import:milan`."""
    units: int
    """Number of labelled units."""
    most: int
    """Maximum number of units tested at once."""
    backbone: str = ""
    """Backbone that writes prompts and judges photographs, such as `openai:gpt-4o`; "" if none is needed."""
    obstacle: str = ""
    """Why the labels cannot be tested here, with the remedy."""
    refusal: str = ""
    """Why the test does not start automatically, though a person may start it."""
    evaluation: Evaluation | None = None
    """The latest evaluation of these labels."""
    expected: Forecast | None = None

    @property
    def fields(self) -> Mapping[str, str]:
        """Return the fields sent to the form of a new evaluation."""
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
    """Count the labels of this source for units of a model."""
    return Label.objects.filter(source=source, units__layer__model__name=model).distinct().count()


def plan_test(model: str, source: str) -> LabelTest:
    """Plan the test of the labels from `source`, such as milan, for units of a model."""
    key = f"{sources.IMPORT}:{source}"
    units = Unit.objects.filter(layer__model__name=model, labels__source=source).distinct().count()
    newest = Evaluation.objects.filter(kind=EvaluationKind.LABELS, options__sources=[key], options__model=model)
    toys = compatibility.is_toybox(model)
    backbone, obstacle, refusal = ("", "", "") if toys else _choose_backbone(model)
    most = MAX_ASKED if backbone else MAX_TOYS
    obstacle = _explain_absence(model) or obstacle
    return LabelTest(model, key, units, most, backbone, obstacle, refusal, newest.select_related("job").first())


def _explain_absence(model: str) -> str:
    """Return why the units of a model cannot be measured, "" if they can."""
    row = VisionModelRow.objects.filter(name=model).first()
    if row is not None and row.available:
        return ""
    remedy = row.remedy.strip() if row else ""
    return f"{model} is not ready here, so none of its labels can be tested. {remedy or 'Settings, Models says more.'}"


def _choose_backbone(model: str) -> tuple[str, str, str]:
    """Return (backbone that judges photographs, obstacle, reason not to start automatically)."""
    backbone = compatibility.find_matching_plugins(model)["backbone"]
    if backbone in (compatibility.SCRIPTED, compatibility.PERSON):
        # A local presence judge needs no backbone
        if settings.LAB_PRESENCE_JUDGE:
            return "", "", ""
        return "", "Photographs cannot be judged here. Settings, Models says how to add a judge.", ""
    name = compatibility.model_of(backbone, "")
    unpriced = compatibility.price_unknown(backbone, name)
    refusal = f"No price is known for {name}, so no cost limit can apply." if unpriced else ""
    return f"{backbone}:{name}" if name else backbone, "", refusal


def begin(actor: Actor, model: str, source: str) -> str:
    """Start the test of newly imported labels if LABEL_CHECK is on. Return a sentence for the user, "" if it is off."""
    if not settings.LABEL_CHECK:
        return ""
    test = plan_test(model, source)
    if why := test.obstacle or test.refusal:
        return f"They are not tested: {why}"
    # A queued evaluation of all labels will include the new ones
    waiting = test.evaluation
    if waiting and not waiting.planned and waiting.job and waiting.job.status == JobStatus.QUEUED:
        return f"The queued evaluation {waiting.pk} will test them too."
    try:
        begun = actions.start(actor, NewEvaluation(test.data, sources.list_sources()))
    except (ActionRefused, PermissionDenied) as refused:
        return f"They are not tested: {refused}"
    rest = f", of {test.most:,} of their {test.units:,} units" if test.units > test.most else ""
    return f"They are tested in evaluation {begun.pk}{rest}."


def offer_tests(rows: Iterable[Import]) -> dict[int, LabelTest]:
    """Return the tests to offer, by key of a finished import of labels: one per source, beside its latest import."""
    offered: dict[tuple[str, str], int] = {}
    for row in rows:
        if row.kind == ImportKind.LABELS and row.job.status == JobStatus.DONE and len(offered) < MAX_SOURCES:
            named = str(row.job.options.get("model") or ""), " ".join(str(row.job.options.get("source") or "").split())
            offered.setdefault(named, row.pk)
    return {pk: _add_forecast(plan_test(*named)) for named, pk in offered.items()}


def _add_forecast(test: LabelTest) -> LabelTest:
    """Add the forecast of cost and time if the test can start."""
    if test.obstacle or not test.units:
        return test
    # The same form as the page, so that the forecast is that of the real evaluation
    form = NewEvaluation(test.data, [sources.LabelSource(test.source, sources.words(test.source), test.units)])
    expected = forecast.predict(form.draft(), test.units) if form.is_valid() else None
    return LabelTest(**{**test.__dict__, "expected": expected})
