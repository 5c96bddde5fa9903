"""Every operation of the API, and how it is called."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.test import Client

from experiments.api.interface import api
from tests.support.api_world import KEY, Script, World

OWN = {
    *("rename_me", "end_sessions", "revoke_token", "mark_notifications_read"),
    *("create_view", "edit_view", "delete_view", "create_export", "delete_export"),
}
"""One's own name, ways in, files and views, and what one was told, which a viewer may have."""
ASKED = {"search_all": "?q=red", "compare_runs": "?run={run}&run=99", "read_similar_units": "?dataset=toybox"}
ASKED["compare_circuits"] = "?first={circuit}&second={circuit}"
WEBHOOK = {"address": "https://example.org/hook", "kinds": ["run.concluded"]}
BODIES: dict[str, Any] = {
    "create_webhook": WEBHOOK,
    "change_webhook": WEBHOOK,
    "rename_me": {"name": "Ada"},
    "set_role": {"role": "viewer"},
    "create_invitation": {},
    "create_share": {},
    "create_study_share": {},
    "create_study": {"title": "Mine", "items": [{"model": "toybox", "layer": "layer4", "unit": 1}]},
    "change_study": {"title": "Ours"},
    "add_study_items": {"items": [{"run": 1}]},
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
    "ask_for_causal_check": {"dataset": "toybox"},
    "ask_for_circuit_graph": {"dataset": "toybox"},
    "save_reply": {},
    "hand_run_over": {"backbone": "person"},
    "send_note": {"text": "Look at snow."},
    "change_limits": {"rounds": 30},
    "fork_run": {"round": 1},
    "ask_for_circuit_exemplars": {"dataset": "toybox"},
    "search_circuit": {"model": "toybox", "layer": "layer4", "target": "car", "dataset": "toybox"},
    "create_circuit": {"name": "edges", "members": [{"model": "toybox", "layer": "layer4", "unit": 1}]},
    "change_circuit": {"name": "corners"},
    "create_label": {"text": "blue", "units": [{"layer_id": 1, "number": 1}]},
    "edit_label": {"text": "blue"},
    "set_tags": {"tags": ["seen"]},
    "set_experiment_tags": {"tags": ["seen"]},
    "set_observation_tags": {"tags": ["seen"]},
    "create_export": {"what": "runs"},
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
    "create_answer": {"item": 1, "answer": "yes"},
    "ask_judge": {"backbone": "openai:gpt-4o"},
    "create_queue": {"name": "Own", "runs": [1]},
    "put_run_up": {"run": 1},
    "give_final_verdict": {"verdict": "accept", "reason": "Enough."},
    "save_review": {"supported": 4},
    "decline_review": {"reason": "My own."},
    "submit_review": {"run_seq": 0},
    "add_model": {"name": "hf:x/y"},
    "add_dataset": {"place": "/data"},
    "train_autoencoder": {"model": "toybox", "layer": "layer4", "latents": 256, "k": 8},
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


def call(script: Script | Client, path: str, operation: Any, world: World) -> Any:
    """The operation on what there is in the world."""
    name = operation.view_func.__name__
    noun = path.split("/")[1]
    known = {"models": world.layer.model_id, "layers": world.layer.pk, "labels": world.label.pk, "jobs": world.job.pk}
    known |= {"causal-checks": world.causal_check.pk, "trials": world.trial.pk, "autoencoders": world.autoencoder.pk}
    known |= {"evaluations": world.evaluation.pk, "checks": world.check.pk, "sweeps": world.sweep.pk}
    known["queues"] = world.run.review_items.get().queue_id
    known |= {"threads": world.thread.pk, "comments": world.thread.comments.get().pk}
    known |= {"observations": world.run.observations.latest("pk").pk}
    known |= {"judging": world.check.pk, "circuits": world.circuit.pk, "circuit-searches": world.circuit_search.pk}
    known |= {"circuit-graphs": world.circuit_graph.pk, "studies": world.study.pk}
    known |= {"webhooks": world.delivery.webhook_id, "webhook-deliveries": world.delivery.pk}
    pk = known.get(noun, 1)
    pk = world.run.pk if noun == "runs" else pk
    address = path.replace("{pk}", str(pk)).replace("{number}", "1").replace("{key}", KEY)
    address = address.replace("{kind}", "checks")
    address += ASKED.get(name, "").format(run=world.run.pk, circuit=world.circuit.pk)
    body = BODIES.get(name)
    if isinstance(script, Client):
        return script.generic(operation.methods[0], f"/api/v1{address}")
    send = script.upload if name.startswith("create_import") else partial(script.send, operation.methods[0])
    return send(address, body)
