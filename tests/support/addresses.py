"""Every address of the site, under whom it takes to read it or to send there."""

from __future__ import annotations

KEY = "0" * 64
OPEN = {"sign-in", "sign-in-with", "sign-in-back", "sign-out", "enter", "join", "settings"}
OPEN |= {"healthz", "readyz", "metrics"}
"""Addresses that hold nothing of the team's."""
READ = {
    "units": "/units/",
    "units-model": "/units/own/",
    "units-layer": "/units/own/fc/",
    "unit-random": "/units/own/fc/random/",
    "unit": "/units/own/fc/1/",
    "units-search": "/search/units/",
    "units-beside": "/compare/layers/",
    "unit-card": "/units/own/fc/1/card/",
    "circuits": "/circuits/",
    "circuit": "/circuits/{circuit}/",
    "circuit-searches": "/circuits/find/",
    "circuit-search": "/circuits/find/{circuit_search}/",
    "circuit-file": "/circuits/{circuit}/circuit.json",
    "overview": "/",
    "runs": "/runs/",
    "run": "/runs/{run}/",
    "run-events": "/runs/{run}/events/",
    "run-events-file": "/runs/{run}/events.jsonl",
    "experiments": "/experiments/",
    "experiment": "/runs/{run}/experiments/1/",
    "image": f"/images/{KEY}.png",
    "image-page": f"/images/{KEY}/",
    "thumbnail": f"/images/{KEY}/thumb-160.webp",
    "picture": f"/images/{KEY[:16]}.webp",
    "pairwise": "/pairwise/",
    "pairwise-trial": "/pairwise/{trial}/",
    "compare": "/compare/",
    "evaluations": "/evaluations/",
    "evaluation": "/evaluations/{evaluation}/",
    "evaluation-file": "/evaluations/{evaluation}/figures.csv",
    "evaluations-compare": "/evaluations/compare/",
    "evaluation-scores": "/evaluations/scores/",
    "sweeps": "/sweeps/",
    "sweep": "/sweeps/{sweep}/",
    "sweep-file": "/sweeps/{sweep}/runs.csv",
    "label-check": "/checks/{check}/",
    "judging-answers": "/judging/checks/{check}/answers.csv",
    "run-check": "/runs/{run}/check/",
    "pulse": "/pulse/",
    "search": "/search/",
    "jump": "/jump/",
    "glossary": "/glossary/",
    "exports": "/exports/",
    "exports-file": "/exports/{export}/file/",
    "comments": "/runs/{run}/comments/",
    "comments-at": "/runs/{run}/comments/at/1/",
    "comments-marks": "/runs/{run}/comments/marks/",
    "comment": "/comments/{comment}/",
    "notifications": "/notifications/",
    "notifications-bell": "/notifications/bell/",
    "notification": "/notifications/{notification}/",
    "settings-models": "/settings/models/",
    "settings-layers": "/settings/models/{model}/layers/",
    "settings-datasets": "/settings/datasets/",
    "settings-autoencoders": "/settings/autoencoders/",
    "settings-autoencoder": "/settings/autoencoders/{autoencoder}/",
    "settings-workers": "/settings/workers/",
    "settings-tokens": "/settings/tokens/",
    "settings-you": "/settings/you/",
    "review": "/review/",
    "review-queue": "/review/{queue}/",
    "review-item": "/review/{queue}/items/1/",
    "review-line": "/review/{queue}/items/1/line/",
    "review-agreement": "/review/{queue}/agreement/",
}
RESEARCH = {
    "run-reply": "/runs/{run}/reply/",
    "run-hand-over": "/runs/{run}/hand-over/",
    "run-limits": "/runs/{run}/limits/",
    "run-fork": "/runs/{run}/fork/",
    "query": "/query/",
    "query-unit": "/query/unit/",
    "query-command": "/query/command/",
    "presets": "/query/presets/",
    "imports": "/imports/",
    "run-shares": "/runs/{run}/shares/",
    "comments-people": "/comments/people/",
    "review-new": "/review/new/",
    "run-review": "/runs/{run}/review/",
    "evaluation-new": "/evaluations/new/",
    "sweep-new": "/sweeps/new/",
    "label-check-new": "/labels/{label}/check/",
    "run-check-new": "/runs/{run}/check/new/",
}
WRITE = {
    "query": "/query/",
    "run-shares": "/runs/{run}/shares/",
    "run-stop": "/runs/{run}/stop/",
    "run-try-again": "/runs/{run}/try-again/",
    "run-pause": "/runs/{run}/pause/",
    "run-note": "/runs/{run}/note/",
}
ASK = {
    "settings-refresh": "/settings/models/refresh/",
    "settings-index": "/settings/datasets/index/",
    "settings-autoencoders-train": "/settings/autoencoders/train/",
    "settings-autoencoder-measure": "/settings/autoencoders/{autoencoder}/measure/",
    "unit-exemplars": "/units/own/fc/1/exemplars/",
    "unit-causal": "/units/own/fc/1/causal/",
    "units-exemplars": "/units/own/fc/exemplars/",
    "circuit-add": "/circuits/add/",
    "circuit-search-ask": "/circuits/find/ask/",
    "circuit-search-keep": "/circuits/find/{circuit_search}/keep/",
    "circuit-rename": "/circuits/{circuit}/rename/",
    "circuit-remove": "/circuits/{circuit}/remove/",
    "circuit-delete": "/circuits/{circuit}/delete/",
    "settings-job-stop": "/settings/jobs/{job}/stop/",
    "settings-job-resume": "/settings/jobs/{job}/resume/",
    "imports-bring": "/imports/bring/",
    "share-revoke": "/runs/{run}/shares/{share}/revoke/",
    "run-reply-draft": "/runs/{run}/reply/draft/",
    "run-program-stop": "/runs/{run}/reply/stop/",
    "preset-change": "/query/presets/{preset}/",
    "preset-delete": "/query/presets/{preset}/delete/",
    "run-take-over": "/runs/{run}/take-over/",
    "comments-start": "/runs/{run}/comments/start/",
    "tags": "/runs/{run}/tags/",
    "comment-edit": "/comments/{comment}/edit/",
    "comment-delete": "/comments/{comment}/delete/",
    "thread-reply": "/threads/{thread}/reply/",
    "thread-resolve": "/threads/{thread}/resolve/",
    "review-close": "/review/{queue}/close/",
    "sweep-pause": "/sweeps/{sweep}/pause/",
    "sweep-resume": "/sweeps/{sweep}/resume/",
    "sweep-stop": "/sweeps/{sweep}/stop/",
    "sweep-retry": "/sweeps/{sweep}/retry/",
    "sweep-change": "/sweeps/{sweep}/change/",
    "evaluation-of-source": "/evaluations/source/",
    "evaluation-stop": "/evaluations/{evaluation}/stop/",
    "evaluation-resume": "/evaluations/{evaluation}/resume/",
    "evaluation-score-again": "/evaluations/{evaluation}/score/",
    "evaluation-repair": "/evaluations/{evaluation}/repair/",
    "evaluation-people": "/evaluations/{evaluation}/people/",
    "evaluation-delete": "/evaluations/{evaluation}/delete/",
}
"""What a researcher may ask of a worker, or say, or close of their own."""
ADMIN = {
    "settings-models-add": "/settings/models/add/",
    "settings-models-remove": "/settings/models/{model}/remove/",
    "settings-datasets-add": "/settings/datasets/add/",
    "settings-datasets-remove": "/settings/datasets/{dataset}/remove/",
    "settings-people-invite": "/settings/people/invite/",
    "settings-people-revoke": "/settings/people/invitations/1/revoke/",
    "settings-people-role": "/settings/people/1/role/",
    "settings-people-active": "/settings/people/1/active/",
    "settings-people-link": "/settings/people/1/link/",
    "settings-people-remove": "/settings/people/1/remove/",
}
"""What makes a worker read a place that somebody names, and the other way round."""
SHARED = {
    "shared": "/shared/{token}/",
    "shared-image": f"/shared/{{token}}/images/{KEY}.png",
    "shared-thumbnail": f"/shared/{{token}}/images/{KEY}/thumb-160.webp",
}
"""What anybody may open who has a link that is good."""
ADMIN_READ = {
    "settings-shares": "/settings/shares/",
    "settings-people": "/settings/people/",
    "settings-audit": "/settings/audit/",
    "settings-audit-file": "/settings/audit/audit.csv",
}
"""What only an admin may read."""


REVIEW = {
    "review-take": "/review/{queue}/items/1/take/",
    "review-hold": "/review/{queue}/items/1/hold/",
    "review-save": "/review/{queue}/items/1/save/",
    "review-submit": "/review/{queue}/items/1/submit/",
    "review-decline": "/review/{queue}/items/1/decline/",
    "pairwise-of-evaluation": "/pairwise/evaluation/{evaluation}/",
    "pairwise-ask": "/pairwise/{trial}/ask/",
    "pairwise-stop": "/pairwise/{trial}/judges/1/stop/",
    "judging-answer": "/judging/checks/{check}/answer/",
    "judging-undo": "/judging/checks/{check}/undo/",
    "judging-close": "/judging/trials/{trial}/close/",
    "review-undo": "/review/{queue}/undo/",
    "review-final": "/review/{queue}/items/1/final/",
}
"""What takes a reviewer, or an admin."""
REVIEW_READ = {
    "review-next": "/review/{queue}/next/",
    "review-ahead": "/review/{queue}/items/1/ahead/",
    "pairwise-new": "/pairwise/new/",
    "judging": "/judging/trials/{trial}/",
    "check-image": "/checks/{check}/images/1/",
}


KEEP = {
    "units-chosen": "/units/own/fc/chosen/",
    "view-save": "/runs/views/",
    "view-rename": "/runs/views/{view}/",
    "view-delete": "/runs/views/{view}/delete/",
    "runs-bulk": "/runs/act/",
    "exports-make": "/exports/make/",
    "notifications-read": "/notifications/read/",
    "exports-delete": "/exports/{export}/delete/",
    "settings-tokens-revoke": "/settings/tokens/1/revoke/",
    "settings-you-name": "/settings/you/name/",
    "settings-you-password": "/settings/you/password/",
    "settings-you-sessions": "/settings/you/sessions/",
    "settings-you-connect": "/settings/you/connect/",
    "settings-you-disconnect": "/settings/you/disconnect/",
}
"""What every member may send; what it does to others' things is asked further in."""

NAMED = READ | RESEARCH | WRITE | ASK | ADMIN | KEEP | REVIEW | REVIEW_READ | ADMIN_READ


OWN = KEEP.keys() | {"settings-tokens"}
"""Where every member may write: what is their own."""
