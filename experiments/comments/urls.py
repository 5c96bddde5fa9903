"""Addresses of comments, tags beside them, and notifications."""

from __future__ import annotations

from django.urls import URLPattern, path

from experiments.comments import notification_pages, pages, tag_pages

urlpatterns: list[URLPattern] = [
    path("runs/<int:pk>/comments/", pages.page, name="comments"),
    path("runs/<int:pk>/comments/at/<int:seq>/", pages.at, name="comments-at"),
    path("runs/<int:pk>/comments/marks/", pages.marked, name="comments-marks"),
    path("runs/<int:pk>/comments/start/", pages.start, name="comments-start"),
    path("runs/<int:pk>/tags/", tag_pages.change, name="tags"),
    path("comments/people/", pages.people, name="comments-people"),
    path("comments/<int:pk>/", pages.comment, name="comment"),
    path("comments/<int:pk>/edit/", pages.edit, name="comment-edit"),
    path("comments/<int:pk>/delete/", pages.delete, name="comment-delete"),
    path("threads/<int:pk>/reply/", pages.reply, name="thread-reply"),
    path("threads/<int:pk>/resolve/", pages.resolve, name="thread-resolve"),
    path("notifications/", notification_pages.page, name="notifications"),
    path("notifications/bell/", notification_pages.bell, name="notifications-bell"),
    path("notifications/read/", notification_pages.read, name="notifications-read"),
    path("notifications/<int:pk>/", notification_pages.follow, name="notification"),
]
