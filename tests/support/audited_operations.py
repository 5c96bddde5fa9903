"""What a script sends to each operation of the API that writes, and the verb by which the audit keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.support.api_operations import WRITING

RUBRIC = {"supported": 4, "specific": 3, "complete": 5, "confounds": 2, "samples": 1, "verdict": "reject"}
Case = tuple[str, Mapping[str, Any], str]
ANSWER = {"item": 0, "answer": "yes"}
MEMBER = {"model": "toybox", "layer": "layer4", "unit": 7}
SEARCH = {"model": "toybox", "layer": "layer4", "target": "cone"}
WEBHOOK = {"address": "https://example.org/hook", "kinds": ["run.concluded"]}
OPERATIONS: dict[str, Case] = {
    "create_webhook": ("/webhooks", WEBHOOK, "webhook.added"),
    "change_webhook": ("/webhooks/{webhook}", WEBHOOK, "webhook.changed"),
    "pause_webhook": ("/webhooks/{webhook}/pause", {}, "webhook.paused"),
    "resume_webhook": ("/webhooks/{resting}/resume", {}, "webhook.resumed"),
    "renew_webhook_secret": ("/webhooks/{webhook}/secret", {}, "webhook.renewed"),
    "test_webhook": ("/webhooks/{webhook}/test", {}, "webhook.tested"),
    "delete_webhook": ("/webhooks/{webhook}", {}, "webhook.deleted"),
    "send_delivery_again": ("/webhook-deliveries/{delivery}/again", {}, "delivery.repeated"),
    "rename_me": ("/me", {"name": "Ada"}, "person.renamed"),
    "end_sessions": ("/me/sessions", {}, "sessions.ended"),
    "revoke_token": ("/me/tokens/{token}", {}, "token.revoked"),
    "set_role": ("/people/{colleague}/role", {"role": "viewer"}, "person.role-changed"),
    "deactivate_person": ("/people/{colleague}/deactivate", {}, "person.deactivated"),
    "reactivate_person": ("/people/{colleague}/reactivate", {}, "person.reactivated"),
    "remove_person": ("/people/{colleague}", {}, "person.removed"),
    "create_invitation": ("/invitations", {"role": "viewer"}, "invitation.made"),
    "revoke_invitation": ("/invitations/{invitation}", {}, "invitation.revoked"),
    "create_run": ("/runs", {"question": "What?", "model": "toybox", "layer": "layer4", "unit": 1}, "run.asked"),
    "ask_again": ("/runs/{run}/again", {}, "run.asked"),
    "pause_run": ("/runs/{run}/pause", {}, "run.paused"),
    "resume_run": ("/runs/{waiting}/resume", {}, "run.resumed"),
    "try_run_again": ("/runs/{waiting}/try-again", {}, "run.resumed"),
    "stop_run": ("/runs/{run}/stop", {}, "run.stopped"),
    "send_note": ("/runs/{run}/notes", {"text": "Look at blue."}, "run.noted"),
    "change_limits": ("/runs/{run}/limits", {"rounds": 40}, "run.limited"),
    "fork_run": ("/runs/{run}/forks", {"round": 1}, "run.forked"),
    "hand_run_over": ("/runs/{run}/hand-over", {"backbone": "person"}, "run.handed-over"),
    "send_reply": ("/runs/{by_hand}/reply/send", {}, "reply.sent"),
    "stop_program": ("/runs/{by_hand}/reply/stop", {}, "program.stopped"),
    "set_tags": ("/runs/{run}/tags", {"tags": ["seen"]}, "run.tagged"),
    "set_observation_tags": ("/observations/{observation}/tags", {"tags": ["seen"]}, "observation.tagged"),
    "set_experiment_tags": ("/runs/{run}/experiments/1/tags", {"tags": ["seen"]}, "experiment.tagged"),
    "create_share": ("/runs/{run}/shares", {"days": 3}, "run.shared"),
    "revoke_share": ("/shares/{share}", {}, "run.unshared"),
    "create_study": ("/studies", {"title": "own", "items": [MEMBER]}, "study.created"),
    "change_study": ("/studies/{study}", {"title": "own"}, "study.changed"),
    "add_study_items": ("/studies/{study}/items", {"items": [MEMBER]}, "study.extended"),
    "remove_study_item": ("/studies/{study}/items/{study_item}", {}, "study.reduced"),
    "delete_study": ("/studies/{study}", {}, "study.deleted"),
    "create_study_share": ("/studies/{study}/shares", {"days": 3}, "study.shared"),
    "ask_for_circuit_graph": ("/circuits/{circuit}/graphs", {"dataset": "toybox"}, "graph.asked"),
    "search_circuit": ("/circuit-searches", SEARCH, "circuit.searched"),
    "create_circuit": ("/circuits", {"name": "own", "members": [MEMBER]}, "circuit.created"),
    "ask_for_circuit_exemplars": ("/circuits/{circuit}/exemplars", {"dataset": "toybox"}, "exemplars.asked"),
    "change_circuit": ("/circuits/{circuit}", {"members": [MEMBER]}, "circuit.changed"),
    "delete_circuit": ("/circuits/{circuit}", {}, "circuit.deleted"),
    "create_label": ("/labels", {"text": "blue", "units": []}, "label.created"),
    "edit_label": ("/labels/{label}", {"text": "blue"}, "label.edited"),
    "delete_label": ("/labels/{label}", {}, "label.deleted"),
    "create_view": ("/views", {"name": "Mine", "query": "q=red"}, "view.saved"),
    "create_preset": ("/presets", {"name": "Mine", "settings": {"task": "describe"}}, "preset.saved"),
    "edit_preset": ("/presets/{preset}", {"name": "Other", "settings": {"task": "describe"}}, "preset.changed"),
    "delete_preset": ("/presets/{preset}", {}, "preset.deleted"),
    "edit_view": ("/views/{view}", {"name": "Other"}, "view.renamed"),
    "delete_view": ("/views/{view}", {}, "view.deleted"),
    "create_export": ("/exports", {"what": "runs"}, "export.asked"),
    "delete_export": ("/exports/{export}", {}, "export.deleted"),
    "create_import": ("/imports", {"kind": "bundle", "file": b"PK"}, "import.asked"),
    "create_imports": ("/imports/batch", {"kind": "bundle", "file": b"PK"}, "import.asked"),
    "add_model": ("/models", {"name": "hf:x/y"}, "model.asked"),
    "delete_model": ("/models/{model}", {}, "model.removed"),
    "add_dataset": ("/datasets", {"place": "/data"}, "dataset.asked"),
    "delete_dataset": ("/datasets/{dataset}", {}, "dataset.removed"),
    "add_index": ("/indexes", {"dataset": "folder:/own", "model": "toybox", "layers": ["layer4"]}, "index.asked"),
    "measure_autoencoder": ("/autoencoders/{autoencoder}/measure", {}, "measure.asked"),
    "train_autoencoder": (
        "/autoencoders",
        {"model": "toybox", "layer": "layer4", "latents": 256, "k": 8},
        "sparse.asked",
    ),
    "stop_job": ("/jobs/{job}/stop", {}, "job.stopped"),
    "refresh_catalogue": ("/catalogue/refresh", {}, "catalogue.asked"),
    "resume_job": ("/jobs/{stopped}/resume", {}, "job.resumed"),
    "ask_for_exemplars": ("/layers/{layer}/units/7/exemplars", {"dataset": "toybox"}, "exemplars.asked"),
    "ask_for_layer_exemplars": ("/layers/{layer}/exemplars", {"dataset": "toybox"}, "exemplars.asked"),
    "ask_for_causal_check": ("/layers/{layer}/units/7/causal-checks", {"dataset": "toybox"}, "causal.asked"),
    "start_thread": ("/runs/{run}/threads", {"text": "Too few."}, "comment.written"),
    "reply_in_thread": ("/threads/{thread}/comments", {"text": "Enough."}, "comment.written"),
    "resolve_thread": ("/threads/{thread}", {"resolved": True}, "thread.resolved"),
    "edit_comment": ("/comments/{comment}", {"text": "Many."}, "comment.edited"),
    "delete_comment": ("/comments/{comment}", {}, "comment.deleted"),
    "submit_review": ("/queues/{queue}/items/1/review/submit", {"run_seq": 0}, "review.submitted"),
    "decline_review": ("/queues/{queue}/items/1/review/decline", {"reason": "My own."}, "review.declined"),
    "undo_review": ("/queues/{queue}/undo", {}, "review.withdrawn"),
    "create_queue": ("/queues", {"name": "Own", "runs": []}, "queue.created"),
    "close_queue": ("/queues/{queue}/close", {}, "queue.closed"),
    "put_run_up": ("/queues/{queue}/items", {"run": 0}, "run.put_up"),
    "give_final_verdict": (
        "/queues/{queue}/items/1/final-verdicts",
        {"verdict": "revise", "reason": "Few samples."},
        "review.adjudicated",
    ),
    "create_trial": ("/trials", {"name": "Mine", "sources": ["agent", "person"], "most": 5}, "trial.made"),
    "create_trial_of_evaluation": (
        "/evaluations/{compared}/trials",
        {"sources": ["agent", "one-shot"]},
        "trial.made",
    ),
    "ask_judge": ("/trials/{trial}/judges", {"backbone": "openai:gpt-4o"}, "judge.asked"),
    "stop_judge": ("/trials/{trial}/judges/{judge}/stop", {}, "judge.stopped"),
    "start_sweep": (
        "/sweeps",
        {"model": "toybox", "layers": ["layer4"], "agents": ["scripted"]},
        "sweep.started",
    ),
    "pause_sweep": ("/sweeps/{sweep}/pause", {}, "sweep.paused"),
    "resume_sweep": ("/sweeps/{paused}/resume", {}, "sweep.resumed"),
    "stop_sweep": ("/sweeps/{sweep}/stop", {}, "sweep.stopped"),
    "retry_sweep": ("/sweeps/{failing}/retry", {"what": "failed"}, "sweep.retried"),
    "change_sweep": ("/sweeps/{sweep}", {"priority": "high"}, "sweep.changed"),
    "start_evaluation": ("/evaluations", {"kind": "synthetic", "backbone": "scripted"}, "evaluation.started"),
    "stop_evaluation": ("/evaluations/{moving}/stop", {}, "evaluation.stopped"),
    "resume_evaluation": ("/evaluations/{evaluation}/resume", {"seconds": 60}, "evaluation.resumed"),
    "score_evaluation_again": ("/evaluations/{compared}/score", {}, "evaluation.resumed"),
    "repair_evaluation": ("/evaluations/{evaluation}/repair", {"factor": 0}, "evaluation.resumed"),
    "ask_people_for_labels": ("/evaluations/{compared}/people", {}, "run.asked"),
    "delete_evaluation": ("/evaluations/{evaluation}", {}, "evaluation.deleted"),
    "ask_for_check": ("/checks", {"unit": 0, "text": "blue cones"}, "label.checked"),
    "create_answer": ("/judging/checks/{asking}/answers", ANSWER, "image.judged"),
    "undo_answer": ("/judging/checks/{asking}/undo", {}, "judgement.undone"),
    "close_judging": ("/judging/checks/{asking}/close", {}, "judging.finished"),
}
"""Name of an operation -> what an admin's script sends where, and the verb by which it is recorded."""
SILENT = {
    "forecast_sweep": "nothing is changed",
    "reserve_next_item": "a reservation, which lapses",
    "reserve_item": "the same",
    "save_review": "a draft of one's own",
    "save_reply": "a draft of one's own",
    "mark_notifications_read": "that one has read something",
}
"""Operations that leave no entry -> why."""
REPLY = ("PUT", "/runs/{by_hand}/reply", {"program": "print(1)"})
WRITTEN = (("POST", "/queues/{queue}/next", {}), ("PUT", "/queues/{queue}/items/1/review", RUBRIC))
SUBMITTED = (*WRITTEN, ("POST", "/queues/{queue}/items/1/review/submit", {"run_seq": 0}))
EARLIER: Mapping[str, tuple[tuple[str, str, Mapping[str, Any]], ...]] = {
    "submit_review": WRITTEN,
    "decline_review": WRITTEN[:1],
    "undo_review": SUBMITTED,
    "give_final_verdict": SUBMITTED,
    "stop_judge": (("POST", "/trials/{trial}/judges", {"backbone": "openai:gpt-4o"}),),
    "undo_answer": (("POST", "/judging/checks/{asking}/answers", ANSWER),),
    "close_judging": (("POST", "/judging/checks/{asking}/answers", ANSWER),),
    "send_reply": (REPLY,),
    "stop_program": (REPLY, ("POST", "/runs/{by_hand}/reply/send", {})),
}
"""What has to be sent before."""
METHODS = {operation.view_func.__name__: operation.methods[0] for _, operation in WRITING}
