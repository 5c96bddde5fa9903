"""What a page does, the API does, and the other way round. Each address of the site stands beside the operations that
do the same, or in a short table with the reason why none does; and so does each operation."""

from __future__ import annotations

from tests.support.addresses import NAMED
from tests.support.api_operations import ALL

SAME: dict[str, str] = {
    # runs
    "query": "create_run",
    "runs": "list_runs",
    "run": "read_run list_events list_hypotheses",
    "run-events": "list_events stream_events",
    "run-events-file": "list_events",
    "run-stop": "stop_run",
    "run-pause": "pause_run",
    "run-try-again": "resume_run try_run_again",
    "run-note": "send_note",
    "run-limits": "read_limits change_limits",
    "run-fork": "fork_run",
    "run-take-over": "hand_run_over",
    "run-hand-over": "hand_run_over",
    "run-reply": "read_reply send_reply",
    "run-reply-draft": "save_reply",
    "run-program-stop": "stop_program",
    "runs-bulk": "stop_run pause_run resume_run set_tags put_run_up",
    "presets": "list_presets read_preset create_preset",
    "preset-change": "edit_preset",
    "preset-delete": "delete_preset",
    "compare": "compare_runs",
    "view-save": "create_view list_views read_view",
    "view-rename": "edit_view",
    "view-delete": "delete_view",
    "tags": "set_tags set_experiment_tags set_observation_tags",
    "overview": "read_team_activity list_runs",
    # experiments and images
    "experiments": "list_observations list_experiments",
    "experiment": "read_experiment",
    "image-page": "read_image",
    "image": "fetch_image",
    "thumbnail": "fetch_thumbnail",
    "picture": "fetch_thumbnail",
    # units
    "units": "list_models list_units",
    "units-model": "read_model list_layers",
    "units-layer": "read_layer list_units list_layer_units",
    "units-exemplars": "ask_for_layer_exemplars",
    "units-chosen": "list_runs compare_runs create_queue",
    "unit": "read_unit list_exemplars read_similar_units list_labels list_causal_checks read_causal_check",
    "units-search": "search_units",
    "units-beside": "list_layer_units read_similar_units",
    "unit-card": "read_unit list_exemplars list_labels",
    "unit-exemplars": "ask_for_exemplars",
    "unit-causal": "ask_for_causal_check",
    # circuits
    "circuits": "list_circuits",
    "circuit": "read_circuit read_circuit_study list_circuit_graphs read_circuit_graph",
    "circuit-file": "export_circuit",
    "circuit-graph": "ask_for_circuit_graph",
    "circuits-compare": "compare_circuits",
    "circuit-searches": "list_circuit_searches",
    "circuit-search": "read_circuit_search",
    "circuit-search-ask": "search_circuit",
    "circuit-search-keep": "create_circuit",
    "circuit-add": "create_circuit change_circuit",
    "circuit-import": "create_circuit",
    "circuit-studied": "read_circuit_study",
    "circuit-exemplars": "ask_for_circuit_exemplars",
    "circuit-rename": "change_circuit",
    "circuit-remove": "change_circuit",
    "circuit-delete": "delete_circuit",
    # what people say
    "comments": "list_threads",
    "comments-at": "list_threads",
    "comments-start": "start_thread",
    "comment": "read_comment read_thread",
    "comment-edit": "edit_comment",
    "comment-delete": "delete_comment",
    "thread-reply": "reply_in_thread",
    "thread-resolve": "resolve_thread",
    "notifications": "list_notifications",
    "notifications-bell": "list_notifications",
    "notifications-read": "mark_notifications_read",
    # reviews
    "review": "list_queues",
    "review-new": "create_queue",
    "review-queue": "read_queue list_items",
    "review-agreement": "read_agreement",
    "review-close": "close_queue",
    "review-next": "reserve_next_item",
    "review-take": "reserve_item",
    "review-hold": "reserve_item",
    "review-item": "read_review list_reviews list_final_verdicts",
    "review-save": "save_review",
    "review-submit": "submit_review",
    "review-decline": "decline_review",
    "review-undo": "undo_review",
    "review-final": "give_final_verdict",
    "run-review": "put_run_up",
    # two labels side by side
    "pairwise": "list_trials",
    "pairwise-new": "create_trial",
    "pairwise-of-evaluation": "create_trial_of_evaluation",
    "pairwise-trial": "read_trial list_judges read_results",
    "pairwise-ask": "ask_judge",
    "pairwise-stop": "stop_judge",
    # sweeps
    "sweeps": "list_sweeps",
    "sweep-new": "forecast_sweep start_sweep",
    "sweep": "read_sweep",
    "sweep-file": "list_runs",
    "sweep-pause": "pause_sweep",
    "sweep-resume": "resume_sweep",
    "sweep-stop": "stop_sweep",
    "sweep-retry": "retry_sweep",
    "sweep-change": "change_sweep",
    # how right labels are
    "evaluations": "list_evaluations",
    "evaluation-new": "start_evaluation",
    "evaluation-of-source": "start_evaluation",
    "evaluation": "read_evaluation list_evaluation_items",
    "evaluation-file": "read_evaluation",
    "evaluations-compare": "compare_two_evaluations",
    "evaluation-claims": "read_claims",
    "evaluation-scores": "read_scores",
    "evaluation-stop": "stop_evaluation",
    "evaluation-resume": "resume_evaluation",
    "evaluation-score-again": "score_evaluation_again",
    "evaluation-repair": "repair_evaluation",
    "evaluation-people": "ask_people_for_labels",
    "evaluation-delete": "delete_evaluation",
    "label-check": "read_label_check list_label_checks",
    "label-check-new": "ask_for_check",
    "run-check-new": "ask_for_check",
    "judging": "list_judging next_item",
    "judging-answer": "create_answer",
    "judging-undo": "undo_answer",
    "judging-close": "close_judging",
    "judging-answers": "fetch_answers",
    "check-image": "fetch_judged_image",
    # search, files in and out, links
    "glossary": "read_glossary",
    "search": "search_all",
    "exports": "list_exports read_export",
    "exports-make": "create_export",
    "exports-delete": "delete_export",
    "exports-file": "fetch_export",
    "imports": "list_imports read_import",
    "imports-bring": "create_import create_imports",
    "run-shares": "list_shares create_share",
    "share-revoke": "revoke_share",
    "settings-shares": "list_all_shares",
    # the installation
    "settings-models": "list_models list_backbones list_toolsets list_jobs read_job",
    "settings-refresh": "refresh_catalogue",
    "settings-models-add": "add_model",
    "settings-models-remove": "delete_model",
    "settings-layers": "list_layers",
    "settings-datasets": "list_datasets list_jobs",
    "settings-datasets-add": "add_dataset",
    "settings-datasets-remove": "delete_dataset",
    "settings-index": "add_index",
    "settings-autoencoders": "list_autoencoders list_jobs",
    "settings-autoencoders-train": "train_autoencoder",
    "settings-autoencoder": "list_autoencoders list_jobs",
    "settings-autoencoder-measure": "measure_autoencoder",
    "settings-job-stop": "stop_job",
    "settings-job-resume": "resume_job",
    "settings-workers": "list_workers list_waiting",
    # accounts
    "settings-you": "read_me list_sessions",
    "settings-you-name": "rename_me",
    "settings-you-sessions": "end_sessions",
    "settings-tokens": "list_tokens",
    "settings-tokens-revoke": "revoke_token",
    "settings-people": "list_people list_invitations",
    "settings-people-invite": "create_invitation",
    "settings-people-revoke": "revoke_invitation",
    "settings-people-role": "set_role",
    "settings-people-active": "deactivate_person reactivate_person",
    "settings-people-remove": "remove_person",
    "settings-audit": "list_audit",
    "settings-audit-file": "list_audit",
}
"""Name of an address -> the operations that do what its page does."""
PAGES_ALONE = {
    "pulse": "counts beside the menu",
    "jump": "the palette's suggestions",
    "query-unit": "a part of the form: units by name",
    "query-command": "the form's own request, written as a command",
    "unit-random": "a link to some unit",
    "comments-marks": "where comments stand on an open page",
    "comments-people": "names offered while one types",
    "notification": "a link that leads on",
    "review-line": "a part of the form of a review",
    "run-check": "the check of a run, as a mark beside its labels",
    "review-ahead": "what a browser fetches ahead",
    "settings-you-password": "a token must not change a password",
    "settings-you-connect": "leads a browser to the provider of single sign-on",
    "settings-you-disconnect": "a token must not take away a way to sign in",
    "settings-people-link": "a token must not make what signs somebody in",
}
"""Addresses that no operation answers to -> why."""
SCRIPTS_ALONE = {
    "openapi": "the document of all this",
    "ask_again": "the New run form filled from a run, sent as it is",
    "create_label": "labels of a script or of another method; a person's come with reviews and imports",
    "edit_label": "the same",
    "delete_label": "the same",
    "read_label": "the same",
    "read_tags": "what is to be known before tags are set",
    "read_experiment_tags": "the same",
    "read_observation_tags": "the same",
    "read_imported_reviews": "what came with an imported run, in the page of its comments",
}
"""Operations that are no page's -> why."""


def operations() -> set[str]:
    return {operation.view_func.__name__ for _, operation in ALL}


def test_every_address_has_its_operation_or_a_reason() -> None:
    assert not SAME.keys() & PAGES_ALONE.keys()
    assert NAMED.keys() - SAME.keys() - PAGES_ALONE.keys() == set(), "say which operation does the same, or why none"
    assert (SAME.keys() | PAGES_ALONE.keys()) - NAMED.keys() == set(), "no such address any more"


def test_every_operation_has_its_address_or_a_reason() -> None:
    told = {name for names in SAME.values() for name in names.split()}
    assert not told & SCRIPTS_ALONE.keys()
    assert operations() - told - SCRIPTS_ALONE.keys() == set(), "say which page does the same, or why none"
    assert (told | SCRIPTS_ALONE.keys()) - operations() == set(), "no such operation any more"
