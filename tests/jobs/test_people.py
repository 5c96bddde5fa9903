"""A check whose judges are people, on the real laboratory: it draws, waits, and is measured by what they say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import msgspec
import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from experiments.core import notify
from experiments.core.actors import Actor
from experiments.judging.actions import answer, close
from experiments.label_checks.desk import CheckDesk
from experiments.label_checks.requests import PEOPLE, CheckMethod, choose_method, request_check
from experiments.models import CheckStatus, ConceptAnswer, ConceptQuestion, LabelCheck, Notification
from tests.support.people import member
from tests.support.synthetic_units import unit
from workers.jobs import held, long
from workers.jobs.images import ImagesInDatabase
from workers.jobs.label_checks import held_out, sampling
from workers.jobs.label_checks.check import run_check
from workers.jobs.laboratory import laboratory
from workers.metrics.judge_error import measure_agreement
from workers.protocols import Picture, no_progress
from workers.record.label_checks import CheckResult, NaturalResult

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis_url", "on_toybox", "no_redis")]
Says = Callable[[ConceptQuestion], str]


@pytest.fixture
def reviewers(db: None) -> list[User]:
    return [member(name, "REVIEWER") for name in ("ada", "ben")]


def ask(text: str = "balls", judges: int = 1, guess: str = "toybox") -> LabelCheck:
    """The check as the worker leaves it when it has put the questions."""
    method = replace(choose_method("synthetic:toybox-eyes", people=judges), guess=guess)
    return go_on(request_check(unit(), text, method, enqueue=False))


def go_on(check: LabelCheck) -> LabelCheck:
    run_check(check.pk, no_progress)
    check.refresh_from_db()
    return check


def judge_all(check: LabelCheck, user: User, says: Says, most: int = 1_000) -> None:
    """This person judges what they are offered, in its order."""
    for _ in range(most):
        check.refresh_from_db()
        found = CheckDesk(check).list_next(user, 1)
        if not found:
            return
        question = ConceptQuestion.objects.get(pk=found[0].pk)
        answer(Actor(user), "checks", check.pk, question.pk, says(question))


def look_closely(check: LabelCheck) -> Says:
    """A person who errs never: what the scene behind an image says."""
    images, exact = ImagesInDatabase(), laboratory().presence_judge("toybox")
    keys = dict(check.questions.values_list("pk", "image"))
    known = {pk: images.recall(key) for pk, key in keys.items()}
    pictures = [Picture(images.load(keys[pk]), each.scene if each else None) for pk, each in known.items()]
    said = dict(zip(known, exact.judge(check.text, pictures, no_progress), strict=True))
    return lambda question: "yes" if (said[question.pk] or 0) >= 0.5 else "no"


def natural_of(check: LabelCheck) -> NaturalResult:
    found = msgspec.convert(check.result, CheckResult).natural
    assert found is not None
    return found


def test_a_worker_draws_images_and_waits(reviewers: list[User]) -> None:
    check = ask()
    every = list(check.questions.all())
    natural = [each for each in every if each.expected is None]
    assert check.status == CheckStatus.UNFINISHED
    assert check.waits_for_people
    assert check.reason == f"It waits for people: 0 of {len(every)} images judged."
    assert (check.result, check.pearson) == ({}, None)
    assert len(natural) == sampling.DRAWS
    assert len({each.probe_position for each in natural}) == len(natural)
    assert sorted(each.expected for each in every if each.expected is not None) == [False] * 6 + [True] * 6
    kinds = [each.expected is None for each in every]
    assert False in kinds[: len(kinds) // 2], "known cases stand among the others"
    told = Notification.objects.filter(url=f"/judging/checks/{check.pk}/")
    assert {each.user.username for each in told} == {"ada", "ben"}
    assert "balls" in told[0].words
    assert run_check(check.pk, no_progress) is not None  # somebody asks again: nothing is drawn twice
    assert check.questions.count() == len(every)


def test_the_recovery_job_leaves_it_alone(reviewers: list[User]) -> None:
    check = ask()
    LabelCheck.objects.filter(pk=check.pk).update(beat=timezone.now() - 2 * held.SILENCE)
    notify.muted.clear()
    long.recover()
    check.refresh_from_db()
    assert check.status == CheckStatus.UNFINISHED
    assert check.beat < timezone.now() - held.SILENCE


def test_answers_measure_the_label(reviewers: list[User]) -> None:
    check = ask()
    judge_all(check, reviewers[0], look_closely(check))
    assert check.status == CheckStatus.QUEUED
    check = go_on(check)
    found = natural_of(check)
    natural = check.questions.filter(expected=None).count()
    assert (check.status, check.reason) == (CheckStatus.DONE, "")
    assert (found.judge, found.exact, found.images, found.unread) == ("People (1)", False, natural, 0)
    assert check.pearson is not None
    assert check.pearson > 0.7
    assert check.generated_auc is not None
    assert found.judge_error is not None
    assert (found.judge_error.n, found.judge_error.unread) == (12, 0)
    assert found.judge_error.false_positives.high is not None
    assert found.agreement.value is None
    assert (found.agreement_alpha.value, found.agreement_alpha.why != "") == (None, True)
    assert found.corrected is not None
    assert found.corrected.pearson.value == pytest.approx(check.pearson), "they erred in no known case"
    assert [floor.what for floor in found.floors if "drawn at random" not in floor.what] == []
    assert found.floors
    assert found.ceiling is None
    wrong = ask("cars")
    judge_all(wrong, reviewers[1], look_closely(wrong))
    wrong = go_on(wrong)
    assert wrong.pearson is None or wrong.pearson < 0.3


def test_who_guesses_is_a_free_judge_of_the_images(settings) -> None:
    model, photos = "hf:microsoft/resnet-152", "folder:/photos"
    assert choose_method("synthetic:toybox-eyes", people=1).options["guess"] == "toybox"
    assert "guess" not in choose_method("synthetic:toybox-eyes").options, "its judge sees all images"
    assert "guess" not in choose_method(model, dataset=photos, people=1).options
    settings.LAB_PRESENCE_JUDGE = "clip:one"
    assert choose_method(model, dataset=photos, people=1).options["guess"] == "clip:one"
    assert "guess" not in choose_method(model, dataset=photos).options


def test_a_rare_label_gets_an_interval_if_a_judge_guesses(
    reviewers: list[User], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_out, "PILOT", 60)
    monkeypatch.setattr(sampling, "DRAWS", 90)
    found = []
    for guess in ("toybox", "", "clip:nobody/no-such-siglip"):
        check = ask(guess=guess)
        judge_all(check, reviewers[0], look_closely(check))
        found.append(go_on(check))
    guessed, *others = found
    assert guessed.kept["sample"]["images"] > 60
    assert guessed.pearson_low is not None
    assert natural_of(guessed).images == len(natural_of(guessed).activations) == 90
    for plain in others:
        assert plain.status == CheckStatus.DONE, "it does without the guess"
        assert plain.kept["sample"]["images"] == natural_of(plain).images == 60
        assert plain.pearson is not None
        assert plain.pearson_low is None


def test_answers_from_before_samples_were_kept_still_count(reviewers: list[User]) -> None:
    check = ask()
    judge_all(check, reviewers[0], look_closely(check))
    LabelCheck.objects.filter(pk=check.pk).update(kept={})
    found = natural_of(go_on(check))
    assert found.images == check.questions.filter(expected=None).count()


def test_half_of_the_answers_measure_it_with_fewer_images(reviewers: list[User]) -> None:
    check = ask()
    judge_all(check, reviewers[0], look_closely(check), most=90)
    close(Actor(member("boss", "RESEARCHER")), "checks", check.pk)
    found = natural_of(go_on(check))
    judged = check.questions.filter(expected=None, answers__isnull=False).count()
    assert check.status == CheckStatus.DONE
    assert found.images == judged
    assert 60 < judged < 90
    assert found.unread == 0, "what nobody was shown is not unread"
    assert found.judge_error is not None
    assert found.judge_error.n == 90 - judged


def test_two_people_are_averaged_and_compared(reviewers: list[User]) -> None:
    check = ask(judges=2)
    ada, ben = reviewers
    right = look_closely(check)
    judge_all(check, ada, right)
    assert check.waits_for_people
    first = check.questions.filter(expected=None).earliest("pk").pk
    judge_all(check, ben, lambda each: "unsure" if each.pk == first else "no" if right(each) == "yes" else "yes")
    found = natural_of(go_on(check))
    asked = check.questions.count()
    assert found.judge == "People (2)"
    assert set(found.expected) - {None, 0.5} <= {0.0, 1.0}
    assert list(found.expected).count(0.5) == check.questions.filter(expected=None).count() - 1
    assert (found.agreement.value, found.agreement.n) == (0.0, asked)
    assert found.agreement_alpha.n == asked
    assert found.agreement_alpha.value is not None
    assert found.agreement_alpha.value < 0, "they agree less than chance would have them"
    assert ConceptAnswer.objects.count() == 2 * asked


def test_a_label_of_which_nobody_can_tell_has_no_figure(reviewers: list[User]) -> None:
    check = ask("something nice")
    assert not check.questions.filter(expected__isnull=False).exists(), "nobody can draw it"
    judge_all(check, reviewers[0], lambda _: "unsure")
    check = go_on(check)
    assert check.status == CheckStatus.UNTESTABLE
    assert "No answer decides" in check.reason
    assert check.pearson is None


def test_people_judge_a_label_that_cannot_be_drawn(reviewers: list[User]) -> None:
    check = ask("zebras in a forest")
    judge_all(check, reviewers[0], lambda each: "yes" if each.position % 2 else "no")
    check = go_on(check)
    assert check.status == CheckStatus.DONE
    assert check.pearson is not None
    assert check.generated_auc is None
    assert "zebras" in check.reason


def test_agreement_is_the_share_of_equal_pairs() -> None:
    assert measure_agreement([["yes"], []]).value is None
    one = measure_agreement([["yes", "yes"], ["yes", "no"], ["no"]])
    assert (one.value, one.n) == (0.5, 2)
    three = measure_agreement([["yes", "yes", "no"]])
    assert three.value == pytest.approx(1 / 3)
    assert three.low is not None
    assert three.low < 1 / 3


def test_people_judge_where_nobody_writes_prompts(reviewers: list[User]) -> None:
    method = CheckMethod("toybox", "toybox", "", PEOPLE)
    check = go_on(request_check(unit(), "balls", method, enqueue=False))
    assert not check.questions.filter(expected__isnull=False).exists()
    judge_all(check, reviewers[0], look_closely(check))
    check = go_on(check)
    assert check.status == CheckStatus.DONE
    assert "There is no writer of prompts" in check.reason
    assert check.pearson is not None
    assert natural_of(check).judge_error is None
