"""Every address that writes, and every operation of the API: what it did, it recorded. None can be forgotten."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from experiments.models import (
    AuditEntry,
    Judge,
)
from tests.support import api_world
from tests.support.addresses import NAMED
from tests.support.api_world import Script, World
from tests.support.audited_operations import EARLIER, METHODS, OPERATIONS, RUBRIC, SILENT, Case
from tests.support.own_rows import make_all
from tests.support.run_form import GOOD

CIRCUIT_FILE = b'{"name": "brought", "members": [{"model": "toybox", "layer": "layer4", "unit": 7}]}'
EIGHT = dict.fromkeys(("latents", "k", "steps", "seed"), "8")
WRITES: dict[str, Case] = {
    "query": ("/query/", GOOD, "run.asked"),
    "run-shares": ("/runs/{run}/shares/", {"span": "7"}, "run.shared"),
    "share-revoke": ("/runs/{run}/shares/{share}/revoke/", {}, "run.unshared"),
    "run-pause": ("/runs/{run}/pause/", {}, "run.paused"),
    "run-try-again": ("/runs/{waiting}/try-again/", {}, "run.resumed"),
    "run-stop": ("/runs/{run}/stop/", {}, "run.stopped"),
    "run-note": ("/runs/{run}/note/", {"text": "Look at blue."}, "run.noted"),
    "run-limits": ("/runs/{run}/limits/", {"rounds": "40"}, "run.limited"),
    "run-fork": ("/runs/{run}/fork/?round=1", {"note": "Look at blue."}, "run.forked"),
    "run-take-over": ("/runs/{run}/take-over/", {}, "run.handed-over"),
    "run-hand-over": ("/runs/{by_hand}/hand-over/", {"backbone": "scripted"}, "run.handed-over"),
    "run-reply": ("/runs/{by_hand}/reply/", {"round": 1, "version": 0, "program": "print(1)"}, "reply.sent"),
    "run-program-stop": ("/runs/{by_hand}/reply/stop/", {}, "program.stopped"),
    "runs-bulk": ("/runs/act/", {"action": "stop", "run": "{run}", "sure": "yes"}, "run.stopped"),
    "view-save": ("/runs/views/", {"name": "Mine", "query": "q=red"}, "view.saved"),
    "view-rename": ("/runs/views/{view}/", {"name": "Other"}, "view.renamed"),
    "view-delete": ("/runs/views/{view}/delete/", {}, "view.deleted"),
    "presets": ("/query/presets/", {"name": "Mine", "task": "describe"}, "preset.saved"),
    "preset-change": ("/query/presets/{preset}/", {"name": "Other"}, "preset.changed"),
    "preset-delete": ("/query/presets/{preset}/delete/", {}, "preset.deleted"),
    "exports-make": ("/exports/make/", {"what": "runs", "format": "csv"}, "export.asked"),
    "exports-delete": ("/exports/{export}/delete/", {}, "export.deleted"),
    "imports-bring": ("/imports/bring/", {"kind": "bundle", "file": b"a bundle"}, "import.asked"),
    "units-exemplars": ("/units/toybox/layer4/exemplars/", {"dataset": "toybox"}, "exemplars.asked"),
    "unit-exemplars": ("/units/toybox/layer4/7/exemplars/", {"dataset": "toybox"}, "exemplars.asked"),
    "unit-causal": ("/units/toybox/layer4/7/causal/", {"dataset": "toybox"}, "causal.asked"),
    "study-add": ("/studies/add/", {"member": "{layer}.7", "act": "create", "title": "own"}, "study.created"),
    "study-edit": ("/studies/{study}/edit/", {"title": "own"}, "study.changed"),
    "study-delete": ("/studies/{study}/delete/", {}, "study.deleted"),
    "study-shares": ("/studies/{study}/shares/", {"span": "7"}, "study.shared"),
    "study-share-revoke": ("/studies/{study}/shares/{study_share}/revoke/", {}, "study.unshared"),
    "circuit-add": ("/circuits/add/", {"member": "{layer}.7", "act": "create", "name": "own"}, "circuit.created"),
    "circuit-import": ("/circuits/import/", {"file": CIRCUIT_FILE}, "circuit.created"),
    "circuit-exemplars": ("/circuits/{circuit}/exemplars/", {"dataset": "toybox"}, "exemplars.asked"),
    "circuit-graph": ("/circuits/{circuit}/graph/", {"dataset": "toybox"}, "graph.asked"),
    "circuit-search-ask": (
        "/circuits/find/ask/",
        {"layer": "{layer}", "target": "cone", "dataset": "toybox", "images": "100", "seeds": "3"},
        "circuit.searched",
    ),
    "circuit-search-keep": ("/circuits/find/{circuit_search}/keep/", {"name": "own", "count": "1"}, "circuit.created"),
    "circuit-rename": ("/circuits/{circuit}/rename/", {"name": "corners"}, "circuit.renamed"),
    "circuit-remove": ("/circuits/{circuit}/remove/", {"member": "{circuit_member}"}, "circuit.reduced"),
    "circuit-delete": ("/circuits/{circuit}/delete/", {}, "circuit.deleted"),
    "settings-refresh": ("/settings/models/refresh/", {}, "catalogue.asked"),
    "settings-models-add": ("/settings/models/add/", {"name": "hf:x/y"}, "model.asked"),
    "settings-models-remove": ("/settings/models/{model}/remove/", {}, "model.removed"),
    "settings-datasets-add": ("/settings/datasets/add/", {"place": "/data"}, "dataset.asked"),
    "settings-datasets-remove": ("/settings/datasets/{dataset}/remove/", {}, "dataset.removed"),
    "settings-index": (
        "/settings/datasets/index/",
        {"dataset": "folder:/own", "model": "toybox", "layers": "layer4"},
        "index.asked",
    ),
    "settings-autoencoder-measure": ("/settings/autoencoders/{autoencoder}/measure/", {}, "measure.asked"),
    "settings-autoencoders-train": (
        "/settings/autoencoders/train/",
        {"model": "toybox", "layer": "layer4", "dataset": "toybox", "kind": "topk", **EIGHT},
        "sparse.asked",
    ),
    "settings-job-stop": ("/settings/jobs/{job}/stop/", {}, "job.stopped"),
    "settings-job-resume": ("/settings/jobs/{stopped}/resume/", {}, "job.resumed"),
    "settings-tokens": ("/settings/tokens/", {"name": "mine", "scope": "1", "days": "9"}, "token.made"),
    "settings-tokens-revoke": ("/settings/tokens/{token}/revoke/", {}, "token.revoked"),
    "settings-webhooks-add": (
        "/settings/webhooks/add/",
        {"address": "https://example.org/hook", "kinds": "run.concluded", "shape": "json"},
        "webhook.added",
    ),
    "settings-webhook-change": (
        "/settings/webhooks/{webhook}/change/",
        {"address": "https://example.org/hook", "kinds": "run.concluded", "shape": "slack"},
        "webhook.changed",
    ),
    "settings-webhook-active": ("/settings/webhooks/{webhook}/active/", {"active": "no"}, "webhook.paused"),
    "settings-webhook-secret": ("/settings/webhooks/{webhook}/secret/", {}, "webhook.renewed"),
    "settings-webhook-test": ("/settings/webhooks/{webhook}/test/", {}, "webhook.tested"),
    "settings-webhook-delete": ("/settings/webhooks/{webhook}/delete/", {}, "webhook.deleted"),
    "settings-webhook-again": (
        "/settings/webhooks/{webhook}/deliveries/{delivery}/again/",
        {},
        "delivery.repeated",
    ),
    "settings-people-invite": ("/settings/people/invite/", {"role": "2"}, "invitation.made"),
    "settings-people-revoke": ("/settings/people/invitations/{invitation}/revoke/", {}, "invitation.revoked"),
    "settings-people-role": ("/settings/people/{colleague}/role/", {"role": "1"}, "person.role-changed"),
    "settings-people-active": ("/settings/people/{colleague}/active/", {"active": "no"}, "person.deactivated"),
    "settings-people-link": ("/settings/people/{colleague}/link/", {}, "sign-in-link.made"),
    "settings-people-remove": ("/settings/people/{colleague}/remove/", {}, "person.removed"),
    "settings-you-name": ("/settings/you/name/", {"name": "Ada"}, "person.renamed"),
    "settings-you-password": (
        "/settings/you/password/",
        {
            "old_password": "correct horse battery",
            "new_password1": "staple 4711 blue",
            "new_password2": "staple 4711 blue",
        },
        "password.changed",
    ),
    "settings-you-sessions": ("/settings/you/sessions/", {}, "sessions.ended"),
    "comments-start": ("/runs/{run}/comments/start/", {"text": "Too few."}, "comment.written"),
    "thread-reply": ("/threads/{thread}/reply/", {"text": "More."}, "comment.written"),
    "thread-resolve": ("/threads/{thread}/resolve/", {"resolved": "yes"}, "thread.resolved"),
    "comment-edit": ("/comments/{comment}/edit/", {"text": "Many."}, "comment.edited"),
    "comment-delete": ("/comments/{comment}/delete/", {}, "comment.deleted"),
    "tags": ("/runs/{run}/tags/", {"on": "experiment", "experiment": "1", "tag": "odd"}, "experiment.tagged"),
    "review-new": ("/review/new/", {"name": "q", "reviewers_per_item": 1}, "queue.created"),
    "review-close": ("/review/{queue}/close/", {}, "queue.closed"),
    "review-submit": ("/review/{queue}/items/1/submit/", RUBRIC | {"version": 1, "seq": 4}, "review.submitted"),
    "review-decline": ("/review/{queue}/items/1/decline/", {"reason": "My own."}, "review.declined"),
    "review-undo": ("/review/{queue}/undo/", {}, "review.withdrawn"),
    "review-final": (
        "/review/{queue}/items/1/final/",
        {"verdict": "revise", "reason": "Few samples."},
        "review.adjudicated",
    ),
    "run-review": ("/runs/{concluded}/review/", {"queue": "{queue}"}, "run.put_up"),
    "pairwise-new": ("/pairwise/new/", {"name": "Mine", "source": ["agent", "person"], "most": "5"}, "trial.made"),
    "pairwise-of-evaluation": (
        "/pairwise/evaluation/{compared}/",
        {"source": ["agent", "one-shot"], "most": "5", "judges": "2"},
        "trial.made",
    ),
    "judging-answer": ("/judging/trials/{trial}/answer/", {"item": "{pair}", "answer": "first"}, "vote.cast"),
    "judging-undo": ("/judging/trials/{trial}/undo/", {}, "vote.undone"),
    "judging-close": ("/judging/trials/{trial}/close/", {}, "trial.closed"),
    "pairwise-ask": ("/pairwise/{trial}/ask/", {"backbone": "openai:gpt-4o", "cost": "5"}, "judge.asked"),
    "pairwise-stop": ("/pairwise/{trial}/judges/{judge}/stop/", {}, "judge.stopped"),
    "evaluation-new": (
        "/evaluations/new/",
        {"kind": "synthetic", "backbone": "scripted", "units": "4"},
        "evaluation.started",
    ),
    "sweep-new": (
        "/sweeps/new/",
        {
            "model": "toybox",
            "layer": "layer4",
            "choose": "layers",
            "task": "describe",
            "agent": "scripted",
            "start": "yes",
        },
        "sweep.started",
    ),
    "sweep-pause": ("/sweeps/{sweep}/pause/", {}, "sweep.paused"),
    "sweep-resume": ("/sweeps/{paused}/resume/", {}, "sweep.resumed"),
    "sweep-stop": ("/sweeps/{sweep}/stop/", {}, "sweep.stopped"),
    "sweep-retry": ("/sweeps/{failing}/retry/", {}, "sweep.retried"),
    "sweep-change": ("/sweeps/{sweep}/change/", {"priority": "high"}, "sweep.changed"),
    "evaluation-of-source": ("/evaluations/source/", {"source": "person"}, "evaluation.started"),
    "evaluation-stop": ("/evaluations/{moving}/stop/", {}, "evaluation.stopped"),
    "evaluation-resume": ("/evaluations/{evaluation}/resume/", {}, "evaluation.resumed"),
    "evaluation-score-again": ("/evaluations/{compared}/score/", {}, "evaluation.resumed"),
    "evaluation-repair": ("/evaluations/{evaluation}/repair/", {"factor": "0"}, "evaluation.resumed"),
    "evaluation-people": ("/evaluations/{compared}/people/", {}, "run.asked"),
    "evaluation-delete": ("/evaluations/{evaluation}/delete/", {}, "evaluation.deleted"),
    "label-check-new": ("/labels/{label}/check/", {}, "label.checked"),
    "run-check-new": ("/runs/{labelled}/check/new/", {}, "label.checked"),
}
"""Name of an address -> where an admin sends what, and the verb by which it is recorded."""
QUIET = {
    "review-take": "a reservation, which lapses",
    "review-hold": "the same",
    "review-save": "a draft of one's own",
    "review-next": "a reservation",
    "run-reply-draft": "a draft of one's own",
    "units-chosen": "it leads on with the units, and changes nothing",
    "notifications-read": "that one has read something",
    "settings-you-connect": "it leads to the provider; coming back is recorded",
    "settings-you-disconnect": "needs a provider; tested with it",
}
"""What is sent and leaves no entry -> why."""
BEFORE = {
    "review-submit": ("review-take",),
    "review-decline": ("review-take",),
    "review-undo": ("review-take", "review-submit"),
    "review-final": ("review-take", "review-submit"),
    "run-program-stop": ("run-reply",),
    "pairwise-stop": ("pairwise-ask",),
    "judging-undo": ("judging-answer",),
    "settings-you-sessions": (),
}
"""What has to be sent before, so that there is something to do."""


@pytest.fixture
def world(admin: User) -> World:
    return api_world.fill(admin)


@pytest.fixture
def ids(admin: User, world: World) -> dict[str, Any]:
    return make_all(admin, world)


@pytest.fixture
def as_admin(client: Client, admin: User) -> Client:
    client.force_login(admin)
    return client


def send(client: Client, name: str, ids: Mapping[str, Any]) -> Any:
    """What the table says of an address."""
    path, body, _ = WRITES.get(name) or (NAMED[name], {}, "")
    ids = {**ids, "judge": Judge.objects.values_list("pk", flat=True).first()}
    filled = {field: value.format(**ids) if isinstance(value, str) else value for field, value in body.items()}
    files = {field: SimpleUploadedFile("a.zip", value) for field, value in body.items() if isinstance(value, bytes)}
    return client.post(path.format(**ids), filled | files)


def newest() -> int:
    return max(AuditEntry.objects.values_list("pk", flat=True), default=0)


@pytest.mark.parametrize("name", WRITES)
def test_what_a_page_writes_is_recorded(as_admin: Client, ids: dict[str, Any], name: str) -> None:
    for earlier in BEFORE.get(name, ()):
        assert send(as_admin, earlier, ids).status_code < 400
    if name == "settings-you-sessions":
        Client().force_login(User.objects.get(username="admin"))
    last = newest()
    response = send(as_admin, name, ids)
    assert response.status_code < 400, response.content.decode()[-3000:]
    made = AuditEntry.objects.filter(pk__gt=last)
    assert [(entry.verb, entry.name) for entry in made] == [(WRITES[name][2], "admin")]


def test_no_address_that_writes_is_forgotten(as_admin: Client, ids: dict[str, Any]) -> None:
    """Whatever is in neither table takes no POST."""
    known = defaultdict(lambda: 1, ids)
    for name, path in NAMED.items():
        if name not in WRITES and name not in QUIET:
            response = as_admin.post(path.format_map(known))
            assert response.status_code == 405, f"{name} takes what is sent: it belongs into WRITES or QUIET"
    assert not WRITES.keys() & QUIET.keys()
    assert (WRITES | QUIET).keys() <= NAMED.keys()


# --- the API ---


def test_no_operation_that_writes_is_forgotten() -> None:
    assert METHODS.keys() == OPERATIONS.keys() | SILENT.keys()
    assert not OPERATIONS.keys() & SILENT.keys()


@pytest.mark.parametrize("name", OPERATIONS)
def test_what_a_script_writes_is_recorded_with_its_token(admin: User, ids: dict[str, Any], name: str) -> None:
    script = Script(admin)
    for method, earlier, content in EARLIER.get(name, ()):
        sent = {field: ids["question"] if field == "item" else value for field, value in content.items()}
        assert script.send(method, earlier.format(**ids), sent, If_Match="*").status_code < 400
    ids = {**ids, "judge": Judge.objects.values_list("pk", flat=True).first()}
    path, body, verb = OPERATIONS[name]
    known = {"units": [{"layer_id": ids["layer"], "number": 1}], "item": ids["question"]}
    known |= {"runs": [ids["concluded"]], "run": ids["concluded"], "unit": ids["unit"]}
    sent = dict(body) | {field: known[field] for field in known.keys() & body.keys() if name != "create_run"}
    last = newest()
    if name.startswith("create_import"):
        response = script.upload(path, sent)
    else:
        response = script.send(METHODS[name], path.format(**ids), sent or None, If_Match="*")
    assert response.status_code < 400, response.content
    made = AuditEntry.objects.filter(pk__gt=last)
    assert {(entry.verb, entry.name, entry.token[-7:]) for entry in made} == {(verb, "admin", "… tests")}
