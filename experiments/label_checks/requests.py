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

from experiments.core import compatibility
from experiments.core.clock import tell_time
from experiments.core.params import clean_line
from experiments.core.queue import ask_for
from experiments.core.units_of_runs import find_unit_of
from experiments.models import CheckStatus, LabelCheck, Run, Unit
from experiments.models.evaluation import PROBE
from experiments.models.stored import Scalar
from workers.record import tasks

BACKBONE = "backbone"
"""Stands for a conversation with a language model where a plug-in could do the same."""
PEOPLE = "people"
"""As a judge: people say what natural images show, on a page, image by image."""


@dataclass(frozen=True)
class CheckMethod:
    """How a label is tested: all of it decides what is measured."""

    dataset: str
    """Where natural images come from."""
    toolset: str
    """Whose generator draws."""
    writer: str
    """Who writes prompts from the label: a key of `registry.PROMPT_WRITERS`, `BACKBONE`, or "" for nobody."""
    judge: str
    """Who says what natural images show: of `registry.PRESENCE_JUDGES`, `BACKBONE`, `PEOPLE`, or "" for nobody."""
    backbone: str = ""
    backbone_model: str = ""
    seed: int = 0
    judges: int = 1
    """How many people judge each image, where people do."""
    split: str = PROBE
    """Of the dataset's images."""
    guess: str = ""
    """Who helps to draw the images that a language model or people judge: a free judge, or "" for nobody."""

    @property
    def options(self) -> dict[str, Scalar]:
        """What of it decides what is measured, by name; the split has a column of its own."""
        found = asdict(self)
        del found["split"]
        if self.judge != PEOPLE:
            del found["judges"]
        if not self.guess:
            del found["guess"]
        return found


def choose_method(
    model: str, backbone: str = "", backbone_model: str = "", dataset: str = "", *, people: int = 0
) -> CheckMethod:
    """The method that suits a model: toybox is known exactly; elsewhere somebody must look.

    `people`: how many judge each image, where people shall say what images show; 0 for the usual judge.
    """
    fitting = compatibility.fitting(model)
    images = dataset or fitting["dataset"]
    toys = compatibility.is_toybox(model)
    asks = backbone not in ("", compatibility.SCRIPTED, compatibility.SCRIPTED_FUNCTIONS, compatibility.PERSON)
    writer = compatibility.TOYBOX if toys else BACKBONE if asks else ""
    judge = compatibility.TOYBOX if toys else settings.LAB_PRESENCE_JUDGE or (BACKBONE if asks else "")
    asked = (backbone, backbone_model) if asks and not toys else ("", "")
    judge = PEOPLE if people else judge
    free = compatibility.TOYBOX if images.startswith(compatibility.TOYBOX) else settings.LAB_PRESENCE_JUDGE
    guess = free if judge in (BACKBONE, PEOPLE) else ""
    return CheckMethod(images, fitting["toolset"], writer, judge, *asked, judges=max(people, 1), guess=guess)


def request_check(
    unit: Unit, text: str, method: CheckMethod, *, enqueue: bool = True, unpriced: bool = False
) -> LabelCheck:
    """The label check, begun unless it is there. One that failed or is unfinished is tried again, but for one that
    waits for people.

    `unpriced`: a backbone may be asked though its price is not known, so that no allowance holds.
    """
    label = clean_line(text)
    layer = unit.layer
    named = [layer.model.name, layer.name, unit.number, label, method.options, method.split]
    key = sha256(json.dumps(named, sort_keys=True).encode()).hexdigest()
    cost = {"cost_limit": settings.LABEL_CHECK_COST, "unpriced": unpriced}
    images = {"dataset": method.dataset, "split": method.split}
    fields = {"unit": unit, "text": label, "options": method.options | cost, **images}
    check, _ = LabelCheck.objects.get_or_create(key=key, defaults={**fields, "beat": tell_time()})
    again = check.status in (CheckStatus.FAILED, CheckStatus.UNFINISHED) or _is_outdated(check)
    if again and not check.waits_for_people:
        LabelCheck.objects.filter(pk=check.pk).update(status=CheckStatus.QUEUED, beat=tell_time())
        check.refresh_from_db()
    if enqueue and check.status == CheckStatus.QUEUED:
        ask_for("check_label", check.pk)
    return check


def _is_outdated(check: LabelCheck) -> bool:
    """Whether it was measured before r was tested against 0, when intervals held too seldom; or before toybox said how
    it read labels, when what it did not understand was let pass, or before fuzzing, the last of the other tests."""
    untested = check.pearson is not None and check.p_value is None
    tests = (check.result.get("natural") or {}).get("other_tests")
    is_fuzzed = isinstance(tests, dict) and bool(tests.get("fuzzing"))
    lacks = not check.reading or (check.pearson is not None and not is_fuzzed)
    by_toybox = check.options.get("judge") == compatibility.TOYBOX
    return check.status == CheckStatus.DONE and (untested or (by_toybox and lacks))


def request_check_of(run: Run, *, enqueue: bool = True, people: int = 0) -> LabelCheck | None:
    """The check of what a run concluded; None where it gave no label, or its unit is not in the catalogue.

    Several labels are alternatives of one. `people` as in `choose_method`: their check takes nobody's place, so that
    the run keeps its figures while people are asked.
    """
    labels = [clean_line(str(each)) for each in run.conclusion.get("labels", [])]
    named = [each for each in dict.fromkeys(labels) if each and each.casefold() != "none"]
    if not named or tasks.find_task(run.task).gives_verdict or (unit := find_unit_of(run)) is None:
        return None
    dataset = str(run.options.get("dataset") or "")
    method = choose_method(run.model, run.backbone, run.backbone_model, dataset, people=people)
    check = request_check(unit, " OR ".join(named), method, enqueue=enqueue, unpriced=run.unpriced)
    assign_check(run, check, replace=not people)
    return check


def assign_check(run: Run, check: LabelCheck, *, replace: bool = True) -> None:
    """Give a run and its labels the figures of a check; unless `replace`, only where they have none."""
    free: dict[str, None] = {} if replace else {"label_check": None}
    Run.objects.filter(pk=run.pk, **free).update(label_check=check)
    run.label_set.filter(**free).update(label_check=check)


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
