"""Sources of an item's label: the agent, a labeller that sees only exemplars, an import, people, or chance."""

from __future__ import annotations

import random
from functools import partial

from django.db.models import Q

from experiments.core import compatibility
from experiments.core.compatibility import PERSON
from experiments.core.params import clean_line
from experiments.models import Evaluation, EvaluationItem, ItemStatus, Run, Unit
from experiments.pairwise import sources
from experiments.pairwise.of_evaluation import name_source
from experiments.pairwise.sources import BY_LATENT
from workers.errors import RequestError
from workers.jobs.evaluations.truth import note_cost
from workers.jobs.label_checks.images import store
from workers.jobs.label_checks.vlm_request import ask, find_backbone
from workers.jobs.laboratory import laboratory
from workers.metrics import one_shot
from workers.protocols import Picture, Progress
from workers.record.statuses import Status
from workers.record.systems import SystemSpec

AGENT, ONE_SHOT, SHUFFLED = "agent", "one-shot", "shuffled"
LATENT = "latent"
"""Option of an item: the number of the latent that labels its unit."""
DEFERRED_SOURCES = {SHUFFLED: 1}
"""Sources that come last, because they need the labels of others."""
IS_LATE = Q(source__in=list(DEFERRED_SOURCES)) | Q(source__startswith=BY_LATENT)
"""Items of these sources, and units labelled by a latent."""


def spec_of(evaluation: Evaluation, item: EvaluationItem) -> SystemSpec:
    """Return the system of an item, over the chosen dataset or the default of its model. Raises RequestError if its
    unit left the catalogue."""
    if item.unit is None:
        raise RequestError(f"{item.unit_name} is not in the catalogue any more.")
    named = str(item.options.get("dataset") or "")
    return item.unit.spec(named or find_dataset(evaluation, item.unit.layer.model.name))


def find_dataset(evaluation: Evaluation, model: str) -> str:
    """Return the dataset for images of a model: the chosen one or the default; "" for functions."""
    if evaluation.row_of_kind.families:
        return ""
    return str(evaluation.options.get("dataset") or "") or compatibility.dataset_for(model)


def find_toolset(evaluation: Evaluation, item: EvaluationItem) -> str:
    """Return the agent's toolset for an item: the chosen one or the default of its model."""
    spec = spec_of(evaluation, item)
    named = str(item.options.get("toolset") or evaluation.options.get("toolset") or "")
    return named or compatibility.toolset_for(spec.model, evaluation.backbone, str(spec.options.get("dataset") or ""))


def find_label(evaluation: Evaluation, item: EvaluationItem, progress: Progress) -> str:
    """Return the label that the item's source gives; "" if none, with the reason in the item.

    Raises Cancelled, RequestError if a run is paused or a person did not finish it, and the errors of the source.
    """
    if item.source == AGENT:
        return _read_labels(item, read_run(item), "The agent")
    if item.source == PERSON and item.run is not None:
        return _read_labels(item, _require_written(item.run), "A person")
    if item.source == ONE_SHOT:
        return _label_once(evaluation, item, progress)
    if item.source == SHUFFLED:
        return _shuffle_labels(evaluation, item)
    if item.source.startswith(BY_LATENT):
        return _take_over(evaluation, item)
    found = sources.labels_of(Unit.objects.filter(pk=item.unit_id or 0), [item.source]).get(item.unit_id or 0, {})
    if item.source not in found:
        item.reason = f"{name_source(item.source)} has no label of this unit."
        return ""
    # Imports separate alternatives by semicolons; checks understand OR.
    return clean_line(found[item.source].text.replace("; ", " OR "))


def read_run(item: EvaluationItem) -> Run:
    """Return the item's finished run. Raises RequestError if it is missing or not finished."""
    run = item.run
    if run is None and item.unit is None:
        raise RequestError(f"{item.unit_name} is not in the catalogue any more.")
    if run is None:
        raise RequestError("Its run was deleted. Score the evaluation again to start a new one.")
    if not run.has_ended:
        raise RequestError(
            f"Run {run.pk} {'waits' if run.status == 'waiting' else 'is paused'}: {run.reason} Fix this, then resume "
            "the evaluation."
        )
    return run


def _require_written(run: Run) -> Run:
    """Return the run if a person finished it. Raises RequestError, because otherwise it is not a person's label."""
    if run.backbone != PERSON:
        raise RequestError(f"Run {run.pk} was handed over to a backbone: no person has labelled this unit.")
    if run.status in (Status.CANCELLED, Status.FAILED):
        raise RequestError(f"Run {run.pk} was not written to its end ({run.get_status_display().lower()}).")
    return run


def _read_labels(item: EvaluationItem, run: Run, who: str) -> str:
    """Return the labels of a run's conclusion; "" if none, with the reason in the item."""
    # "none" says that the unit has no label.
    named = [clean_line(each) for each in run.labels if each.casefold() != "none"]
    item.reason = "" if named else run.reason or f"{who} concluded without a label."
    return " OR ".join(dict.fromkeys(named))


def _label_once(evaluation: Evaluation, item: EvaluationItem, progress: Progress) -> str:
    """Label from the masked exemplars alone, as MILAN does (paper, section 4.1), without experiments."""
    subject = laboratory().subject(spec_of(evaluation, item))
    masked = [each.masked for each in subject.exemplars(progress)]
    if not masked:
        item.reason = "No image of the dataset activates it."
        return ""
    # The scripted scientist is no language model; toybox has a labeller for it
    if evaluation.backbone == "scripted":
        return laboratory().one_shot_labeller("toybox").label(masked)
    backbone = find_backbone(evaluation.backbone, evaluation.backbone_model, sees=True, unpriced=evaluation.unpriced)
    request = one_shot.ask_for_label(store([Picture(each) for each in masked]))
    said = ask(backbone, request, one_shot.parse_one_label, partial(note_cost, item), progress, evaluation.seed)
    item.reason = "" if said else f"{backbone.label} gave no label that can be read."
    return said or ""


def _shuffle_labels(evaluation: Evaluation, item: EvaluationItem) -> str:
    """Return the agent's label of another unit of the group. No unit gets its own label, and each label is used
    once."""
    items = evaluation.items.filter(source=AGENT, status=ItemStatus.DONE, group=item.group).exclude(label="")
    known = dict(items.order_by("position").values_list("unit", "label"))
    # Database order is arbitrary; the shuffle must be reproducible
    units = sorted(known)
    if item.unit_id not in known or len(units) < 2:
        item.reason = "No other unit of its group has a label to deal."
        return ""
    # A random cycle has no fixed points
    random.Random(f"shuffled labels {evaluation.seed}").shuffle(units)
    return str(known[units[(units.index(item.unit_id) + 1) % len(units)]])


def _take_over(evaluation: Evaluation, item: EvaluationItem) -> str:
    """Return the agent's label of the latent that adds most to the item's unit."""
    latent = str(item.options.get(LATENT) or "")
    if not latent:
        item.reason = f"No latent of {item.source} adds anything to it."
        return ""
    place = {"unit__layer__model__name": item.source, "unit__number": int(latent)}
    own = evaluation.items.filter(source=AGENT, **place).first()
    if own is None or not own.label:
        item.reason = f"Latent {latent}, which adds most to it, has no label."
        return ""
    return own.label
