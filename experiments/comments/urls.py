"""URLs of comments, of tags beside them, and of notifications."""

from __future__ import annotations

from django.urls import URLPattern, path

from experiments.comments import pages

urlpatterns: list[URLPattern] = [
    path("runs/<int:pk>/comments/", pages.page, name="comments"),
    path("runs/<int:pk>/comments/at/<int:seq>/", pages.show_event_threads, name="comments-at"),
    path("runs/<int:pk>/comments/marks/", pages.show_marks, name="comments-marks"),
    path("runs/<int:pk>/comments/start/", pages.start, name="comments-start"),
    path("runs/<int:pk>/tags/", pages.tag, name="tags"),
    path("comments/people/", pages.list_mentionable, name="comments-people"),
    path("comments/<int:pk>/", pages.comment, name="comment"),
    path("comments/<int:pk>/edit/", pages.edit, name="comment-edit"),
    path("comments/<int:pk>/delete/", pages.delete, name="comment-delete"),
    path("threads/<int:pk>/reply/", pages.reply, name="thread-reply"),
    path("threads/<int:pk>/resolve/", pages.resolve, name="thread-resolve"),
    path("notifications/", pages.notification_list, name="notifications"),
    path("notifications/bell/", pages.show_unread, name="notifications-bell"),
    path("notifications/read/", pages.read_notifications, name="notifications-read"),
    path("notifications/<int:pk>/", pages.follow, name="notification"),
]
