"""Request a check of a label on images that its author never saw. Independent of networks.

The same label of a unit, tested in the same way, is one row: a repeated request returns it. Used by pages and the API,
by evaluations, and by workers when a run has concluded.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from hashlib import sha256

from django.conf import settings
from django.db.models import F

from experiments.core import compatibility
from experiments.core.clock import database_now
from experiments.core.params import clean_line
from experiments.core.queue import ask_for
from experiments.core.units_of_runs import find_unit_of
from experiments.models import CheckStatus, LabelCheck, Run, Unit
from experiments.models.evaluation import PROBE
from experiments.models.stored import Scalar
from workers.record import tasks

BACKBONE = "backbone"
"""Use a conversation with a language model instead of a plug-in."""
PEOPLE = "people"
"""As judge: people judge natural images on a page."""


@dataclass(frozen=True)
class CheckMethod:
    """How a label is tested. All fields affect the measurement."""

    dataset: str
    """Dataset of natural images."""
    toolset: str
    """Toolset whose generator draws images."""
    writer: str
    """Writer of prompts: a key of `registry.PROMPT_WRITERS`, `BACKBONE`, or "" for none."""
    judge: str
    """Judge of natural images: a key of `registry.PRESENCE_JUDGES`, `BACKBONE`, `PEOPLE`, or "" for none."""
    backbone: str = ""
    backbone_model: str = ""
    seed: int = 0
    judges: int = 1
    """Number of people who judge each image, if people do."""
    split: str = PROBE
    """Split of the dataset's images."""
    guess: str = ""
    """Free judge that helps to draw the sample for a language model or people, or "" for none."""

    @property
    def options(self) -> dict[str, Scalar]:
        """Return the fields by name, except the split, which has a column."""
        # Keys of existing checks must not change, so new fields are left out where they have no effect
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
    """Return the method for a model. Toybox is judged exactly; elsewhere a model or people must look at images.

    `people` is the number of judges per image if people judge, 0 for the default judge.
    """
    fitting = compatibility.find_matching_plugins(model)
    images = dataset or fitting["dataset"]
    # Scenes of toybox list what they show
    toys = compatibility.is_toybox(model)
    asks = backbone not in ("", compatibility.SCRIPTED, compatibility.SCRIPTED_FUNCTIONS, compatibility.PERSON)
    writer = compatibility.TOYBOX if toys else BACKBONE if asks else ""
    judge = compatibility.TOYBOX if toys else settings.LAB_PRESENCE_JUDGE or (BACKBONE if asks else "")
    asked = (backbone, backbone_model) if asks and not toys else ("", "")
    judge = PEOPLE if people else judge
    # Only images of toybox have scenes; other datasets need a model that looks
    free = compatibility.TOYBOX if images.startswith(compatibility.TOYBOX) else settings.LAB_PRESENCE_JUDGE
    guess = free if judge in (BACKBONE, PEOPLE) else ""
    return CheckMethod(images, fitting["toolset"], writer, judge, *asked, judges=max(people, 1), guess=guess)


def request_check(
    unit: Unit, text: str, method: CheckMethod, *, enqueue: bool = True, unpriced: bool = False
) -> LabelCheck:
    """Return the label check, starting it if needed. A failed or unfinished one is tried again, unless it waits for
    people.

    `unpriced` allows a backbone without a known price, for which no allowance applies.
    """
    label = clean_line(text)
    layer = unit.layer
    # Everything that affects the result, and nothing else
    named = [layer.model.name, layer.name, unit.number, label, method.options, method.split]
    key = sha256(json.dumps(named, sort_keys=True).encode()).hexdigest()
    # Stored with the options, but not part of the key: a limit does not change the result
    cost = {"cost_limit": settings.LABEL_CHECK_COST, "unpriced": unpriced}
    images = {"dataset": method.dataset, "split": method.split}
    fields = {"unit": unit, "text": label, "options": method.options | cost, **images}
    check, _ = LabelCheck.objects.get_or_create(key=key, defaults={**fields, "beat": database_now()})
    again = check.status in (CheckStatus.FAILED, CheckStatus.UNFINISHED) or _is_outdated(check)
    if again and not check.waits_for_people:
        LabelCheck.objects.filter(pk=check.pk).update(status=CheckStatus.QUEUED, beat=database_now())
        check.refresh_from_db()
    if enqueue and check.status == CheckStatus.QUEUED:
        ask_for("check_label", check.pk)
    return check


def _is_outdated(check: LabelCheck) -> bool:
    """True if it was measured before r was tested against 0; or by toybox before it reported how it reads labels, or
    before fuzzing, the latest test."""
    untested = check.pearson is not None and check.p_value is None
    tests = (check.result.get("natural") or {}).get("other_tests")
    is_fuzzed = isinstance(tests, dict) and bool(tests.get("fuzzing"))
    lacks = not check.reading or (check.pearson is not None and not is_fuzzed)
    by_toybox = check.options.get("judge") == compatibility.TOYBOX
    return check.status == CheckStatus.DONE and (untested or (by_toybox and lacks))


def request_check_of(run: Run, *, enqueue: bool = True, people: int = 0) -> LabelCheck | None:
    """Return the check of a run's conclusion; None if it gave no label or its unit is not in the catalogue.

    Several labels are alternatives. `people` as in `choose_method`; their check does not replace an existing one, so
    the run keeps its scores meanwhile.
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
    """Assign a check to a run and its labels. Without `replace`, only if they have none."""
    free: dict[str, None] = {} if replace else {"label_check": None}
    Run.objects.filter(pk=run.pk, **free).update(label_check=check)
    run.label_set.filter(**free).update(label_check=check)


def is_wanted(run: Run) -> bool:
    """True if the run's conclusion is checked automatically, by the run's option or else the installation's."""
    return bool(run.options.get("label_check", settings.LABEL_CHECK))


def add_usage(check: LabelCheck, prompt_tokens: int, completion_tokens: int, cost: float) -> None:
    """Add the usage of a reply."""
    LabelCheck.objects.filter(pk=check.pk).update(
        prompt_tokens=F("prompt_tokens") + prompt_tokens,
        completion_tokens=F("completion_tokens") + completion_tokens,
        cost=F("cost") + cost,
    )
