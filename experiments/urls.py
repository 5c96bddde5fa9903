"""Addresses of the app. The access of every one of them is tested in tests/test_access.py."""

from __future__ import annotations

from django.contrib.auth.views import LogoutView
from django.urls import URLPattern, path, register_converter
from django.views.generic import RedirectView

from experiments.consumers.run import RunConsumer
from experiments.consumers.topics import TopicConsumer
from experiments.network.addresses import Name, Number
from experiments.views import (
    audit,
    bulk,
    choices,
    choosing,
    comments,
    compare,
    data_sets,
    experiments,
    exports,
    images,
    imports,
    jobs,
    join,
    models,
    notifications,
    overview,
    people,
    query,
    review,
    review_writing,
    run,
    runs,
    saved_views,
    search,
    sign_in,
    single_sign_on,
    tokens,
    unit,
    units,
    workers,
    you,
)


class ImageKey:
    """A SHA-256 in lower-case hex: nothing else reaches the image store."""

    regex = "[0-9a-f]{64}"

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value


register_converter(ImageKey, "image_key")
register_converter(Name, "unit_name")
register_converter(Number, "unit_number")

urlpatterns: list[URLPattern] = [
    path("", overview.page, name="overview"),
    path("sign-in/", sign_in.SignIn.as_view(), name="sign-in"),
    path("sign-out/", LogoutView.as_view(), name="sign-out"),
    path("sign-in/with/", single_sign_on.go, name="sign-in-with"),
    path("sign-in/back/", single_sign_on.back, name="sign-in-back"),
    path("enter/<str:token>/", sign_in.enter, name="enter"),
    path("join/<str:token>/", join.page, name="join"),
    path("runs/", runs.index, name="runs"),
    path("runs/act/", bulk.act, name="runs-bulk"),
    path("runs/views/", saved_views.save, name="view-save"),
    path("runs/views/<int:pk>/", saved_views.rename, name="view-rename"),
    path("runs/views/<int:pk>/delete/", saved_views.delete, name="view-delete"),
    path("runs/<int:pk>/", run.page, name="run"),
    path("runs/<int:pk>/events/", run.events, name="run-events"),
    path("runs/<int:pk>/events.jsonl", run.events_file, name="run-events-file"),
    path("runs/<int:pk>/stop/", run.stop, name="run-stop"),
    path("runs/<int:pk>/try-again/", run.try_again, name="run-try-again"),
    path("runs/<int:pk>/comments/", comments.page, name="comments"),
    path("runs/<int:pk>/comments/at/<int:seq>/", comments.at, name="comments-at"),
    path("runs/<int:pk>/comments/marks/", comments.marked, name="comments-marks"),
    path("runs/<int:pk>/comments/start/", comments.start, name="comments-start"),
    path("comments/people/", comments.people, name="comments-people"),
    path("comments/<int:pk>/", comments.comment, name="comment"),
    path("comments/<int:pk>/edit/", comments.edit, name="comment-edit"),
    path("comments/<int:pk>/delete/", comments.delete, name="comment-delete"),
    path("threads/<int:pk>/reply/", comments.reply, name="thread-reply"),
    path("threads/<int:pk>/resolve/", comments.resolve, name="thread-resolve"),
    path("notifications/", notifications.page, name="notifications"),
    path("notifications/bell/", notifications.bell, name="notifications-bell"),
    path("notifications/read/", notifications.read, name="notifications-read"),
    path("notifications/<int:pk>/", notifications.follow, name="notification"),
    path("query/", query.page, name="query"),
    path("query/unit/", query.unit, name="query-unit"),
    path("query/command/", query.command, name="query-command"),
    path("experiments/", experiments.index, name="experiments"),
    path("runs/<int:pk>/experiments/<int:n>/", experiments.page, name="experiment"),
    path("images/<image_key:key>.png", images.image, name="image"),
    path("images/<image_key:key>/", images.page, name="image-page"),
    path("images/<image_key:key>/thumb-<int:size>.webp", images.thumbnail, name="thumbnail"),
    path("units/", units.index, name="units"),
    path("units/<unit_name:name>/", units.model, name="units-model"),
    path("units/<unit_name:name>/<unit_name:layer_name>/", units.layer, name="units-layer"),
    path("units/<unit_name:name>/<unit_name:layer_name>/random/", units.random, name="unit-random"),
    path("units/<unit_name:name>/<unit_name:layer_name>/<unit_number:number>/", unit.page, name="unit"),
    path(
        "units/<unit_name:name>/<unit_name:layer_name>/<unit_number:number>/exemplars/",
        units.exemplars,
        name="unit-exemplars",
    ),
    path("choices/", choices.index, name="choices"),
    path("choices/new/", choices.new, name="choices-new"),
    path("choices/<int:pk>/", choices.contest, name="choices-contest"),
    path("choices/<int:pk>/judge/", choosing.page, name="choices-judge"),
    path("choices/<int:pk>/answer/", choosing.answer, name="choices-answer"),
    path("choices/<int:pk>/undo/", choosing.undo, name="choices-undo"),
    path("choices/<int:pk>/close/", choices.close, name="choices-close"),
    path("choices/<int:pk>/choices.csv", choices.file, name="choices-file"),
    path("choices/<int:pk>/ask/", choices.ask, name="choices-ask"),
    path("choices/<int:pk>/judges/<int:judge>/stop/", choices.stop, name="choices-stop"),
    path("compare/", compare.page, name="compare"),
    path("review/", review.index, name="review"),
    path("review/new/", review.new, name="review-new"),
    path("review/<int:pk>/", review.queue, name="review-queue"),
    path("review/<int:pk>/close/", review.close, name="review-close"),
    path("review/<int:pk>/next/", review.next_item, name="review-next"),
    path("review/<int:pk>/undo/", review_writing.undo, name="review-undo"),
    path("review/<int:pk>/items/<int:position>/", review.item, name="review-item"),
    path("review/<int:pk>/items/<int:position>/line/", review.line, name="review-line"),
    path("review/<int:pk>/items/<int:position>/ahead/", review.ahead, name="review-ahead"),
    path("review/<int:pk>/items/<int:position>/take/", review_writing.take, name="review-take"),
    path("review/<int:pk>/items/<int:position>/hold/", review_writing.hold, name="review-hold"),
    path("review/<int:pk>/items/<int:position>/save/", review_writing.save, name="review-save"),
    path("review/<int:pk>/items/<int:position>/submit/", review_writing.submit, name="review-submit"),
    path("review/<int:pk>/items/<int:position>/decline/", review_writing.decline, name="review-decline"),
    path("pulse/", overview.pulse, name="pulse"),
    path("search/", search.page, name="search"),
    path("jump/", search.jump, name="jump"),
    path("exports/", exports.page, name="exports"),
    path("exports/make/", exports.make, name="exports-make"),
    path("exports/<int:pk>/file/", exports.file, name="exports-file"),
    path("exports/<int:pk>/delete/", exports.delete, name="exports-delete"),
    path("imports/", imports.page, name="imports"),
    path("imports/bring/", imports.bring, name="imports-bring"),
    path("settings/", RedirectView.as_view(pattern_name="settings-models"), name="settings"),
    path("settings/models/", models.page, name="settings-models"),
    path("settings/models/add/", models.add, name="settings-models-add"),
    path("settings/models/look/", models.look, name="settings-look"),
    path("settings/models/<int:pk>/layers/", models.layers, name="settings-layers"),
    path("settings/models/<int:pk>/remove/", models.remove, name="settings-models-remove"),
    path("settings/data-sets/", data_sets.page, name="settings-data-sets"),
    path("settings/data-sets/add/", data_sets.add, name="settings-data-sets-add"),
    path("settings/data-sets/index/", data_sets.index, name="settings-index"),
    path("settings/data-sets/<int:pk>/remove/", data_sets.remove, name="settings-data-sets-remove"),
    path("settings/jobs/<int:pk>/stop/", jobs.stop, name="settings-job-stop"),
    path("settings/jobs/<int:pk>/go-on/", jobs.go_on, name="settings-job-go-on"),
    path("settings/workers/", workers.page, name="settings-workers"),
    path("settings/audit/", audit.page, name="settings-audit"),
    path("settings/audit/audit.<str:form>", audit.file, name="settings-audit-file"),
    path("settings/people/", people.page, name="settings-people"),
    path("settings/people/invite/", people.invite, name="settings-people-invite"),
    path("settings/people/invitations/<int:pk>/revoke/", people.revoke, name="settings-people-revoke"),
    path("settings/people/<int:pk>/role/", people.set_role, name="settings-people-role"),
    path("settings/people/<int:pk>/active/", people.set_active, name="settings-people-active"),
    path("settings/people/<int:pk>/link/", people.link, name="settings-people-link"),
    path("settings/people/<int:pk>/remove/", people.remove, name="settings-people-remove"),
    path("settings/you/", you.page, name="settings-you"),
    path("settings/you/name/", you.rename, name="settings-you-name"),
    path("settings/you/password/", you.change_password, name="settings-you-password"),
    path("settings/you/sessions/", you.end_others, name="settings-you-sessions"),
    path("settings/you/connect/", you.connect, name="settings-you-connect"),
    path("settings/you/disconnect/", you.disconnect, name="settings-you-disconnect"),
    path("settings/tokens/", tokens.page, name="settings-tokens"),
    path("settings/tokens/<int:pk>/revoke/", tokens.revoke, name="settings-tokens-revoke"),
]

websocket_urlpatterns = [
    path("ws/runs/<int:pk>/", RunConsumer.as_asgi()),
    path("ws/live/", TopicConsumer.as_asgi()),
]
