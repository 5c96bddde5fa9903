"""URLs of webhooks."""

from __future__ import annotations

from django.urls import URLPattern, path

from experiments.webhooks import pages

urlpatterns: list[URLPattern] = [
    path("settings/webhooks/", pages.webhooks, name="settings-webhooks"),
    path("settings/webhooks/add/", pages.add, name="settings-webhooks-add"),
    path("settings/webhooks/<int:pk>/", pages.webhook, name="settings-webhook"),
    path("settings/webhooks/<int:pk>/change/", pages.change, name="settings-webhook-change"),
    path("settings/webhooks/<int:pk>/active/", pages.set_active, name="settings-webhook-active"),
    path("settings/webhooks/<int:pk>/secret/", pages.renew_secret, name="settings-webhook-secret"),
    path("settings/webhooks/<int:pk>/test/", pages.send_test, name="settings-webhook-test"),
    path("settings/webhooks/<int:pk>/delete/", pages.delete, name="settings-webhook-delete"),
    path(
        "settings/webhooks/<int:pk>/deliveries/<int:delivery>/again/", pages.send_again, name="settings-webhook-again"
    ),
]
