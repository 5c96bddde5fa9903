"""Made-up evaluations of every kind, done and unfinished, and label checks in every status."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from experiments.models import (
    CheckStatus,
    Evaluation,
    EvaluationItem,
    EvaluationKind,
    Image,
    ItemStatus,
    Job,
    JobKind,
    JobStatus,
    Label,
    LabelCheck,
    Layer,
    Member,
    Role,
    Run,
    Unit,
    VisionModelRow,
)
from tests.support.seeding import results
from workers.metrics.detection import score_detection, score_intruder
from workers.metrics.fuzzing import score_fuzzing
from workers.metrics.hard_negatives import score_hard_negatives
from workers.metrics.simulation import score_simulation
from workers.record.decoding import encode
from workers.record.estimates import Estimate
from workers.record.label_checks import CheckImage, CheckResult, GeneratedResult, JudgeError, NaturalResult, Reference
from workers.record.other_tests import NeighbourUnit, OtherTests

LABELS = ("red balls", "round things on grass", "cars at night", "anything blue", "two cones", "a house beside a tree")
UNITS = 12
PROBE = 400
"""Natural images of a check."""
REASONS = {
    CheckStatus.UNFINISHED: "The budget of $0.50 was reached after 212 of 400 images.",
    CheckStatus.UNTESTABLE: "“various things” describes nearly every image.",
    CheckStatus.FAILED: "The provider refused: run `manage.py check` and look at its key.",
}
Pictures = Sequence[tuple[Image, str]]


@dataclass(frozen=True)
class SeededEvaluations:
    evaluations: int
    checks: int


def seed(count: int, progress: Callable[[str, int, int], None], pictures: Pictures) -> SeededEvaluations:
    """Add so many evaluations, at least one of each kind where there are six, and the checks that they count."""
    chance = random.Random(count)
    owner = _owner()
    units = _units()
    checks = [make_check(unit, LABELS[n % len(LABELS)], status, chance, pictures) for n, unit, status in _plan(units)]
    runs = [_run(owner, check, chance) for check in checks]
    for number in range(count):
        kind = list(EvaluationKind)[number % len(EvaluationKind)]
        make_evaluation(owner, kind, checks, runs, chance, pictures, unfinished=number % 4 == 3)
        progress("evaluations", number + 1, count)
    return SeededEvaluations(count, len(checks))


def _owner() -> User:
    user, _ = User.objects.get_or_create(username="seeded", defaults={"password": "!"})
    Member.objects.get_or_create(user=user, defaults={"role": Role.RESEARCHER})
    return user


def _units() -> list[Unit]:
    model, _ = VisionModelRow.objects.get_or_create(name="toybox")
    known = {"position": 4, "path": "layer4", "kind": "conv", "units": 64}
    layer, _ = Layer.objects.get_or_create(model=model, name="layer4", defaults=known)
    return [Unit.objects.get_or_create(layer=layer, number=number)[0] for number in range(UNITS)]


def _plan(units: Sequence[Unit]) -> list[tuple[int, Unit, CheckStatus]]:
    others = [status for status in CheckStatus if status != CheckStatus.DONE]
    return [(n, unit, others[n - 7] if 7 <= n < 7 + len(others) else CheckStatus.DONE) for n, unit in enumerate(units)]


def _run(owner: User, check: LabelCheck, chance: random.Random) -> Run:
    ended = timezone.now() - timedelta(minutes=chance.randrange(9, 900))
    conclusion: Any = {"description": f"It responds to {check.text}.", "labels": [check.text]}
    run = Run.objects.create(
        owner=owner,
        question=f"What does unit {check.unit.number} of layer4 respond to?",
        task="describe",
        model="toybox",
        layer="layer4",
        unit=check.unit.number,
        backbone="scripted",
        options={"seeded": True},
        status="concluded",
        seconds=chance.uniform(4, 30),
        ended=ended,
        conclusion=conclusion,
        label_check=check,
    )
    label = Label.objects.create(text=check.text, source="run", run=run, label_check=check)
    label.units.add(check.unit)
    return run


# --- checks ---


def make_check(
    unit: Unit, text: str, status: CheckStatus, chance: random.Random, pictures: Pictures = ()
) -> LabelCheck:
    """A check in a status, with what one of that status has found."""
    found = find(chance, pictures) if status in (CheckStatus.DONE, CheckStatus.UNFINISHED) else CheckResult()
    natural, generated = found.natural, found.generated
    r, auprc = (natural.pearson, natural.auprc) if natural else (Estimate(), Estimate())
    options: Any = {"toolset": "toybox", "writer": "toybox", "judge": "toybox", "seed": 0}
    return LabelCheck.objects.create(
        key=f"{chance.getrandbits(256):064x}",
        unit=unit,
        text=text,
        dataset="toybox",
        options=options,
        status=status,
        reason=REASONS.get(status, ""),
        measured=timezone.now() if natural else None,
        seconds=chance.uniform(2, 9) if natural else 0,
        pearson=r.value,
        pearson_low=r.low,
        pearson_high=r.high,
        auprc=auprc.value,
        auprc_low=auprc.low,
        auprc_high=auprc.high,
        base_rate=natural.base_rate if natural else None,
        generated_auc=generated.auc.value if generated else None,
        result=encode(found) if natural else {},
    )


def find(chance: random.Random, pictures: Pictures) -> CheckResult:
    """What a check might find: activations that go with the label as far as its r says."""
    r = chance.uniform(0.05, 0.9)
    present = [chance.random() < 0.15 for _ in range(PROBE)]
    activations = [
        max(0.0, chance.gauss(1.2, 0.9) + (9.0 * r if here else 0.0) * chance.uniform(0.4, 1)) for here in present
    ]
    hardness = [chance.random() for _ in present]
    natural = NaturalResult(
        dataset="toybox",
        judge="toybox",
        exact=chance.random() < 0.5,
        images=PROBE,
        unread=chance.randrange(4),
        base_rate=sum(present) / PROBE,
        threshold=2.5,
        pearson=Estimate(r, max(-1.0, r - 0.09), min(1.0, r + 0.08), PROBE),
        auprc=Estimate(min(0.98, r + 0.07), r - 0.04, min(0.99, r + 0.15), PROBE),
        f1=r * 0.9,
        deciles=tuple(None if n < 2 else r * n / 10 for n in range(10)),
        floors=(Reference("label of unit 31: green cones", 0.04, 0.17), Reference("unit 5, at random", -0.02, 0.14)),
        ceiling=Reference("ball", min(0.97, r + 0.2), 0.98),
        judge_error=JudgeError(60, Estimate(0.03, 0.0, 0.1, 40), Estimate(0.08, 0.02, 0.2, 20), 1),
        activations=tuple(activations),
        expected=tuple(1.0 if here else 0.0 for here in present),
        bright_without=_images(pictures, chance, 0.0),
        dark_with=_images(pictures, chance, 1.0),
        other_tests=OtherTests(
            score_detection(activations, present, 2.5),
            score_intruder(activations, present, 2.5),
            score_simulation(activations, present),
            score_hard_negatives(activations, present, 2.5, hardness),
            replace(
                score_hard_negatives(activations, present, 2.5, hardness[::-1]), neighbours=(NeighbourUnit(31, 0.42),)
            ),
            score_fuzzing([chance.random() < 0.4 + r / 2 for _ in range(50)], [0.0] * 46 + [1.0] * 4, [0.08]),
        ),
    )
    generated = GeneratedResult(
        writer="toybox",
        generator="toybox",
        prompts=7,
        seeds=2,
        refused=1,
        positive_mean=Estimate(6.2, 5.1, 7.3, 7),
        neutral_mean=Estimate(1.1, 0.6, 1.7, 7),
        exemplar_mean=7.4,
        auc=Estimate(0.94, 0.8, 1.0, 14),
        cosy_auc=0.97,
        cosy_mad=3.4,
        predictiveness=Estimate(0.85, 0.64, 0.95, 20),
        sweep=tuple((n / 10, max(0.5, 0.9 - abs(n - 4) / 12)) for n in range(1, 10)),
        floors=(Reference("label of unit 31", auc=0.52),),
        positive=_images(pictures, chance, 1.0, "a red ball on grass"),
        neutral=_images(pictures, chance, 0.0, "a blue cube in snow"),
    )
    return CheckResult(natural, generated)


def _images(pictures: Pictures, chance: random.Random, expected: float, prompt: str = "") -> tuple[CheckImage, ...]:
    some = chance.sample(list(pictures), min(7, len(pictures)))
    activations = sorted((chance.uniform(0.2, 9.0) for _ in some), reverse=not expected)
    return tuple(
        CheckImage(image.key, masked, activation, expected, prompt, 0 if prompt else None)
        for (image, masked), activation in zip(some, activations, strict=True)
    )


# --- evaluations ---


def make_evaluation(
    owner: User,
    kind: EvaluationKind,
    checks: Sequence[LabelCheck],
    runs: Sequence[Run],
    chance: random.Random,
    pictures: Pictures = (),
    *,
    unfinished: bool = False,
) -> Evaluation:
    """An evaluation with items; an unfinished one has stopped at its budget."""
    status = JobStatus.STOPPED if unfinished else JobStatus.DONE
    job = Job.objects.create(
        kind=JobKind.EVALUATION,
        subject=f"{kind.label}, made up",
        status=status,
        asked_by=owner,
        result="It stopped at its budget of $1.00." if unfinished else "",
    )
    evaluation = Evaluation.objects.create(
        kind=kind,
        name=f"{kind.label}, made up",
        owner=owner,
        created=timezone.now() - timedelta(hours=chance.randrange(1, 200)),
        backbone="" if kind == EvaluationKind.LABELS else "scripted",
        seed=chance.randrange(100),
        options={"units": len(checks), "model": "toybox", "layers": ["layer4"], "repeats": 1},
        cost_limit=1.0 if unfinished else None,
        job=job,
        planned=True,
        seconds=chance.uniform(60, 900),
    )
    items = [
        _item(evaluation, place, check, run, chance, pictures, unfinished=unfinished and place > len(checks) // 2)
        for place, (check, run) in enumerate(zip(checks, runs, strict=True), 1)
    ]
    EvaluationItem.objects.bulk_create(items)
    keys = list(evaluation.items.values_list("pk", flat=True))
    evaluation.result = encode(results.make_result(kind, keys, chance))
    evaluation.prepared = {"versions": {"toybox-net": "3"}}
    evaluation.save()
    return evaluation


def _item(
    evaluation: Evaluation,
    place: int,
    check: LabelCheck,
    run: Run,
    chance: random.Random,
    pictures: Pictures,
    *,
    unfinished: bool,
) -> EvaluationItem:
    status = ItemStatus.PLANNED if unfinished else ItemStatus.DONE
    status = {2: ItemStatus.FAILED, 5: ItemStatus.LACKING}.get(place, status)
    done = status == ItemStatus.DONE
    item = EvaluationItem(
        evaluation=evaluation,
        position=place,
        group=("mono", "or", "conditional")[place % 3] if evaluation.kind == EvaluationKind.SYNTHETIC else "layer4",
        source="agent" if place % 3 else "one-shot",
        unit=check.unit,
        unit_name=str(check.unit),
        status=status,
        reason="The sandbox was stopped: the run ended after 2 rounds." if status == ItemStatus.FAILED else "",
        run=run if done else None,
        label=check.text if done else "",
        label_check=check if done else None,
        scores=_scores(evaluation.kind, place) if done else {},
        seconds=chance.uniform(3, 20) if done else 0,
    )
    if evaluation.kind == EvaluationKind.BIAS and done and pictures:
        keys = [image.key for image, _ in pictures]
        item.evidence = {f"{word} “snow”": chance.sample(keys, 6) for word in ("with", "without")}
    return item


def _scores(kind: str, place: int) -> dict[str, Any]:
    match kind:
        case EvaluationKind.SYNTHETIC | EvaluationKind.ABLATION:
            return {"right": place % 4 != 0, "missing": "", "extra": "" if place % 4 else "green"}
        case EvaluationKind.SPURIOUS:
            return {"verdict": "spurious" if place % 3 else "selective"}
        case EvaluationKind.BIAS:
            return {"statements": 1, "holding": place % 2, "planted": "snow", "found": place % 2 == 1, "false": 0}
        case _:
            return {}
