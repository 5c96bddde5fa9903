"""Label checks on the real laboratory: what is measured, what cannot be, what is never measured twice."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from django.utils import timezone

from experiments.label_checks.requests import BACKBONE, CheckMethod, choose_method, request_check
from experiments.models import CheckStatus, GeneratedImage, Label, LabelCheck, Measurement, Unit
from experiments.models.evaluation import DEVELOPMENT
from tests.support.provider import Provider, refuses, says
from tests.support.synthetic_units import MODEL, unit
from workers.errors import Cancelled
from workers.jobs import laboratory as place
from workers.jobs.images import ImagesInDatabase
from workers.jobs.label_checks import held_out, natural, sampling, vlm_judge
from workers.jobs.label_checks.check import run_check, run_or_wait
from workers.jobs.label_checks.floors import MAX_FLOORS
from workers.jobs.laboratory import laboratory
from workers.protocols import Picture, Progress, no_progress
from workers.record.label_checks import FOREIGN_LABEL, RANDOM_UNIT, CheckResult

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("on_toybox", "no_redis")]


def method(model: str = MODEL) -> CheckMethod:
    return choose_method(model, "scripted")


def check(text: str, of: Unit | None = None) -> LabelCheck:
    row = request_check(of or unit(), text, method(), enqueue=False)
    run_check(row.pk, no_progress)
    row.refresh_from_db()
    return row


def test_the_truth_predicts_and_another_toy_does_not() -> None:
    right, wrong = check("balls"), check("cars")
    assert (right.status, wrong.status) == (CheckStatus.DONE, CheckStatus.DONE)
    assert right.pearson is not None
    assert wrong.pearson is not None
    assert right.pearson > 0.7 > 0.3 > wrong.pearson
    assert right.auprc is not None
    assert right.base_rate is not None
    assert right.auprc > 0.7 > right.base_rate
    assert right.generated_auc is not None
    assert right.generated_auc > 0.9
    assert right.pearson_low is not None
    assert right.pearson_high is not None
    assert right.pearson_low <= right.pearson <= right.pearson_high


def test_a_check_says_all_that_papers_print_with_floors_and_the_ceiling() -> None:
    result = msgspec.convert(check("balls").result, CheckResult)
    natural, generated = result.natural, result.generated
    assert natural is not None
    assert generated is not None
    assert (natural.images, natural.unread, natural.exact) == (len(natural.activations), 0, True)
    assert natural.ceiling is not None
    assert natural.ceiling.pearson == pytest.approx(natural.pearson.value)
    assert any("drawn at random" in floor.what for floor in natural.floors)
    assert natural.threshold is not None
    assert natural.f1 is not None
    assert len(natural.deciles) == 10
    assert (generated.prompts, generated.seeds) == (10, 3)
    assert len(generated.positive) == 7 * 3 + 3
    assert generated.cosy_auc is not None
    assert generated.cosy_mad is not None
    assert generated.cosy_mad > 0
    assert generated.predictiveness.n == 20
    assert generated.sweep
    for image in natural.bright_without:
        assert image.expected == 0
    for image in natural.dark_with:
        assert image.expected == 1


def name_others(*texts: str) -> None:
    """Labels of other units of the layer."""
    for number, text in enumerate(texts, 1):
        Label.objects.create(text=text, source="import").units.add(unit(number))


def test_floors_are_ten_of_either_kind_with_their_spread_and_what_the_label_is_above_them() -> None:
    toys = ("cars", "ducks", "cubes", "robots", "boats", "cups", "tables", "houses", "rockets", "dogs", "snowmen")
    name_others("round balls", "various things", "zebras", *toys, "Cars")
    row = check("balls")
    natural = msgspec.convert(row.result, CheckResult).natural
    assert natural is not None
    kinds = [floor.kind for floor in natural.floors]
    labels = {floor.what for floor in natural.floors if floor.kind == FOREIGN_LABEL}
    assert 9 <= len(labels) <= MAX_FLOORS == kinds.count(RANDOM_UNIT)
    assert not any("various" in what or "zebras" in what for what in labels), "what cannot be tested is no floor"
    assert not any("round balls" in what for what in labels), "the same label in other words is no floor"
    assert len({what.casefold() for what in labels}) == len(labels)
    for spread in natural.floor_spreads:
        above = spread.pearson.above
        assert above.low is not None
        assert above.low > 0
        assert spread.pearson.mean is not None
        assert above.value == pytest.approx((natural.pearson.value or 0) - spread.pearson.mean)
    row.delete()
    assert msgspec.convert(check("balls").result, CheckResult).natural == natural, "drawn by the key of the check"


def test_other_tests_stand_beside_the_headline() -> None:
    results = [msgspec.convert(check(text).result, CheckResult).natural for text in ("balls", "cars")]
    right, wrong = (each.other_tests for each in results if each is not None and each.other_tests is not None)
    for each in (right.alike, right.neighbours, right.fuzzing):
        assert each is not None
    assert right.alike is not None
    assert right.alike.balanced_accuracy.value is not None
    assert right.alike.balanced_accuracy.value > 0.9
    detection = right.detection
    assert detection.threshold is not None
    assert "no tenth has 4" in right.intruder.share.why, "it takes more images than these tests measure"
    assert len(detection.deciles) == 10
    assert detection.failed.value == 0
    for one, two in (
        (detection.balanced_accuracy, wrong.detection.balanced_accuracy),
        (right.simulation.explained_variance, wrong.simulation.explained_variance),
    ):
        assert one.value is not None
        assert two.value is not None
        assert one.value > two.value + 0.2


def test_a_label_that_few_images_show_is_checked_on_more(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = msgspec.convert(check("balls").result, CheckResult).natural
    for module in (held_out, natural):
        monkeypatch.setattr(module, "PILOT", 60)
    LabelCheck.objects.all().delete()
    grown = msgspec.convert(check("balls").result, CheckResult).natural
    assert whole is not None
    assert grown is not None
    assert (grown.images, grown.positives, grown.pearson.value) == (whole.images, whole.positives, whole.pearson.value)
    assert grown.p_value is not None
    said = [each or 0 for each in grown.expected]
    assert list(grown.activations[:60]) == list(whole.activations[:60])
    assert min(said[60:]) == 1, "of the others, those that the label describes"
    assert sum(said) == grown.positives


def test_a_label_tried_by_a_run_is_tried_on_the_pilot_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (held_out, natural):
        monkeypatch.setattr(module, "PILOT", 60)
    row = request_check(unit(), "balls", replace(method(), split=DEVELOPMENT), enqueue=False)
    run_check(row.pk, no_progress)
    row.refresh_from_db()
    assert row.result["natural"]["images"] == 60


def test_nothing_is_drawn_or_measured_twice() -> None:
    first = check("balls")
    drawn, measured = GeneratedImage.objects.count(), Measurement.objects.count()
    again = request_check(unit(), "  balls ", method(), enqueue=False)
    assert again.pk == first.pk
    assert run_check(again.pk, no_progress) is None  # it is done
    LabelCheck.objects.filter(pk=first.pk).update(status=CheckStatus.QUEUED)
    run_check(first.pk, no_progress)
    assert (GeneratedImage.objects.count(), Measurement.objects.count()) == (drawn, measured)


def test_a_check_that_another_worker_measures_is_waited_for() -> None:
    row = request_check(unit(), "cubes", method(), enqueue=False)
    running = LabelCheck.objects.filter(pk=row.pk)
    running.update(status=CheckStatus.RUNNING, beat=timezone.now())

    def end(what: str, done: int, total: int) -> None:
        assert what.startswith("Waiting")
        running.update(status=CheckStatus.DONE, pearson=0.5)

    assert run_or_wait(row.pk, end).pearson == 0.5


@pytest.mark.parametrize("text", ["various things", "something nice", "zebras in a forest"])
def test_a_label_without_content_that_can_be_tested_says_why(text: str) -> None:
    row = check(text)
    assert row.status == CheckStatus.UNTESTABLE
    assert text in row.reason
    assert (row.pearson, row.result) == (None, {})


def test_a_check_keeps_how_its_label_was_read() -> None:
    natural, half = check("round balls of any colour"), check("balls OR purple unicorns")
    assert natural.reading == {"read_as": "balls", "not_understood": []}
    assert natural.pearson == check("balls").pearson
    assert half.reading == {"read_as": "balls", "not_understood": ["purple unicorns"]}
    assert (half.status, half.pearson) == (CheckStatus.UNTESTABLE, None)


def test_what_was_measured_before_labels_were_read_whole_is_measured_anew() -> None:
    old = check("balls OR red unicorns")
    LabelCheck.objects.filter(pk=old.pk).update(status=CheckStatus.DONE, pearson=0.9, reading={})
    assert check(old.text).status == CheckStatus.UNTESTABLE


def test_a_stopped_check_goes_on_where_it_was() -> None:
    row = request_check(unit(), "cars", method(), enqueue=False)

    def stop(what: str, done: int, total: int) -> None:
        if what.startswith("Measuring images") and done:
            raise Cancelled("stopped")

    with pytest.raises(Cancelled):
        run_check(row.pk, stop)
    row.refresh_from_db()
    assert row.status == CheckStatus.QUEUED
    drawn = GeneratedImage.objects.count()
    assert drawn > 0
    run_check(row.pk, no_progress)
    row.refresh_from_db()
    assert (row.status, GeneratedImage.objects.count()) == (CheckStatus.DONE, drawn)


def test_what_nobody_can_judge_is_a_state_and_no_score() -> None:
    nobody = CheckMethod("toybox", "toybox", "toybox", "")
    row = request_check(unit(), "balls", nobody, enqueue=False)
    run_check(row.pk, no_progress)
    row.refresh_from_db()
    result = msgspec.convert(row.result, CheckResult)
    assert row.status == CheckStatus.DONE
    assert row.pearson is None
    assert row.generated_auc is not None
    assert result.natural is not None
    assert "MAIA_PRESENCE_JUDGE" in result.natural.problem


# --- a language model writes and looks ---------------------------------------------------------------------------


WRITTEN = "\n".join(
    [f"POSITIVE {n}: a red ball on {ground}" for n, ground in enumerate(("grass", "sand", "snow", "wood"), 1)]
    + [f"POSITIVE {n}: a large ball and {n} cubes" for n in range(5, 11)]
    + [f"NEUTRAL {n}: a green car on brick at night with {n} cups" for n in range(1, 11)]
)
SEEN = "\n".join(f"IMAGE {n}: {90 if n % 3 else 5} %" for n in range(1, 9))


@pytest.fixture
def provider(settings, tmp_path: Path) -> Iterator[Provider]:
    place.build_laboratory.cache_clear()
    with Provider(says(WRITTEN), says(SEEN)) as server:
        settings.OPENAI_API_KEY, settings.OPENAI_BASE_URL = "key", server.url
        settings.OPENAI_MODELS, settings.OPENAI_PRICES = ["gpt-4o"], tmp_path / "prices.toml"
        yield server
    place.build_laboratory.cache_clear()


def by_model(text: str = "balls", guess: str = "") -> LabelCheck:
    asked = CheckMethod("toybox", "toybox", BACKBONE, BACKBONE, "openai", "gpt-4o", guess=guess)
    return request_check(unit(), text, asked, enqueue=False)


def again(check: LabelCheck) -> LabelCheck:
    run_check(check.pk, no_progress)
    check.refresh_from_db()
    return check


def test_a_model_looks_at_a_weighted_sample_and_writes_from_the_label_alone(provider: Provider) -> None:
    provider.answers[:] = [says(SEEN)]
    row = again(by_model())
    asked = [json.dumps(body["messages"]) for body in provider.asked]
    assert row.status == CheckStatus.UNTESTABLE  # it wrote no prompts
    assert all("balls" in each for each in asked)
    looked = len(row.kept["answers"])
    assert 0 < looked <= 180
    provider.answers[:] = [says(WRITTEN)]
    LabelCheck.objects.filter(pk=row.pk).update(status=CheckStatus.QUEUED)
    row = again(row)
    result = msgspec.convert(row.result, CheckResult)
    assert (row.status, len(row.kept["answers"])) == (CheckStatus.DONE, looked)  # no image is asked about twice
    assert result.natural is not None
    assert result.natural.images == looked - result.natural.unread
    assert result.natural.floors
    assert all("drawn at random" in floor.what for floor in result.natural.floors)
    assert row.cost > 0


def test_a_model_looks_at_what_a_judge_guesses_so_that_a_rare_label_gets_an_interval(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_out, "PILOT", 60)
    monkeypatch.setattr(sampling, "DRAWS", 90)
    monkeypatch.setattr(vlm_judge, "look_at", see_scenes)
    provider.answers[:] = [says(WRITTEN)]
    guessed, plain = again(by_model(guess="toybox")), again(by_model())
    assert (guessed.status, plain.status) == (CheckStatus.DONE, CheckStatus.DONE)
    assert plain.pearson_low is None
    assert guessed.pearson_low is not None
    assert guessed.pearson is not None
    assert guessed.pearson > 0.7
    result = msgspec.convert(guessed.result, CheckResult).natural
    assert result is not None
    assert (result.images, len(result.expected), guessed.pk != plain.pk) == (90, 90, True)
    assert result.other_tests is not None
    assert "sample" in result.other_tests.intruder.share.why
    assert result.other_tests.simulation.correlation.n == 45
    assert result.base_rate == pytest.approx(result.positives / guessed.kept["sample"]["images"])


def see_scenes(
    check: LabelCheck, label: str, keys: Sequence[str], progress: Progress, *, marked: bool = False
) -> list[float | None]:
    """A model that errs never: what the scenes behind images say."""
    images, exact = ImagesInDatabase(), laboratory().presence_judge("toybox")
    pictures = [Picture(images.load(key), known.scene if (known := images.recall(key)) else None) for key in keys]
    return exact.judge(label, pictures, progress)


def test_a_provider_that_refuses_midway_leaves_a_state_and_what_it_said(provider: Provider) -> None:
    provider.answers[:] = [says(SEEN), refuses(401, "no such key")]
    row = again(by_model())
    assert row.status == CheckStatus.UNFINISHED
    assert row.reason
    assert (row.pearson, row.result) == (None, {})
    assert len(row.kept["answers"]) == 8


def test_an_allowance_that_is_used_up_leaves_the_check_unfinished(provider: Provider, settings) -> None:
    settings.LABEL_CHECK_COST = 0.0001
    provider.answers[:] = [says(SEEN, usage=(100_000, 100))]
    row = again(by_model())
    assert row.status == CheckStatus.UNFINISHED
    assert "MAIA_LABEL_CHECK_COST" in row.reason


# --- a network judges ----------------------------------------------------------------------------------------------


def test_a_judge_that_errs_says_how_often(tmp_path: Path) -> None:
    from tests.support.checkpoints import siglip_judge

    judge = f"clip:{siglip_judge(tmp_path / 'siglip', ('a', 'photo', 'of', 'balls', '.'))}"
    name_others("a ball", "a photo", "not balls")
    row = again(request_check(unit(), "balls", CheckMethod("toybox", "toybox", "toybox", judge), enqueue=False))
    result = msgspec.convert(row.result, CheckResult)
    assert row.status == CheckStatus.DONE, row.reason
    assert result.natural is not None
    assert (result.natural.exact, result.natural.unread) == (False, 0)
    assert result.natural.images == len(result.natural.activations)
    error = result.natural.judge_error
    assert error is not None
    assert (error.n, error.unread) == (14, 0)
    assert (error.false_positives.n, error.false_negatives.n) == (7, 7)
    assert [floor.kind for floor in result.natural.floors].count(FOREIGN_LABEL) == 2, "one negates: it is not asked"
    assert result.natural.corrected is not None
    assert result.natural.corrected.pearson.why, "a network that was never trained is no better than chance"
    exact = msgspec.convert(check("cars").result, CheckResult).natural
    assert exact is not None
    assert exact.corrected is None
    assert exact.judge_error is None


def test_a_judge_whose_weights_are_not_here_leaves_the_check_unfinished() -> None:
    absent = CheckMethod("toybox", "toybox", "toybox", "clip:nobody/no-such-siglip")
    row = again(request_check(unit(), "balls", absent, enqueue=False))
    assert row.status == CheckStatus.UNFINISHED
    assert "hf download nobody/no-such-siglip" in row.reason
    assert request_check(unit(), "balls", absent, enqueue=False).status == CheckStatus.QUEUED
