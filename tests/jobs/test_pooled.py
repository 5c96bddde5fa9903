"""The pooled comparison on the real laboratory: labels of several sources on one pool of prompts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.contrib.auth import get_user_model

from experiments.label_checks.requests import BACKBONE, CheckMethod, request_check
from experiments.models import Evaluation, EvaluationItem, GeneratedImage, ItemStatus, Job, Measurement, Unit
from tests.support.provider import Provider, says
from workers.errors import Cancelled
from workers.jobs import catalogue
from workers.jobs import laboratory as place
from workers.jobs.evaluations.engine import evaluate
from workers.jobs.evaluations.pooled import compare_pooled
from workers.jobs.evaluations.units import summarise
from workers.jobs.label_checks.check import run_check
from workers.protocols import no_progress

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("on_toybox", "no_redis")]
MODEL = "synthetic:toybox-eyes"
EXACT = CheckMethod("toybox", "toybox", "toybox", "toybox")


def label(labels: dict[str, list[str]], method: CheckMethod = EXACT) -> Evaluation:
    """An evaluation whose items are done: by source the labels of the first units, "" where it has none."""
    owner, _ = get_user_model().objects.get_or_create(username="owner")
    evaluation = Evaluation.objects.create(kind="labels", name="Labels", owner=owner, planned=True)
    layer = catalogue.look_at_model(MODEL).layers.get(name="mono")
    pairs = [(source, number, text) for source, texts in labels.items() for number, text in enumerate(texts)]
    for position, (source, number, text) in enumerate(pairs, 1):
        unit, _ = Unit.objects.get_or_create(layer=layer, number=number)
        check = request_check(unit, text, method, enqueue=False, unpriced=True) if text else None
        if check:
            run_check(check.pk, no_progress)
        EvaluationItem.objects.create(
            evaluation=evaluation,
            position=position,
            group="mono",
            source=source,
            unit=unit,
            unit_name=f"{MODEL} / mono / unit {number}",
            label=text,
            label_check=check,
            status=ItemStatus.DONE if text else ItemStatus.LACKING,
        )
    return evaluation


def pool(evaluation: Evaluation) -> list[EvaluationItem]:
    for _ in compare_pooled(evaluation, no_progress):
        pass
    return list(evaluation.items.order_by("position"))


@pytest.mark.more
def test_right_labels_part_the_pool_and_wrong_ones_do_not() -> None:
    evaluation = label({"agent": ["balls", "cubes"], "import:milan": ["cars", ""]})
    drawn, measured = GeneratedImage.objects.count(), Measurement.objects.count()
    right, alone, wrong, lacking = pool(evaluation)
    assert (GeneratedImage.objects.count(), Measurement.objects.count()) == (drawn, measured)
    assert float(right.scores["pooled_positive"] or 0) > 0.5 > 0.1 > float(right.scores["pooled_neutral"] or 0)
    assert float(right.scores["pooled_difference"] or 0) > 1 > float(wrong.scores["pooled_difference"] or 0)
    assert not {"pooled_positive"} & {*alone.scores, *lacking.scores}  # nothing to compare a single source with
    result = summarise(evaluation, [right, alone, wrong, lacking])
    figures = {figure.key: figure for figure in result.figures}
    assert figures["pooled.agent.positive"].value == pytest.approx(right.scores["pooled_positive"])
    assert figures["pooled.import:milan.neutral"].value == pytest.approx(wrong.scores["pooled_neutral"])
    assert figures["pooled.difference.import:milan"].n == 1
    table = next(each for each in result.tables if each.key == "pooled")
    assert [len(row) for row in table.rows] == [5, 5] == [len(table.columns)] * 2
    assert any("has no part in 1 of 2: mono / unit 1" in str(note) for note in result.notes)


@pytest.mark.more
def test_a_label_is_paired_with_the_prompts_of_all_sources() -> None:
    """Two labels that say the same pair with the same prompts, whoever's they are."""
    evaluation = label({"agent": ["balls"], "import:milan": ["spheres"], "import:dissect": ["cars"]})
    one, two, other = pool(evaluation)
    assert one.scores["pooled_positive"] == two.scores["pooled_positive"]
    assert one.scores["pool"] == two.scores["pool"] == other.scores["pool"]
    assert one.scores["pooled_positive"] != other.scores["pooled_positive"]


@pytest.mark.more
def test_what_is_compared_is_kept_and_goes_on_where_it_was() -> None:
    evaluation = label({"agent": ["balls", "cubes"], "import:milan": ["cars", "cones"]})
    steps = compare_pooled(evaluation, no_progress)
    next(steps)
    next(steps)  # the first unit is done, the second not begun

    def scored() -> list[bool]:
        return ["pooled_positive" in item.scores for item in evaluation.items.order_by("position")]

    assert scored() == [True, False, True, False]

    def stop(what: str, done: int, total: int) -> None:
        raise Cancelled(f"{what}, {done} of {total}")

    with pytest.raises(Cancelled, match="1 of 2"):
        list(compare_pooled(evaluation, stop))
    assert len(list(compare_pooled(evaluation, no_progress))) == 1
    assert all(scored())
    assert list(compare_pooled(evaluation, stop)) == []


@pytest.mark.more
def test_a_budget_ends_the_comparison_between_two_units() -> None:
    evaluation = label({"agent": ["balls", "cubes"], "import:milan": ["cars", "cones"]})
    evaluation.seconds_limit, evaluation.seconds = 1.0, 1.0
    evaluation.save()
    job = Job.objects.create(kind="evaluation", subject="Labels", asked_by=evaluation.owner)
    Evaluation.objects.filter(pk=evaluation.pk).update(job=job)
    assert "Unfinished" in evaluate(job, no_progress)
    assert not any("pooled_positive" in item.scores for item in evaluation.items.all())
    Evaluation.objects.filter(pk=evaluation.pk).update(seconds_limit=None)
    assert evaluate(job, no_progress) == "Done: 4 of 4 items."
    assert all("pooled_positive" in item.scores for item in evaluation.items.all())
    evaluation.refresh_from_db()
    assert evaluation.seconds > 1.0
    assert "pooled" in {table["key"] for table in evaluation.result["tables"]}


def test_where_nobody_can_pair_the_result_says_so() -> None:
    evaluation = label({"agent": ["balls"], "import:milan": ["cars"]}, CheckMethod("toybox", "toybox", "toybox", ""))
    items = pool(evaluation)
    assert all("No judge can pair the label" in str(item.scores["pooled_problem"]) for item in items)
    result = summarise(evaluation, items)
    assert any("2 labels: No judge can pair the label" in str(note) for note in result.notes)
    assert next(each for each in result.figures if each.key == "pooled.agent.positive").value is None


# --- a language model pairs ------------------------------------------------------------------------------------------

COLOURED = [f"{size} {colour}" for size in ("small", "large") for colour in ("red", "green", "blue", "yellow", "white")]
WRITTEN = "\n".join(
    [f"POSITIVE {n}: a {words} ball" for n, words in enumerate(COLOURED, 1)]
    + [f"NEUTRAL {n}: a {words} car at night" for n, words in enumerate(COLOURED, 1)]
)
PAIRED = "MOST: 1, 2, 3, 4, 5, 6, 7\nLEAST: 8, 9, 10, 11, 12, 13, 14"


def test_a_model_reads_labels_and_prompts_and_is_asked_once(settings, tmp_path: Path) -> None:
    place.build_laboratory.cache_clear()
    with Provider(says(WRITTEN)) as provider:
        settings.OPENAI_API_KEY, settings.OPENAI_BASE_URL = "key", provider.url
        settings.OPENAI_MODELS, settings.OPENAI_PRICES = ["gpt-4o"], tmp_path / "prices.toml"
        written = CheckMethod("toybox", "toybox", BACKBONE, "", "openai", "gpt-4o")
        evaluation = label({"agent": ["balls"], "import:milan": ["cars"]}, written)
        asked = len(provider.asked)
        provider.answers[:] = [says(PAIRED)]
        first, second = pool(evaluation)
        questions = [json.dumps(body["messages"]) for body in provider.asked[asked:]]
        assert len(questions) == 2
        assert "balls" in questions[0]
        assert "agent" not in questions[0]
        assert first.scores["pooled_positive"] == second.scores["pooled_positive"]  # it gave the same numbers
        evaluation.items.update(scores={})
        pool(evaluation)
        assert len(provider.asked) == asked + 2
        assert first.label_check is not None
        first.label_check.refresh_from_db()
        assert first.label_check.cost > 0
    place.build_laboratory.cache_clear()
