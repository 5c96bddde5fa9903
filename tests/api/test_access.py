"""Every operation of the API: who may call it, with which token; found by itself, so that none is forgotten."""

from __future__ import annotations

import ast
import inspect
import textwrap
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from experiments.models import ApiToken, Label, Run, TokenScope
from tests.support.api_operations import ALL, ASKED, OWN, READING, WRITING, call
from tests.support.api_world import Script, World, fill

RUN = {
    "create_run",
    "save_reply",
    "send_reply",
    "stop_program",
    "hand_run_over",
    "ask_again",
    "stop_run",
    "try_run_again",
    "ask_for_exemplars",
    "ask_for_layer_exemplars",
    "ask_for_causal_check",
    "ask_for_circuit_graph",
    "ask_for_circuit_exemplars",
    "search_circuit",
    "pause_run",
    "resume_run",
    "send_note",
    "change_limits",
    "fork_run",
    *(
        "start_evaluation",
        "stop_evaluation",
        "resume_evaluation",
        "repair_evaluation",
        "score_evaluation_again",
        "ask_for_check",
    ),
    "ask_people_for_labels",
    *("forecast_sweep", "start_sweep", "pause_sweep", "resume_sweep", "stop_sweep", "retry_sweep", "change_sweep"),
}
"""What takes a researcher and the scope to run."""
NOT_FOR_VIEWERS = {
    "fetch_judged_image",
    "list_shares",
    "list_all_shares",
    "list_study_shares",
    "read_agreement",
    "list_people",
    "list_invitations",
    "list_audit",
    *("list_webhooks", "read_webhook", "list_deliveries"),
}
"""What takes a researcher or an admin to read, or, while a queue is blind, somebody who has reviewed it."""
ADMIN = {
    *("add_model", "add_dataset", "delete_model", "delete_dataset"),
    *("set_role", "deactivate_person", "reactivate_person", "remove_person", "create_invitation", "revoke_invitation"),
    *("create_webhook", "change_webhook", "delete_webhook", "pause_webhook", "resume_webhook"),
    *("renew_webhook_secret", "test_webhook", "send_delivery_again"),
}
ASKED["search_units"] = "?q=red"
ASKED["compare_two_evaluations"] = "?a=1&b=2"


def ids(found: Any) -> str:
    return found.view_func.__name__ if hasattr(found, "view_func") else ""


@pytest.fixture
def world(owner: User) -> World:
    return fill(owner)


def is_problem(response: Any, status: int) -> None:
    assert response.status_code == status, response.content
    assert response["Content-Type"] == "application/problem+json"
    assert response.json()["status"] == status


@pytest.mark.parametrize(("path", "operation"), ALL, ids=ids)
def test_access_is_asked_in_the_first_line(path: str, operation: Any) -> None:
    function = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(operation.view_func)))).body[0]
    assert isinstance(function, ast.FunctionDef)
    body = function.body[1:] if ast.get_docstring(function) else function.body
    assert "authorize(request" in ast.unparse(body[0])


def test_an_anonymous_caller_is_asked_for_a_token(client: Client, world: World) -> None:
    for path, operation in ALL:
        response = call(client, path, operation, world)
        is_problem(response, 401)
        assert response["WWW-Authenticate"].startswith("Bearer")


def test_a_stranger_finds_nothing(stranger: User, world: World) -> None:
    script = Script(stranger)
    for path, operation in ALL:
        response = call(script, path, operation, world)
        is_problem(response, 404)
        assert world.run.question.encode() not in response.content


def test_a_viewer_reads_everything(teammate: User, world: World) -> None:
    script = Script(teammate, TokenScope.READ)
    for path, operation in READING:
        response = call(script, path, operation, world)
        absent = {
            "read_export",
            "fetch_export",
            "read_review",
            "read_view",
            "read_preset",
            "read_import",
            "compare_runs",
            "compare_two_evaluations",
        }  # there are none
        name = operation.view_func.__name__
        assert response.status_code == (403 if name in NOT_FOR_VIEWERS else 404 if name in absent else 200), name


def test_a_viewer_changes_nothing(teammate: User, world: World) -> None:
    script = Script(teammate)
    for path, operation in WRITING:
        if operation.view_func.__name__ not in OWN:
            is_problem(call(script, path, operation, world), 403)
    assert (Run.objects.count(), Label.objects.count()) == (1, 1)


def test_a_token_does_what_its_scope_says(owner: User, world: World) -> None:
    reader, runner = Script(owner, TokenScope.READ), Script(owner, TokenScope.RUN)
    for path, operation in WRITING:
        name = operation.view_func.__name__
        if name in OWN:
            continue
        is_problem(call(reader, path, operation, world), 403)
        if name not in RUN:
            is_problem(call(runner, path, operation, world), 403)
        elif name != "stop_run":
            assert call(runner, path, operation, world).status_code != 403


def test_only_an_admin_has_workers_read_a_place(owner: User, world: World) -> None:
    script = Script(owner)
    for path, operation in WRITING:
        if operation.view_func.__name__ in ADMIN:
            is_problem(call(script, path, operation, world), 403)


# --- tokens and sessions ---


@pytest.mark.parametrize("text", ["", "maia_", "maia_" + "x" * 43, "ключ", "a b", "x" * 5000])
def test_a_token_that_is_none_is_refused_even_with_a_session(as_owner: Client, text: str) -> None:
    is_problem(as_owner.get("/api/v1/me", headers={"Authorization": f"Bearer {text}"}), 401)


def test_a_spent_token_opens_nothing(owner: User, world: World) -> None:
    for change in ({"revoked": "2026-01-01T00:00Z"}, {"expires": "2026-01-01T00:00Z"}):
        script = Script(owner)
        assert script.get("/me").status_code == 200
        ApiToken.objects.update(**change)
        is_problem(script.get("/me"), 401)


def test_a_token_of_somebody_who_has_left_opens_nothing(owner: User) -> None:
    script = Script(owner)
    User.objects.update(is_active=False)
    is_problem(script.get("/me"), 401)


def test_a_token_is_kept_as_a_hash_and_its_use_is_noted(owner: User) -> None:
    row, text = ApiToken.issue(owner, "report")
    assert len(text) > 40
    assert text not in str(ApiToken.objects.values().get())
    assert ApiToken.find(text) == row
    row.refresh_from_db()
    assert row.last_used is not None


def test_a_browser_reads_with_its_session_and_writes_with_the_csrf_token(owner: User, world: World) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(owner)
    assert browser.get("/api/v1/me").json()["token"] is None
    stop = f"/api/v1/runs/{world.run.pk}/stop"
    is_problem(browser.post(stop), 403)
    browser.get("/runs/")
    token = browser.cookies["csrftoken"].value
    assert browser.post(stop, headers={"X-CSRFToken": token}).json()["status"] == "cancelled"
