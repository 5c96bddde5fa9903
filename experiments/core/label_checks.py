"""Asking for a label to be checked on images that its author never saw. Who writes the row knows nothing of networks.

The same label of the same unit, tested in the same way, is one row: whoever asks again is given what is there. Used by
pages and the API, by evaluations, and by workers when a run has concluded.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from hashlib import sha256

from django.conf import settings
from django.db.models import F
from django.utils import timezone

from experiments.core import compatibility
from experiments.core.params import clean_line
from experiments.core.queue import ask_for
from experiments.models import CheckStatus, LabelCheck, Layer, Run, Unit

BACKBONE = "backbone"
"""Stands for a conversation with a language model where a plug-in could do the same."""


@dataclass(frozen=True)
class CheckMethod:
    """How a label is tested: all of it decides what is measured."""

    dataset: str
    """Where natural images come from."""
    toolset: str
    """Whose generator draws."""
    writer: str
    """Who writes prompts from the label: a key of `registry.PROMPT_WRITERS`, or `BACKBONE`."""
    judge: str
    """Who says what natural images show: a key of `registry.PRESENCE_JUDGES`, `BACKBONE`, or "" for nobody."""
    backbone: str = ""
    backbone_model: str = ""
    seed: int = 0


def choose_method(model: str, backbone: str = "", backbone_model: str = "", dataset: str = "") -> CheckMethod:
    """The method that suits a model: toybox is known exactly; elsewhere somebody must look."""
    fitting = compatibility.fitting(model)
    images = dataset or fitting["dataset"]
    toys = compatibility.is_toybox(model)
    asks = backbone not in ("", compatibility.SCRIPTED, compatibility.PERSON)
    writer = compatibility.TOYBOX if toys else BACKBONE
    judge = compatibility.TOYBOX if toys else settings.LAB_PRESENCE_JUDGE or (BACKBONE if asks else "")
    return CheckMethod(
        images, fitting["toolset"], writer, judge, *((backbone, backbone_model) if asks and not toys else ("", ""))
    )


def request_check(
    unit: Unit, text: str, method: CheckMethod, *, enqueue: bool = True, unpriced: bool = False
) -> LabelCheck:
    """The check of a label, begun unless it is there. One that failed or is unfinished is tried again.

    `unpriced`: a backbone may be asked though its price is not known, so that no allowance holds.
    """
    label = clean_line(text)
    layer = unit.layer
    named = [layer.model.name, layer.name, unit.number, label, asdict(method)]
    key = sha256(json.dumps(named, sort_keys=True).encode()).hexdigest()
    cost = {"cost_limit": settings.LABEL_CHECK_COST, "unpriced": unpriced}
    check, _ = LabelCheck.objects.get_or_create(
        key=key, defaults={"unit": unit, "text": label, "dataset": method.dataset, "options": asdict(method) | cost}
    )
    if check.status in (CheckStatus.FAILED, CheckStatus.UNFINISHED):
        LabelCheck.objects.filter(pk=check.pk).update(status=CheckStatus.QUEUED, beat=timezone.now())
        check.refresh_from_db()
    if enqueue and check.status == CheckStatus.QUEUED:
        ask_for("check_label", check.pk)
    return check


def request_check_of(run: Run, *, enqueue: bool = True) -> LabelCheck | None:
    """The check of what a run concluded; None where it gave no label, or its unit is not in the catalogue.

    Several labels are alternatives of one.
    """
    labels = [clean_line(str(each)) for each in run.conclusion.get("labels", [])]
    layer = Layer.objects.filter(model__name=run.model, name=run.layer, units__gt=run.unit).first()
    named = [each for each in dict.fromkeys(labels) if each and each.casefold() != "none"]
    if layer is None or not named or run.task not in ("describe", "free"):
        return None
    unit, _ = Unit.objects.get_or_create(layer=layer, number=run.unit)
    method = choose_method(run.model, run.backbone, run.backbone_model, str(run.options.get("dataset") or ""))
    check = request_check(unit, " OR ".join(named), method, enqueue=enqueue, unpriced=run.unpriced)
    Run.objects.filter(pk=run.pk).update(label_check=check)
    run.label_set.update(label_check=check)
    return check


def is_wanted(run: Run) -> bool:
    """Whether its conclusion is checked by itself: the run says so, else the installation."""
    return bool(run.options.get("label_check", settings.LABEL_CHECK))


def spend(check: LabelCheck, prompt_tokens: int, completion_tokens: int, cost: float) -> None:
    """Add what a reply took."""
    LabelCheck.objects.filter(pk=check.pk).update(
        prompt_tokens=F("prompt_tokens") + prompt_tokens,
        completion_tokens=F("completion_tokens") + completion_tokens,
        cost=F("cost") + cost,
    )
