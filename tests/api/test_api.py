"""What the API answers: runs asked and steered, lists by cursor, versions and edits, requests sent twice, problems."""

from __future__ import annotations

import html
import re
import shlex
import threading
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core import signing
from django.db import connection
from django.test import Client

from experiments.api import throttling
from experiments.core import transcript
from experiments.models import IdempotencyKey, Label, Run, SearchText
from tests.support.api_world import KEY, PNG, Script, World, fill
from tests.support.builders import make_run, replied
from workers.record.decoding import decode
from workers.record.replies import Hypothesis
from workers.record.statuses import Status

QUERY = {"question": "What does unit 1 respond to?", "model": "toybox", "layer": "layer4", "unit": 1}


@pytest.fixture
def world(owner: User) -> World:
    return fill(owner)


@pytest.fixture
def script(owner: User) -> Script:
    return Script(owner)


def problem(response: Any, kind: str) -> dict[str, Any]:
    assert response["Content-Type"] == "application/problem+json"
    told: dict[str, Any] = response.json()
    assert told["type"].endswith(f"#problem-{kind}"), told
    assert told["status"] == response.status_code
    assert told["detail"]
    return told


# --- runs ---


def test_a_query_becomes_a_run_as_on_the_page(script: Script, world: World, owner: User) -> None:
    made = script.post("/runs", QUERY | {"unit": "1", "limits": {"rounds": 3, "cost": None}, "dataset": "toybox"})
    assert made.status_code == 201
    run = Run.objects.latest("pk")
    assert made["Location"] == f"/api/v1/runs/{run.pk}"
    assert (run.owner, run.unit, run.status, run.options) == (owner, 1, "queued", {"dataset": "toybox"})
    assert run.limits == {"rounds": 3, "tokens": 1_000_000, "cost": None, "seconds": 3600}
    assert script.get(f"/runs/{run.pk}").json() == made.json()


def test_a_query_that_cannot_be_is_told_field_by_field(script: Script, world: World) -> None:
    told = problem(script.post("/runs", QUERY | {"layer": "layer9", "limits": {"rounds": 0}}), "invalid")
    errors = {each["field"]: each["message"] for each in told["errors"]}
    assert errors["layer"] == "toybox has no layer “layer9”. Choose one of: layer4."
    assert "above 0" in errors["limits.rounds"]
    told = problem(script.post("/runs", {"question": "", "colour": "red", "seed": "0"}), "invalid")
    assert {"question", "model", "colour", "seed"} <= {each["field"] for each in told["errors"]}
    assert Run.objects.count() == 1


def test_a_run_is_stopped_and_asked_again(script: Script, world: World) -> None:
    path = f"/runs/{world.run.pk}"
    assert script.post(f"{path}/stop").json()["status"] == "cancelled"
    problem(script.post(f"{path}/try-again"), "conflict")
    again = script.post(f"{path}/again").json()
    assert (again["question"], again["status"]) == (world.run.question, "queued")


def test_a_run_that_waits_goes_on(script: Script, world: World) -> None:
    from experiments.core import transcript

    transcript.append(world.run.pk, "blocked", decode("blocked", {"round": 2, "reason": "the key is wrong"}))
    assert script.get(f"/runs/{world.run.pk}").json()["status"] == "waiting"
    assert script.post(f"/runs/{world.run.pk}/try-again").json()["status"] == "queued"


def test_runs_are_filtered_as_on_their_page(script: Script, world: World, owner: User) -> None:
    other = make_run(owner, question="Why blue?", status=Status.FAILED, layer="layer2")
    for query in ("status=failed", "layer=layer2", "backbone=scripted&status=failed", f"run={other.pk}", "unit=7"):
        assert [each["id"] for each in script.get(f"/runs?{query}").json()["items"]] == [other.pk], query
    assert script.get("/runs?since=2999-01-01").json() == {"items": [], "next": None}


@pytest.mark.parametrize(
    "query", ["status=odd", "since=yesterday", "unit=abc", "colour=red", "model=a&model=b", "task=x", "q=%25%25"]
)
def test_a_filter_that_makes_no_sense_is_refused(script: Script, query: str) -> None:
    told = problem(script.get(f"/runs?{query}"), "invalid")
    assert told["errors"][0]["field"] == query.partition("=")[0]
    assert told["errors"][0]["message"]


# --- what runs found ---


def test_observations_images_and_search_agree(script: Script, world: World) -> None:
    found = script.get("/observations?sort=strongest&low=2").json()["items"]
    assert [each["activation"] for each in found] == [3.0, 2.0]
    assert found[0]["image"] == KEY
    assert script.get(f"/images/{KEY}").json()["origin"] == "generated"
    fetched = script.get(f"/images/{KEY}/file")
    assert (fetched.content, fetched["Content-Type"]) == (PNG, "image/png")
    assert "immutable" in fetched["Cache-Control"]
    problem(script.get("/observations?low=3&high=2"), "invalid")
    assert script.get("/search?q=likes+red").json()["items"][0]["run"] == world.run.pk


def test_a_search_tells_how_many_there_are_of_each_kind_as_its_page_does(script: Script, world: World) -> None:
    listed = (Hypothesis(1, "red things", "open"), Hypothesis(2, "red nights", "open"))
    transcript.append(world.run.pk, "reply", replied(3, prose="Is it red?", hypotheses=listed))
    every = script.get("/search?q=red").json()
    assert sum(every["kinds"].values()) == every["total"] > 1
    assert len(every["kinds"]) > 1
    kind = min(every["kinds"], key=every["kinds"].get)
    narrowed = script.get(f"/search?q=red&kind={kind}").json()
    assert narrowed["total"] == every["kinds"][kind]
    assert narrowed["kinds"] == every["kinds"]


def test_a_unit_tells_its_figures_and_exemplars(script: Script, world: World) -> None:
    place = f"/layers/{world.layer.pk}/units"
    unit = script.get(f"{place}/1").json()
    assert (unit["labels"], unit["runs"], unit["profiles"][0]["exemplar_mean"]) == (["red balls"], 1, 2.0)
    assert script.get(f"{place}/1/exemplars?dataset=toybox").json()["items"][0]["masked"] == KEY
    assert script.get(f"{place}/2").json()["profiles"] == []
    assert "units 0 to 63" in problem(script.get(f"{place}/64"), "missing")["detail"]
    assert script.post(f"{place}/2/exemplars", {"dataset": "toybox"}).status_code == 202


def test_an_export_is_ones_own(script: Script, world: World, teammate: User) -> None:
    made = script.post("/exports", {"what": "runs", "format": "csv", "query": "unit=1"})
    assert made.status_code == 202
    assert made.json()["status"] == "queued"
    path = made["Location"].removeprefix("/api/v1")
    problem(script.get(f"{path}/file"), "missing")
    problem(Script(teammate).get(path), "missing")
    problem(script.post("/exports", {"what": "runs", "query": "unit=x"}), "invalid")
    assert script.send("DELETE", path).status_code == 204
    problem(script.get(path), "missing")


# --- lists ---


def test_a_list_is_read_page_by_page_without_gaps(script: Script, owner: User) -> None:
    made = [make_run(owner).pk for _ in range(7)]
    seen, cursor = [], ""
    while True:
        page = script.get(f"/runs?limit=3&sort=oldest{cursor}").json()
        seen += [each["id"] for each in page["items"]]
        if not page["next"]:
            break
        cursor = f"&cursor={page['next']}"
    assert seen == made


def test_equal_activations_are_paged_too(script: Script, world: World) -> None:
    from experiments.models import Observation

    Observation.objects.update(activation=1.0)
    first = script.get("/observations?sort=strongest&limit=2").json()
    rest = script.get(f"/observations?sort=strongest&limit=2&cursor={first['next']}").json()
    ids = [each["id"] for each in first["items"] + rest["items"]]
    assert len(set(ids)) == 3
    assert ids == sorted(ids, reverse=True)


def test_a_cursor_leads_on_in_its_own_list_alone(script: Script, owner: User) -> None:
    for _ in range(3):
        make_run(owner)
    cursor = script.get("/runs?limit=1").json()["next"]
    assert script.get(f"/runs?limit=2&cursor={cursor}").status_code == 200
    forged = signing.dumps(["x", 1], salt="another")
    for path in (
        f"/runs?cursor={cursor}x",
        f"/runs?unit=7&cursor={cursor}",
        f"/labels?cursor={cursor}",
        f"/runs?cursor={forged}",
    ):
        problem(script.get(path), "cursor")
    problem(script.get("/runs?limit=100000"), "invalid")


@pytest.mark.parametrize("path", ["/runs", "/observations", "/experiments", "/labels", "/units", "/jobs", "/exports"])
def test_a_list_costs_the_same_queries_however_long(
    script: Script, world: World, owner: User, path: str, django_assert_max_num_queries: Any
) -> None:
    with django_assert_max_num_queries(8) as few:
        script.get(path)
    from tests.support.api_world import told_run

    for number in range(4):
        told_run(owner)
        Label.objects.create(text=str(number), source="person").units.set(world.layer.unit_set.all())
    with django_assert_max_num_queries(len(few)):
        script.get(path)


# --- versions and edits ---


def test_what_has_not_changed_is_not_sent_again(script: Script, world: World) -> None:
    first = script.get(f"/labels/{world.label.pk}")
    again = script.get(f"/labels/{world.label.pk}", If_None_Match=first["ETag"])
    assert (again.status_code, again.content) == (304, b"")
    Label.objects.update(text="blue")
    assert script.get(f"/labels/{world.label.pk}", If_None_Match=first["ETag"]).status_code == 200


def test_an_edit_needs_the_version_it_was_made_on(script: Script, world: World) -> None:
    path = f"/labels/{world.label.pk}"
    tag = script.get(path)["ETag"]
    problem(script.send("PATCH", path, {"text": "blue"}), "if-match")
    assert script.send("PATCH", path, {"text": "blue balls"}, If_Match=tag).json()["text"] == "blue balls"
    problem(script.send("PATCH", path, {"text": "green"}, If_Match=tag), "changed")
    problem(script.send("DELETE", path, If_Match='"odd", W/"x"'), "changed")
    assert SearchText.objects.get(kind="label").text == "blue balls"
    assert script.send("DELETE", path, If_Match=script.get(path)["ETag"]).status_code == 204
    assert not SearchText.objects.filter(kind="label").exists()


def test_only_labels_of_people_are_edited(script: Script, world: World) -> None:
    Label.objects.update(source="run")
    problem(script.send("PATCH", f"/labels/{world.label.pk}", {"text": "x"}, If_Match="*"), "conflict")


def test_tags_are_set_whole(script: Script, world: World) -> None:
    path = f"/runs/{world.run.pk}/tags"
    tag = script.get(path)["ETag"]
    assert script.send("PUT", path, {"tags": ["seen", "odd"]}, If_Match=tag).json() == {"tags": ["odd", "seen"]}
    problem(script.send("PUT", path, {"tags": []}, If_Match=tag), "changed")
    assert script.get(f"/runs/{world.run.pk}").json()["tags"] == ["odd", "seen"]


# --- requests sent twice ---


def test_the_same_request_makes_one_run(script: Script, world: World) -> None:
    first, second = (script.post("/runs", QUERY, Idempotency_Key="once") for _ in range(2))
    assert first.json() == second.json()
    assert first["Location"] == second["Location"]
    assert second["Idempotency-Replayed"] == "true"
    assert Run.objects.count() == 2
    problem(script.post("/runs", QUERY | {"seed": 1}, Idempotency_Key="once"), "key-reused")
    IdempotencyKey.objects.update(created="2026-01-01T00:00Z")
    assert script.post("/runs", QUERY, Idempotency_Key="once").json()["id"] != first.json()["id"]


def test_a_request_that_was_refused_may_be_mended(script: Script, world: World) -> None:
    problem(script.post("/runs", QUERY | {"layer": "x"}, Idempotency_Key="k"), "invalid")
    assert script.post("/runs", QUERY, Idempotency_Key="k").status_code == 201
    problem(script.post("/runs", QUERY, Idempotency_Key="k" * 201), "invalid")


@pytest.mark.django_db(transaction=True)
def test_the_same_request_at_the_same_moment_makes_one_run(owner: User, redis_url: str) -> None:
    fill(owner)
    script, start, answers = Script(owner), threading.Barrier(4), []

    def ask() -> None:
        start.wait()
        answers.append(script.post("/runs", QUERY, Idempotency_Key="race").json()["id"])
        connection.close()

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 4
    assert len(set(answers)) == 1
    assert Run.objects.count() == 2


# --- problems and bounds ---


def test_there_is_no_page_among_the_errors(script: Script, client: Client) -> None:
    assert "no address /api/v1/nothing" in problem(script.get("/nothing"), "missing")["detail"]
    response = script.send("PUT", "/runs")
    problem(response, "method")
    assert response["Allow"] == "GET, POST"
    problem(script.post("/runs", "{not json"), "unreadable")
    assert client.get("/api/v1/").status_code == 302


def test_a_body_is_bounded(script: Script, settings: Any) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000
    problem(script.post("/runs", QUERY | {"question": "x" * 1000}), "too-large")
    problem(script.post("/runs", QUERY, Transfer_Encoding="chunked"), "length")


def test_what_nobody_foresaw_is_told_without_its_insides(
    script: Script, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("secret of the machine")

    monkeypatch.setattr("experiments.runs.lists.runs_from", broken)
    response = script.get("/runs")
    problem(response, "broken")
    assert b"secret" not in response.content
    assert "secret of the machine" in caplog.text


def test_requests_of_one_token_are_counted(owner: User, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttling, "LIMIT", 2)
    monkeypatch.setattr(throttling, "WINDOW", 10**9)  # a minute may end between two requests
    script, other = Script(owner), Script(owner)
    answers = [script.get("/me") for _ in range(3)]
    assert [each["RateLimit-Remaining"] for each in answers] == ["1", "0", "0"]
    told = problem(answers[2], "too-many")
    assert answers[2]["Retry-After"] == answers[2]["RateLimit-Reset"]
    assert "2 requests a minute" in told["detail"]
    assert other.get("/me").status_code == 200


def test_without_redis_nobody_is_turned_away(script: Script) -> None:
    response = script.get("/me")
    assert response.status_code == 200
    assert "RateLimit-Limit" not in response


# --- the pages about it ---


def test_a_token_is_shown_once(as_owner: Client, owner: User) -> None:
    made = as_owner.post("/settings/tokens/", {"name": "nightly", "scope": "2", "days": "30"}).content.decode()
    text = made.partition("Bearer ")[2].partition("&quot;")[0].partition('"')[0]
    assert Client().get("/api/v1/me", headers={"Authorization": f"Bearer {text}"}).json()["token"]["name"] == "nightly"
    page = as_owner.get("/settings/tokens/").content.decode()
    assert "nightly" in page
    assert text not in page
    row = owner.api_tokens.get()
    as_owner.post(f"/settings/tokens/{row.pk}/revoke/")
    assert "Revoked" in as_owner.get("/settings/tokens/").content.decode()


@pytest.mark.parametrize("bad", [{"name": ""}, {"days": "0"}, {"days": "9999"}, {"scope": "9"}, {"name": "<b>" * 40}])
def test_a_token_that_cannot_be_made_keeps_what_was_typed(as_owner: Client, bad: dict[str, str]) -> None:
    answer = as_owner.post("/settings/tokens/", {"name": "mine", "scope": "1", "days": "30"} | bad)
    assert answer.status_code == 400
    assert 'aria-invalid="true"' in answer.content.decode()
    assert "<b><b>" not in answer.content.decode()


def test_somebody_elses_token_is_not_revoked(as_owner: Client, teammate: User) -> None:
    from experiments.models import ApiToken

    row, _ = ApiToken.issue(teammate, "theirs")
    assert as_owner.post(f"/settings/tokens/{row.pk}/revoke/").status_code == 404


# --- the same with curl ---


def curl_line(page: str) -> list[str]:
    """The words of the command that the page shows."""
    (shown,) = re.findall(r"<pre[^>]*>(curl.*?)</pre>", page, re.DOTALL)
    return shlex.split(html.unescape(re.sub(r"<[^>]*>", "", shown)))


def test_the_curl_line_asks_what_the_form_says(as_owner: Client, script: Script, world: World) -> None:
    typed = {"question": "What's “it”?\nred", "unit": "1", "rounds": "", "cost": "2.5", "seed": "7", "task": "bias"}
    page = as_owner.get("/query/command/", {"model": "toybox", "layer": "layer4"} | typed).content.decode()
    line = curl_line(page)
    assert line[:3] == ["curl", "-H", "Authorization: Bearer $MAIA_TOKEN"]
    assert line[-1] == "http://testserver/api/v1/runs"
    made = script.post("/runs", line[line.index("--json") + 1])
    assert made.status_code == 201
    run = Run.objects.latest("pk")
    assert (run.question, run.unit, run.seed, run.task) == ("What's “it”? red", 1, 7, "bias")
    assert (run.limits["rounds"], run.limits["cost"], run.limits["tokens"]) == (None, 2.5, 1_000_000)


@pytest.mark.parametrize("typed", [{"rounds": "many"}, {"cost": "nan"}, {"seed": "-1"}, {"unit": "'; rm -rf /"}])
def test_the_curl_line_carries_nonsense_to_the_api_which_says_so(
    as_owner: Client, script: Script, world: World, typed: dict[str, str]
) -> None:
    values = {"model": "toybox", "layer": "layer4", "question": "x", "unit": "1"} | typed
    page = as_owner.get("/query/command/", values).content.decode()
    line = curl_line(page)
    told = problem(script.post("/runs", line[line.index("--json") + 1]), "invalid")
    assert next(iter(typed)) in told["errors"][0]["field"]
