"""How often the judge of a check errs, on images whose truth is known by the prompts that they were drawn from.

Those of the label show it. Those of another unit's label do not; where none are there, those that its writer wrote
not to show it. What the generator fails to draw counts as an error of the judge, so these shares are upper ends.
"""

from __future__ import annotations

from experiments.label_checks.requests import BACKBONE
from experiments.models import LabelCheck
from workers.jobs.images import ImagesInDatabase
from workers.jobs.label_checks.generated import MAIA, find_foreign_images
from workers.jobs.label_checks.subject import CheckedUnit
from workers.jobs.label_checks.vlm_judge import look_at
from workers.jobs.laboratory import laboratory
from workers.metrics.judge_error import measure_judge_error
from workers.metrics.presence import MAX_IMAGES
from workers.protocols import Picture, Progress
from workers.record.label_checks import GeneratedResult, JudgeError


def measure_error(
    check: LabelCheck, unit: CheckedUnit, generated: GeneratedResult, progress: Progress
) -> JudgeError | None:
    """None for a judge that knows, for nobody, and without images. Raises Cancelled, and what the judge raises."""
    named = str(check.options.get("judge") or "")
    if not named or (named != BACKBONE and laboratory().presence_judge(named).kind == "exact"):
        return None
    own = list(dict.fromkeys(each.image for each in generated.positive))[:MAIA]
    _, foreign, _ = find_foreign_images(check, unit)
    strange = [key for key in dict.fromkeys(foreign) if key not in own]
    absent = (strange or list(dict.fromkeys(each.image for each in generated.neutral)))[:MAIA]
    if not own or not absent:
        return None
    answers = _judge(check, named, [*own, *absent], progress)
    return measure_judge_error(answers, [True] * len(own) + [False] * len(absent))


def _judge(check: LabelCheck, named: str, keys: list[str], progress: Progress) -> list[float | None]:
    if named != BACKBONE:
        images = ImagesInDatabase()
        pictures = [Picture(images.load(key)) for key in keys]
        return laboratory().presence_judge(named).judge(check.text, pictures, progress)
    kept: dict[str, float | None] = check.kept.setdefault("known", {})
    missing = [key for key in keys if key not in kept]
    for start in range(0, len(missing), MAX_IMAGES):
        some = missing[start : start + MAX_IMAGES]
        kept |= dict(zip(some, look_at(check, check.text, some, progress), strict=True))
        check.save(update_fields=["kept"])
    return [kept[key] for key in keys]
