"""Measure how often a check's judge errs, on images whose content is known from their prompts.

Images of the label should show it; images of another unit's label, or else of prompts without the label, should not.
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
    """Return the judge's error; None for an exact judge, no judge, or no images. Raises Cancelled, and the errors of
    the judge."""
    named = str(check.options.get("judge") or "")
    if not named or (named != BACKBONE and laboratory().presence_judge(named).kind == "exact"):
        return None
    own = list(dict.fromkeys(each.image for each in generated.positive))[:MAIA]
    _, foreign, _ = find_foreign_images(check, unit)
    # Prompts of two labels may give the same image
    strange = [key for key in dict.fromkeys(foreign) if key not in own]
    # Without another label, prompts that lack this one must do.
    absent = (strange or list(dict.fromkeys(each.image for each in generated.neutral)))[:MAIA]
    if not own or not absent:
        return None
    answers = _judge(check, named, [*own, *absent], progress)
    # An image that was drawn wrongly counts as the judge's error, so these shares are upper bounds.
    return measure_judge_error(answers, [True] * len(own) + [False] * len(absent))


def _judge(check: LabelCheck, named: str, keys: list[str], progress: Progress) -> list[float | None]:
    if named != BACKBONE:
        images = ImagesInDatabase()
        pictures = [Picture(images.load(key)) for key in keys]
        return laboratory().presence_judge(named).judge(check.text, pictures, progress)
    # What was answered is kept, so that a resumed check does not pay twice.
    kept: dict[str, float | None] = check.kept.setdefault("known", {})
    missing = [key for key in keys if key not in kept]
    for start in range(0, len(missing), MAX_IMAGES):
        some = missing[start : start + MAX_IMAGES]
        kept |= dict(zip(some, look_at(check, check.text, some, progress), strict=True))
        check.save(update_fields=["kept"])
    return [kept[key] for key in keys]
