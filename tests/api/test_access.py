"""Every operation of the API: who may call it, with which token; found by itself, so that none is forgotten."""

from __future__ import annotations

import ast
import inspect
import textwrap
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from experiments.api.interface import api
from experiments.models import ApiToken, Label, Run, TokenScope
from tests.support.api_world import KEY, Script, World, fill

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
    "pause_run",
    "resume_run",
    "send_note",
    "change_limits",
    "fork_run",
    *("start_evaluation", "stop_evaluation", "resume_evaluation", "repair_evaluation", "ask_for_check"),
    "ask_people_for_labels",
    *("forecast_sweep", "start_sweep", "pause_sweep", "resume_sweep", "stop_sweep", "retry_sweep", "change_sweep"),
    "finish_judging",
}
"""What takes a researcher and the scope to run."""
NOT_FOR_VIEWERS = {
    "fetch_judged_image",
    "list_shares",
    "list_all_shares",
    "read_agreement",
    "list_people",
    "list_invitations",
    "list_audit",
}
"""What takes a researcher or an admin to read, or, while a queue is blind, somebody who has reviewed it."""
ADMIN = {
    *("add_model", "add_dataset", "delete_model", "delete_dataset"),
    *("set_role", "deactivate_person", "reactivate_person", "remove_person", "create_invitation", "revoke_invitation"),
}
OWN = {
    *("rename_me", "end_sessions", "revoke_token", "mark_notifications_read"),
    *("create_view", "edit_view", "delete_view", "create_export", "delete_export"),
}
"""One's own name, ways in, files and views, and what one was told, which a viewer may have."""
ASKED = {"search_all": "?q=red", "compare_runs": "?run={run}&run=99", "read_similar_units": "?dataset=toybox"}
ASKED["search_units"] = "?q=red"
ASKED["compare_two_evaluations"] = "?a=1&b=2"
BODIES: dict[str, Any] = {
    "rename_me": {"name": "Ada"},
    "set_role": {"role": "viewer"},
    "create_invitation": {},
    "create_share": {},
    "start_thread": {"text": "Too few."},
    "reply_in_thread": {"text": "Enough."},
    "resolve_thread": {"resolved": True},
    "edit_comment": {"text": "Far too few."},
    "mark_notifications_read": {"all": True},
    "create_view": {"name": "failed", "query": "status=failed"},
    "edit_view": {"name": "failed"},
    "create_preset": {"name": "short", "settings": {"task": "describe", "rounds": "9"}},
    "edit_preset": {"name": "shorter", "settings": {"task": "describe", "rounds": "5"}},
    "create_import": {"kind": "bundle", "file": b"PK"},
    "create_imports": {"kind": "bundle", "file": b"PK"},
    "create_run": {"question": "What?", "model": "toybox", "layer": "layer4", "unit": 1},
    "ask_for_exemplars": {"dataset": "toybox"},
    "ask_for_layer_exemplars": {"dataset": "toybox"},
    "save_reply": {},
    "hand_run_over": {"backbone": "person"},
    "send_note": {"text": "Look at snow."},
    "change_limits": {"rounds": 30},
    "fork_run": {"round": 1},
    "create_label": {"text": "blue", "units": [{"layer_id": 1, "number": 1}]},
    "edit_label": {"text": "blue"},
    "set_tags": {"tags": ["seen"]},
    "set_experiment_tags": {"tags": ["seen"]},
    "set_observation_tags": {"tags": ["seen"]},
    "create_export": {"what": "runs"},
    "create_vote": {"pair": 1, "answer": "first"},
    "create_trial": {"name": "Mine", "sources": ["agent", "person"]},
    "create_trial_of_evaluation": {"sources": ["agent", "one-shot"]},
    "start_evaluation": {"kind": "synthetic", "backbone": "scripted"},
    "resume_evaluation": {},
    "repair_evaluation": {"factor": 0},
    "start_sweep": {"model": "toybox", "layers": ["layer4"], "agents": ["scripted"]},
    "forecast_sweep": {"model": "toybox", "layers": ["layer4"], "agents": ["scripted"]},
    "retry_sweep": {},
    "change_sweep": {},
    "ask_for_check": {"run": 1},
    "create_answer": {"question": 1, "answer": "yes"},
    "ask_judge": {"backbone": "openai:gpt-4o"},
    "create_queue": {"name": "Own", "runs": [1]},
    "put_run_up": {"run": 1},
    "give_final_verdict": {"verdict": "accept", "reason": "Enough."},
    "save_review": {"supported": 4},
    "decline_review": {"reason": "My own."},
    "submit_review": {"run_seq": 0},
    "add_model": {"name": "hf:x/y"},
    "add_dataset": {"place": "/data"},
    "add_index": {"dataset": "toybox", "model": "toybox", "layers": ["layer4"]},
}


def operations() -> list[Any]:
    return [
        (f"/{path.lstrip('/')}", operation)
        for router in api._get_bound_routers()
        for path, view in router.path_operations.items()
        for operation in view.operations
    ]


ALL = operations()
WRITING = [each for each in ALL if each[1].methods != ["GET"]]
READING = [each for each in ALL if each[1].methods == ["GET"]]


def ids(found: Any) -> str:
    return found.view_func.__name__ if hasattr(found, "view_func") else ""


@pytest.fixture
def world(owner: User) -> World:
    return fill(owner)


def call(script: Script | Client, path: str, operation: Any, world: World) -> Any:
    """The operation on what there is in the world."""
    name = operation.view_func.__name__
    noun = path.split("/")[1]
    known = {"models": world.layer.model_id, "layers": world.layer.pk, "labels": world.label.pk, "jobs": world.job.pk}
    known["trials"] = world.trial.pk
    known |= {"evaluations": world.evaluation.pk, "checks": world.check.pk, "sweeps": world.sweep.pk}
    known["queues"] = world.run.review_items.get().queue_id
    known |= {"threads": world.thread.pk, "comments": world.thread.comments.get().pk}
    known |= {"observations": world.run.observations.latest("pk").pk}
    pk = known.get(noun, 1)
    pk = world.run.pk if noun == "runs" else pk
    address = path.replace("{pk}", str(pk)).replace("{number}", "1").replace("{key}", KEY)
    address += ASKED.get(name, "").format(run=world.run.pk)
    body = BODIES.get(name)
    if isinstance(script, Client):
        return script.generic(operation.methods[0], f"/api/v1{address}")
    send = script.upload if name.startswith("create_import") else partial(script.send, operation.methods[0])
    return send(address, body)


def is_problem(response: Any, status: int) -> None:
    assert response.status_code == status, response.content
    assert response["Content-Type"] == "application/problem+json"
    assert response.json()["status"] == status


@pytest.mark.parametrize(("path", "operation"), ALL, ids=ids)
def test_access_is_asked_in_the_first_line(path: str, operation: Any) -> None:
    function = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(operation.view_func)))).body[0]
    assert isinstance(function, ast.FunctionDef)
    body = function.body[1:] if ast.get_docstring(function) else function.body
    assert "allow(request" in ast.unparse(body[0])


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
