"""What holds at every desk, whether a pair of labels or an image is judged: answers, undo, who may, what is refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models import Model
from django.test import Client

from experiments.judging.desk import DESKS
from experiments.judging.waiting import list_waiting
from experiments.models import AuditEntry, ConceptAnswer, Role, Vote
from tests.support import trials
from tests.support.api_world import Script
from tests.support.judged_images import make_waiting
from tests.support.people import member, signed_in

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis_url")]
SCRIPT = {"HX-Request": "true"}


@dataclass(frozen=True)
class Kind:
    """A kind of desk: two different answers to its items, where answers are kept, and the rows that it needs."""

    name: str
    answers: tuple[str, str]
    rows: type[Vote | ConceptAnswer]
    make: Callable[[User], Model]


KINDS = (
    Kind("trials", ("first", "second"), Vote, lambda owner: trials.labelled(owner) and trials.trial(owner)),
    Kind("checks", ("yes", "no"), ConceptAnswer, lambda _: make_waiting(trials.unit(7))),
)


@pytest.fixture(params=KINDS, ids=[each.name for each in KINDS])
def kind(request: pytest.FixtureRequest) -> Kind:
    return request.param


@pytest.fixture
def desk(kind: Kind, owner: User) -> str:
    """Its address."""
    return f"/judging/{kind.name}/{kind.make(owner).pk}/"


@pytest.fixture
def judge(db: None) -> Client:
    return signed_in(member("judge", "REVIEWER"))


def on_screen(client: Client, desk: str) -> list[int]:
    """Items of the page, in their order."""
    page = client.get(desk).content.decode()
    return [int(each) for each in re.findall(r'data-item="(\d+)"', page)]


def test_the_same_answer_twice_is_one_and_another_one_is_refused(judge: Client, kind: Kind, desk: str) -> None:
    item, (one, two) = on_screen(judge, desk)[0], kind.answers
    for answer, status in ((one, 200), (one, 200), (two, 409)):
        sent = judge.post(f"{desk}answer/", {"item": item, "answer": answer}, headers=SCRIPT)
        assert sent.status_code == status
    assert "have already judged this" in sent.content.decode()
    assert kind.rows.objects.count() == 1
    assert AuditEntry.objects.filter(verb=DESKS[kind.name].GIVEN).count() == 1


def test_a_script_is_sent_the_item_after_those_it_holds(judge: Client, kind: Kind, desk: str) -> None:
    held = on_screen(judge, desk)
    assert len(held) == DESKS[kind.name].AHEAD
    body = {"item": held[0], "answer": kind.answers[0], "holds": held[1:]}
    response = judge.post(f"{desk}answer/", body, headers=SCRIPT)
    (sent,) = re.findall(r'data-item="(\d+)" hidden', response.content.decode())
    assert int(sent) not in held


@pytest.mark.parametrize(
    ("sent", "problem"),
    [
        ({"answer": "maybe"}, "is not an answer. Choose one of"),
        ({"item": "999999"}, "does not belong to this"),
        ({"item": "x" * 50}, "does not belong to this"),
        ({"item": "٣"}, "does not belong to this"),
    ],
)
def test_senseless_answers_are_refused_with_a_sentence(
    judge: Client, kind: Kind, desk: str, sent: dict[str, str], problem: str
) -> None:
    body = {"item": on_screen(judge, desk)[0], "answer": kind.answers[0]} | sent
    page = judge.post(f"{desk}answer/", body, follow=True).content.decode()
    assert problem in page
    assert not kind.rows.objects.exists()


def test_the_answer_of_another_kind_is_none(judge: Client, kind: Kind, desk: str) -> None:
    other = next(each for each in KINDS if each is not kind)
    item, script = on_screen(judge, desk)[0], Script(User.objects.get(username="judge"))
    refused = script.post(f"{desk}answers", {"item": item, "answer": other.answers[0]})
    assert refused.status_code == 422
    assert kind.answers[0] in refused.json()["detail"]
    assert not kind.rows.objects.exists()


@pytest.mark.parametrize(
    ("typed", "kept"), [("2.5", 2.5), ("nan", None), ("-1", None), ("1e9", None), ("soon", None), ("", None)]
)
def test_a_time_that_cannot_be_is_not_kept(
    judge: Client, kind: Kind, desk: str, typed: str, kept: float | None
) -> None:
    body = {"item": on_screen(judge, desk)[0], "answer": kind.answers[0], "seconds": typed}
    judge.post(f"{desk}answer/", body)
    assert kind.rows.objects.get().seconds == kept


def test_undo_takes_the_last_answer_back_and_shows_its_item(judge: Client, kind: Kind, desk: str) -> None:
    items = on_screen(judge, desk)
    for item in items[:2]:
        page = judge.post(f"{desk}answer/", {"item": item, "answer": kind.answers[0]}, follow=True)
    assert re.search(r'id="done">2</span> of \d+', page.content.decode())
    page = judge.post(f"{desk}undo/", follow=True)
    assert kind.rows.objects.count() == 1
    assert on_screen(judge, desk)[0] == items[1]
    for _ in range(2):
        assert judge.post(f"{desk}undo/", follow=True).status_code == 200
    assert not kind.rows.objects.exists()
    assert AuditEntry.objects.filter(verb=DESKS[kind.name].UNDONE).count() == 2


@pytest.mark.parametrize("role", [Role.VIEWER, Role.RESEARCHER])
def test_only_reviewers_judge(kind: Kind, desk: str, role: Role) -> None:
    user = member("somebody", role.name)
    client, script = signed_in(user), Script(user)
    item = on_screen(signed_in(member("judge", "REVIEWER")), desk)[0]
    body: Any = {"item": item, "answer": kind.answers[0]}
    assert client.get(desk).status_code == 403
    assert client.post(f"{desk}answer/", body).status_code == 403
    assert client.post(f"{desk}undo/").status_code == 403
    assert script.post(f"{desk}answers", body).status_code == 403
    assert not kind.rows.objects.exists()


def test_a_script_goes_on_until_nothing_is_left(kind: Kind, desk: str) -> None:
    user = member("judge", "REVIEWER")
    script = Script(user)
    (listed,) = script.get("/judging").json()
    assert (f"/judging/{listed['kind']}/{listed['id']}/", listed["left"]) == (desk, listed["items"])
    found = script.get(f"{desk}next").json()
    for done in range(1, listed["items"] + 1):
        sent = script.post(f"{desk}answers", {"item": found["item"]["id"], "answer": kind.answers[1], "seconds": 1})
        found = sent.json()
        assert (sent.status_code, found["judged"], found["items"]) == (201, done, listed["items"])
    assert found["item"] is None
    assert list_waiting(user, only_left=True) == []


@pytest.mark.parametrize("path", ["/judging/pairs/1/", "/judging/trials/9999/", "/judging/checks/9999/"])
def test_what_is_not_there_is_not_found(judge: Client, path: str) -> None:
    assert judge.get(path).status_code == 404
    for verb in ("answer", "undo"):
        assert judge.post(f"{path}{verb}/").status_code == 404
    assert signed_in(member("boss", "ADMIN")).post(f"{path}close/").status_code == 404
    assert judge.get(f"{path}answers.csv").status_code == 404


def test_who_is_late_is_told_that_it_is_closed(judge: Client, kind: Kind, desk: str) -> None:
    """The page was opened before."""
    natural = ConceptAnswer.question.field.related_model.objects.filter(expected=None).first()
    items = [natural.pk, natural.pk + 1] if natural else on_screen(judge, desk)
    judge.post(f"{desk}answer/", {"item": items[0], "answer": kind.answers[0]})
    signed_in(member("boss", "ADMIN")).post(f"{desk}close/")
    late = judge.post(f"{desk}answer/", {"item": items[1], "answer": kind.answers[0]}, headers=SCRIPT)
    assert late.status_code == 409
    assert judge.get(desk).status_code == 302
    assert judge.post(f"{desk}undo/", follow=True).status_code == 200
    assert kind.rows.objects.count() == 1
    assert signed_in(member("viewer", "VIEWER")).get(f"{desk}answers.csv").status_code == 200
