"""People as judges of images: what each is shown, what is kept, when a check goes on, what stays hidden."""

from __future__ import annotations

import csv
import io
import re

import pytest
from django.contrib.auth.models import User
from django.test import Client

from experiments.label_checks.desk import CheckDesk
from experiments.label_checks.requests import choose_method, request_check
from experiments.models import AuditEntry, CheckStatus, ConceptAnswer, Image, LabelCheck, Run, Unit
from tests.support import trials
from tests.support.api_world import Script
from tests.support.builders import make_run
from tests.support.judged_images import make_waiting
from tests.support.people import member, signed_in
from tests.support.pictures import stored

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis_url")]
SCRIPT = {"HX-Request": "true"}


@pytest.fixture
def unit(db: None) -> Unit:
    return trials.unit(7)


@pytest.fixture
def check(unit: Unit) -> LabelCheck:
    """Five images, two of them known."""
    return make_waiting(unit)


@pytest.fixture
def reviewer(db: None) -> User:
    return member("reviewer", "REVIEWER")


@pytest.fixture
def as_reviewer(reviewer: User) -> Client:
    client = Client()
    client.force_login(reviewer)
    return client


def say(client: Client, check: LabelCheck, answer: str, question: int | None = None, **more: object):
    """What the page sends; of the first image on it unless one is named."""
    shown = question or on_screen(client, check)[0]
    return client.post(f"/judging/checks/{check.pk}/answer/", {"item": shown, "answer": answer, **more}, follow=True)


def on_screen(client: Client, check: LabelCheck) -> list[int]:
    """Questions of the page, in their order."""
    page = client.get(f"/judging/checks/{check.pk}/").content.decode()
    return [int(each) for each in re.findall(r'data-item="(\d+)"', page)]


# --- what a judge sees ---


def test_a_judge_sees_a_label_and_an_image_and_nothing_of_the_unit(as_reviewer: Client, check: LabelCheck) -> None:
    other = signed_in(member("other", "REVIEWER"))
    say(other, check, "no")
    page = as_reviewer.get(f"/judging/checks/{check.pk}/").content.decode()
    main = page[page.index("<main") : page.index("</main>")]
    assert "red balls" in main
    assert "0</span> of 5" not in main, "what another has judged is not asked again"
    assert "Also judging: other" in main
    for secret in ("layer4", "unit 7", "activation", "toybox", "expected", "known", "Does not show", "judged by"):
        assert secret not in main
    assert main.count("<article") == 3
    assert main.count(" hidden>") >= 2, "those behind are loaded already"


def test_the_same_is_blind_for_scripts(reviewer: User, check: LabelCheck) -> None:
    script = Script(reviewer)
    found = script.get(f"/judging/checks/{check.pk}/next").json()
    assert found.keys() == {"item", "judged", "items"}
    assert found["item"].keys() == {"id", "labels", "truth", "images", "whole_images"}
    assert (found["item"]["labels"], found["item"]["truth"]) == (["red balls"], "")
    (listed,) = script.get("/judging").json()
    assert (listed["kind"], listed["name"], listed["items"], listed["left"]) == ("checks", "red balls", 5, 5)
    told = script.get(f"/checks/{check.pk}?full=true").json()
    assert (told["natural"], told["generated"], told["pearson"]) == (None, None, None)
    assert script.get(f"/judging/checks/{check.pk}/answers.csv").status_code == 409


def test_images_are_offered_by_lot_and_the_least_judged_first(unit: Unit) -> None:
    check = make_waiting(unit, natural=30, judges=2)
    people = [member(name, "REVIEWER") for name in ("ada", "ben", "cat")]
    orders = {tuple(row.pk for row in CheckDesk(check).list_pending(each)) for each in people}
    assert len(orders) == 3
    ada, ben, _ = people
    first = CheckDesk(check).list_pending(ben)[0]
    ConceptAnswer.objects.create(question=first, user=ada, answer="yes")
    assert CheckDesk(check).list_pending(ben)[-1].pk == first.pk
    ConceptAnswer.objects.create(question=first, user=ben, answer="yes")
    assert first.pk not in {row.pk for row in CheckDesk(check).list_pending(people[2])}, "it has enough answers"


def test_a_judge_is_not_told_where_an_image_is_from(reviewer: User, owner: User, unit: Unit, redis_url: str) -> None:
    key = stored("red")
    Image.objects.filter(pk=key).update(origin="generated", prompt="a large brown pyramid")
    check = make_waiting(unit, natural=1, known=0, keys=[key])
    script, client = Script(reviewer), signed_in(member("another", "REVIEWER"))
    question = script.get(f"/judging/checks/{check.pk}/next").json()["item"]
    page = client.get(f"/judging/checks/{check.pk}/").content.decode()
    image = script.get(question["images"][0].removeprefix("/api/v1"))
    assert (image.status_code, image["Content-Type"]) == (200, "image/png")
    assert client.get(f"/checks/{check.pk}/images/{question['id']}/").status_code == 200
    assert not [text for text in (page, str(question), str(image.headers)) if key[:16] in text]
    assert script.get(f"/images/{key}").status_code == client.get(f"/images/{key}/").status_code == 404
    assert Script(owner).get(f"/images/{key}").json()["prompt"] == "a large brown pyramid"
    script.post(f"/judging/checks/{check.pk}/answers", {"item": question["id"], "answer": "yes"})
    assert script.get(f"/images/{key}").json()["prompt"] == "a large brown pyramid"
    assert script.get(question["images"][0].removeprefix("/api/v1")).status_code == 404


# --- answers ---


def test_an_answer_is_kept_with_its_time_and_the_next_image_shown(as_reviewer: Client, check: LabelCheck) -> None:
    one, two, three = on_screen(as_reviewer, check)
    page = say(as_reviewer, check, "yes", one, seconds="2.5").content.decode()
    kept = ConceptAnswer.objects.get()
    assert (kept.question_id, kept.answer, kept.seconds) == (one, "yes", 2.5)
    assert page.index(f'data-item="{two}"') < page.index(f'data-item="{three}"')
    assert "1</span> of 5" in page
    assert AuditEntry.objects.filter(verb="image.judged").count() == 1
    check.refresh_from_db()
    assert check.reason == "It waits for people: 1 of 5 images judged."


# --- when a check goes on ---


def test_the_last_answer_has_a_worker_go_on(as_reviewer: Client, check: LabelCheck) -> None:
    for _ in range(5):
        check.refresh_from_db()
        assert (check.status, check.waits_for_people) == (CheckStatus.UNFINISHED, True)
        last = say(as_reviewer, check, "unsure")
    assert last.redirect_chain[-1][0] == f"/checks/{check.pk}/"
    check.refresh_from_db()
    assert (check.status, check.waits_for_people, check.reason) == (CheckStatus.QUEUED, False, "")
    refused = as_reviewer.post(f"/judging/checks/{check.pk}/undo/", follow=True).content.decode()
    assert "answers of this check are complete" in refused
    assert ConceptAnswer.objects.count() == 5


def test_two_people_answer_each_image(as_reviewer: Client, unit: Unit) -> None:
    check = make_waiting(unit, natural=2, known=0, judges=2)
    say(as_reviewer, check, "yes")
    say(as_reviewer, check, "yes")
    page = as_reviewer.get(f"/judging/checks/{check.pk}/").content.decode()
    assert "Nothing is left for you" in page
    other = signed_in(member("other", "REVIEWER"))
    say(other, check, "yes")
    check.refresh_from_db()
    assert (check.status, check.reason) == (CheckStatus.UNFINISHED, "It waits for people: 1 of 2 images judged.")
    say(other, check, "no")
    check.refresh_from_db()
    assert check.status == CheckStatus.QUEUED


def test_a_researcher_finishes_with_what_is_there(as_owner: Client, as_reviewer: Client, check: LabelCheck) -> None:
    address = f"/judging/checks/{check.pk}/close/"
    assert "No natural image has been judged" in as_owner.post(address, follow=True).content.decode()
    natural = check.questions.filter(expected=None).latest("pk").pk
    say(as_reviewer, check, "yes", natural)
    as_owner.post(address)
    check.refresh_from_db()
    assert (check.status, check.waits_for_people) == (CheckStatus.QUEUED, False)
    assert as_reviewer.get(f"/judging/checks/{check.pk}/").status_code == 302
    assert "answers of this check are complete" in as_owner.post(address, follow=True).content.decode()


def test_a_check_that_waits_is_not_begun_again(unit: Unit) -> None:
    method = choose_method("toybox", people=1)
    check = request_check(unit, "red balls", method, enqueue=False)
    LabelCheck.objects.filter(pk=check.pk).update(status=CheckStatus.UNFINISHED, waits_for_people=True)
    assert request_check(unit, "red balls", method).status == CheckStatus.UNFINISHED
    LabelCheck.objects.filter(pk=check.pk).update(waits_for_people=False)
    assert request_check(unit, "red balls", method).status == CheckStatus.QUEUED


# --- asking for people ---


def test_people_are_asked_on_a_check_of_its_own(as_owner: Client, unit: Unit) -> None:
    label = trials.label(unit, "red balls", "person")
    as_owner.post(f"/labels/{label.pk}/check/")
    as_owner.post(f"/labels/{label.pk}/check/", {"judge": "people", "judges": "3"})
    usual, people = LabelCheck.objects.order_by("pk")
    assert (usual.options["judge"], "judges" in usual.options) == ("toybox", False)
    assert (people.options["judge"], people.options["judges"]) == ("people", 3)
    label.refresh_from_db()
    assert label.label_check == usual
    assert f'href="/checks/{people.pk}/"' in as_owner.get(usual.get_absolute_url()).content.decode()


@pytest.mark.parametrize("judges", ["0", "11", "many", "-1", "", "9" * 30])
def test_a_number_of_people_that_makes_no_sense_is_refused(as_owner: Client, unit: Unit, judges: str) -> None:
    label = trials.label(unit, "red balls", "person")
    refused = as_owner.post(f"/labels/{label.pk}/check/", {"judge": "people", "judges": judges})
    assert refused.status_code == 400
    assert "people" in refused.content.decode()
    assert not LabelCheck.objects.exists()


def test_a_run_keeps_its_figures_while_people_are_asked(as_owner: Client, owner: User, unit: Unit) -> None:
    run = make_run(owner, status="concluded", conclusion={"labels": ["red balls"]})
    Script(owner).post("/checks", {"run": run.pk})
    usual = LabelCheck.objects.get()
    asked = Script(owner).post("/checks", {"run": run.pk, "judge": "people", "judges": 2}).json()
    assert asked["options"]["judges"] == 2
    run.refresh_from_db()
    assert run.label_check == usual
    assert Script(owner).post("/checks", {"run": run.pk, "judge": "people", "judges": 11}).status_code == 422
    assert Run.objects.count() == 1


# --- where it stands ---


@pytest.mark.parametrize("path", ["/review/", "/evaluations/", "/"])
def test_who_may_judge_finds_the_images(as_reviewer: Client, owner: User, check: LabelCheck, path: str) -> None:
    make_run(owner)
    page = as_reviewer.get(path).content.decode()
    assert f'href="/judging/checks/{check.pk}/"' in page
    assert f'href="/checks/{check.pk}/"' not in page
    assert "red balls" in page
    viewer = signed_in(member("viewer", "VIEWER"))
    assert f'href="/judging/checks/{check.pk}/"' not in viewer.get(path).content.decode()


def test_the_check_says_that_it_waits(as_owner: Client, check: LabelCheck) -> None:
    page = as_owner.get(check.get_absolute_url()).content.decode()
    assert "Needs attention: images to judge" in page
    assert "0 of 5 images judged" in page
    assert "failed" not in page[page.index("<main") :]
    assert "Judge images" not in page, "a researcher does not judge"
    assert "Finish with what is there" in page


# --- scripts and the file ---


def test_a_script_judges_and_finishes(reviewer: User, check: LabelCheck) -> None:
    script = Script(reviewer)
    first = script.get(f"/judging/checks/{check.pk}/next").json()["item"]
    said = script.post(f"/judging/checks/{check.pk}/answers", {"item": first["id"], "answer": "yes", "seconds": 1.5})
    assert (said.status_code, said.json()["judged"], said.json()["items"]) == (201, 1, 5)
    assert said.json()["item"]["id"] != first["id"]
    assert script.post(f"/judging/checks/{check.pk}/answers", {"item": first["id"], "answer": "no"}).status_code == 409
    assert script.post(f"/judging/checks/{check.pk}/undo").json()["item"]["id"] == first["id"]
    while (found := script.get(f"/judging/checks/{check.pk}/next").json())["item"]:
        script.post(f"/judging/checks/{check.pk}/answers", {"item": found["item"]["id"], "answer": "no"})
    assert (found["judged"], script.get("/judging").json()) == (5, [])
    assert script.post(f"/judging/checks/{check.pk}/close").status_code == 409
    other = make_waiting(check.unit, "cones")
    assert script.post(f"/judging/checks/{other.pk}/close").status_code == 409
    question = other.questions.filter(expected=None).earliest("pk").pk
    script.post(f"/judging/checks/{other.pk}/answers", {"item": question, "answer": "no"})
    assert script.post(f"/judging/checks/{other.pk}/close").json()["item"] is None
    other.refresh_from_db()
    assert other.status == CheckStatus.QUEUED


def test_the_file_holds_every_answer_and_every_image(as_owner: Client, as_reviewer: Client, check: LabelCheck) -> None:
    natural = check.questions.filter(expected=None).earliest("pk").pk
    say(as_reviewer, check, "yes", natural, seconds="3")
    address = f"/judging/checks/{check.pk}/answers.csv"
    assert as_owner.get(address).status_code == 404
    as_owner.post(f"/judging/checks/{check.pk}/close/")
    LabelCheck.objects.filter(pk=check.pk).update(text="=cmd()")
    rows = list(csv.DictReader(io.StringIO(as_owner.get(address).content.decode("utf-8-sig"))))
    assert len(rows) == 5
    assert [(row["judge"], row["answer"], row["seconds"]) for row in rows[:2]] == [
        ("reviewer", "yes", "3.0"),
        ("",) * 3,
    ]
    assert {row["label"] for row in rows} == {"'=cmd()"}
    assert [row["expected"] for row in rows] == ["", "", "", "true", "false"]
    assert as_owner.get("/judging/checks/99999/answers.csv").status_code == 404
