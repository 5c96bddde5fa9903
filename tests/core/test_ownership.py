"""One rule for rows of every kind: who owns one, and admins, change it; others read it. Nobody's are everybody's."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client

from experiments.core.actors import Actor
from experiments.core.audit import Verb, list_authors, record
from experiments.label_checks.actions import check_label
from experiments.models import ConceptAnswer, HumanReply, Label, LabelCheck, Share, TokenScope, Unit
from experiments.runs.human.drafts import find_current
from tests.support import api_world
from tests.support.api_world import Script
from tests.support.builders import make_run
from tests.support.judged_images import make_waiting
from tests.support.people import member
from tests.support.shared_run import link

pytestmark = pytest.mark.usefixtures("redis_url")


@pytest.fixture
def unit(owner: User) -> Unit:
    api_world.fill(owner)
    return Unit.objects.earliest("pk")


@pytest.fixture
def author(db: None) -> User:
    return member("author", "RESEARCHER")


@pytest.fixture
def other(db: None) -> User:
    return member("other", "RESEARCHER")


@pytest.fixture
def admin(db: None) -> User:
    return member("admin", "ADMIN")


def script(user: User) -> Script:
    return Script(user, TokenScope.WRITE)


def test_a_persons_label_is_theirs(unit: Unit, author: User, other: User, admin: User) -> None:
    places = [{"layer_id": unit.layer_id, "number": unit.number}]
    path = f"/labels/{script(author).post('/labels', {'text': 'red', 'units': places}).json()['id']}"
    for method, body in (("PATCH", {"text": "blue"}), ("DELETE", None)):
        said = script(other).send(method, path, body, If_Match=script(other).get(path)["ETag"])
        assert (said.status_code, "Another user wrote this label" in said.content.decode()) == (403, True)
    for user, text in ((author, "green"), (admin, "grey")):
        tag = script(user).get(path)["ETag"]
        assert script(user).send("PATCH", path, {"text": text}, If_Match=tag).json()["text"] == text


def test_a_label_that_nobody_here_wrote_is_everybodys(unit: Unit, other: User) -> None:
    row = Label.objects.create(text="brought", source="person")
    path = f"/labels/{row.pk}"
    assert script(other).send("DELETE", path, If_Match=script(other).get(path)["ETag"]).status_code == 204


def test_a_link_is_revoked_by_who_made_it_who_owns_the_run_and_admins(
    unit: Unit, owner: User, author: User, other: User, admin: User
) -> None:
    run = make_run(owner)
    for user in (author, owner, admin):
        share = link(run).share
        Share.objects.filter(pk=share.pk).update(created_by=author)
        assert script(other).send("DELETE", f"/shares/{share.pk}").status_code == 403
        client = Client()
        client.force_login(other)
        assert client.post(f"/runs/{run.pk}/shares/{share.pk}/revoke/").status_code == 403
        assert f"shares/{share.pk}/revoke/" not in client.get(f"/runs/{run.pk}/shares/").content.decode()
        assert script(user).send("DELETE", f"/shares/{share.pk}").status_code == 204


def test_only_who_asked_for_a_check_ends_what_people_judge(unit: Unit, author: User, other: User, admin: User) -> None:
    for user in (author, admin):
        check = make_waiting(unit, f"for {user}")
        record(Actor(author), Verb.LABEL_CHECKED, check)
        judge = member(f"judge of {user}", "REVIEWER")
        question = check.questions.filter(expected=None).earliest("pk")
        ConceptAnswer.objects.create(question=question, user=judge, answer="yes")
        path = f"/judging/checks/{check.pk}/close"
        assert script(other).post(path).status_code == 403
        assert LabelCheck.objects.get(pk=check.pk).waits_for_people
        question = check.questions.filter(answers=None).earliest("pk")
        said = script(judge).post(f"/judging/checks/{check.pk}/answers", {"item": question.pk, "answer": "no"})
        assert said.status_code == 201, "reviewers judge as before"
        assert script(user).post(path).status_code == 200


def test_asking_for_a_check_is_on_record(unit: Unit, author: User) -> None:
    assert list_authors(check_label(Actor(author), unit, "asked for", people=1), Verb.LABEL_CHECKED) == [author.pk]


def test_a_draft_of_a_round_is_its_authors_alone(owner: User, other: User) -> None:
    run = make_run(owner, backbone="person")
    path = f"/runs/{run.pk}/reply"
    for user, text in ((owner, "mine"), (other, "another's")):
        found = script(user).get(path)
        assert script(user).send("PUT", path, {"prose": text}, If_Match=found["ETag"]).status_code == 200
    assert HumanReply.objects.count() == 2
    assert find_current(run, owner).prose == "mine"
    assert script(owner).get(path).json()["prose"] == "mine"
