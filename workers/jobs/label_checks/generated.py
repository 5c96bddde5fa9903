"""Test a label on images generated from the label alone: the figures of MAIA, CoSy and SAIA.

They are shown beside the main scores, for comparison with papers. None of them falls both for labels that are too
narrow and for labels that are too broad (NeuronEval).
"""

from __future__ import annotations

import numpy as np

from experiments.label_checks.requests import BACKBONE
from experiments.models import GeneratedImage, LabelCheck
from workers import registry
from workers.jobs.label_checks.held_out import read_controls
from workers.jobs.label_checks.images import CheckMeasurement, draw, measure
from workers.jobs.label_checks.subject import CheckedUnit
from workers.jobs.label_checks.vlm_judge import write_prompts
from workers.jobs.laboratory import laboratory
from workers.lab.image_tools import derive_seed
from workers.metrics.generated import score_generated, score_predictiveness
from workers.protocols import Progress, WrittenPrompts
from workers.record.estimates import Estimate
from workers.record.label_checks import CheckImage, GeneratedResult, Reference

MAIA, SAIA = 7, 10
"""Prompts on either side: for the two means and the "AUC of 7 + 7"; for predictiveness."""
SEEDS = 3
"""Number of images for each of the 7 + 7 prompts."""
NO_WRITER = "There is no writer of prompts for the label. Check a run whose backbone is a language model."


def check_generated(check: LabelCheck, unit: CheckedUnit, progress: Progress) -> GeneratedResult:
    """Return the scores. Raises RequestError for an untestable label, Cancelled, and the errors of writer and
    generator."""
    toolset = str(check.options["toolset"])
    if not check.options["writer"]:
        return GeneratedResult(problem=NO_WRITER)
    writer, prompts = _write_prompts(check, progress)
    # The same seeds for all prompts, so that images of one prompt are reused
    seeds = [derive_seed(int(str(check.options.get("seed") or 0)), "label check", at) for at in range(SEEDS)]
    sides = [_draw_side(toolset, side, seeds, progress) for side in (prompts.positive, prompts.neutral)]
    drawn = [row for side in sides for rows in side for row in rows]
    answers = measure(unit.spec, [row.image_id for row in drawn if row.image_id], progress)
    positive, neutral = ([[_activation(row, answers) for row in rows] for rows in side] for side in sides)
    scores = score_generated(_rows(positive[:MAIA]), _rows(neutral[:MAIA]), read_controls(check, unit, progress))
    # SAIA draws each prompt once, so the first seed counts.
    told = score_predictiveness([each[0] for each in positive], [each[0] for each in neutral], unit.exemplar_mean)
    generator = registry.TOOLSETS[toolset].generator
    return GeneratedResult(
        writer=writer,
        generator=generator,
        prompts=len(prompts.positive),
        seeds=SEEDS,
        refused=sum(1 for row in drawn if not row.image_id),
        positive_mean=Estimate(scores.positive_mean, n=scores.positives),
        neutral_mean=Estimate(scores.neutral_mean, n=scores.neutrals),
        exemplar_mean=unit.exemplar_mean,
        auc=scores.auc,
        cosy_auc=scores.cosy_auc,
        cosy_mad=scores.cosy_mad,
        predictiveness=told.share,
        threshold=told.threshold,
        sweep=told.sweep,
        floors=_floors(check, unit, progress),
        positive=_images(sides[0], answers, 1.0),
        neutral=_images(sides[1], answers, 0.0),
        problem="" if answers else "The generator drew none of the prompts.",
    )


def _write_prompts(check: LabelCheck, progress: Progress) -> tuple[str, WrittenPrompts]:
    """Return the writer's name and its prompts. Prompts are written once and kept."""
    named = str(check.options["writer"])
    if kept := check.kept.get("prompts"):
        return str(kept["writer"]), WrittenPrompts(tuple(kept["positive"]), tuple(kept["neutral"]))
    if named == BACKBONE:
        writer, prompts = write_prompts(check, SAIA, progress)
    else:
        plugin = laboratory().prompt_writer(named)
        writer, prompts = plugin.name, plugin.write(check.text, SAIA, int(str(check.options.get("seed") or 0)))
    check.kept["prompts"] = {"writer": writer, "positive": list(prompts.positive), "neutral": list(prompts.neutral)}
    # At once: prompts cost money, and the check may still break off
    check.save(update_fields=["kept"])
    return writer, prompts


def _draw_side(
    toolset: str, prompts: tuple[str, ...], seeds: list[int], progress: Progress
) -> list[list[GeneratedImage]]:
    """Return the images of each prompt: all seeds for the first 7, the first seed for the others."""
    wanted = [(prompt, seed) for at, prompt in enumerate(prompts) for seed in (seeds if at < MAIA else seeds[:1])]
    drawn = iter(draw(toolset, wanted, progress))
    return [[next(drawn) for _ in (seeds if at < MAIA else seeds[:1])] for at in range(len(prompts))]


def _activation(row: GeneratedImage, answers: dict[str, CheckMeasurement]) -> float:
    """Return NaN for a refused image."""
    return answers[row.image_id].activation if row.image_id else float("nan")


def _rows(values: list[list[float]]) -> np.ndarray:
    return np.array(values, dtype=np.float64).reshape(len(values), -1)


def _images(
    side: list[list[GeneratedImage]], answers: dict[str, CheckMeasurement], expected: float
) -> tuple[CheckImage, ...]:
    return tuple(
        CheckImage(
            row.image_id, answers[row.image_id].masked, answers[row.image_id].activation, expected, row.prompt, row.seed
        )
        for rows in side
        for row in rows
        if row.image_id
    )


def find_foreign_images(check: LabelCheck, unit: CheckedUnit) -> tuple[str, list[str], list[str]]:
    """Return the label of another unit with keys of positive and negative images of its prompts; empty if there are
    none."""
    # The oldest check, so that the floor stays the same.
    checks = LabelCheck.objects.filter(text=unit.other_label, options__toolset=check.options["toolset"])
    written = checks.filter(kept__has_key="prompts").exclude(pk=check.pk).order_by("pk")
    other = written.first() if unit.other_label else None
    if not other:
        return "", [], []
    kept, rows = other.kept["prompts"], GeneratedImage.objects.exclude(image=None)
    positive, neutral = (
        list(rows.filter(prompt__in=kept[name][:MAIA]).values_list("image", flat=True))
        for name in ("positive", "neutral")
    )
    return other.text, positive, neutral


def _floors(check: LabelCheck, unit: CheckedUnit, progress: Progress) -> tuple[Reference, ...]:
    """Return this unit's scores on images of another unit's label, if there are any."""
    text, *sides = find_foreign_images(check, unit)
    if not text:
        return ()
    answers = measure(unit.spec, [key for side in sides for key in side], progress)
    scores = score_generated(*([answers[key].activation for key in side] for side in sides))
    return (Reference(f"the label “{text}” of another unit", auc=scores.auc.value),)
