"""Addresses of accounts: signing in, people, one's own settings, tokens, the audit."""

from __future__ import annotations

from django.contrib.auth.views import LogoutView
from django.urls import URLPattern, path

from experiments.accounts import entry_pages, pages

urlpatterns: list[URLPattern] = [
    path("sign-in/", entry_pages.SignIn.as_view(), name="sign-in"),
    path("sign-out/", LogoutView.as_view(), name="sign-out"),
    path("sign-in/with/", entry_pages.go_to_provider, name="sign-in-with"),
    path("sign-in/back/", entry_pages.come_back, name="sign-in-back"),
    path("enter/<str:token>/", entry_pages.enter, name="enter"),
    path("join/<str:token>/", entry_pages.join, name="join"),
    path("settings/audit/", pages.audit_entries, name="settings-audit"),
    path("settings/audit/audit.<str:form>", pages.audit_file, name="settings-audit-file"),
    path("settings/people/", pages.people, name="settings-people"),
    path("settings/people/invite/", pages.invite, name="settings-people-invite"),
    path("settings/people/invitations/<int:pk>/revoke/", pages.revoke_invitation, name="settings-people-revoke"),
    path("settings/people/<int:pk>/role/", pages.set_role, name="settings-people-role"),
    path("settings/people/<int:pk>/active/", pages.set_active, name="settings-people-active"),
    path("settings/people/<int:pk>/link/", pages.make_sign_in_link, name="settings-people-link"),
    path("settings/people/<int:pk>/remove/", pages.remove, name="settings-people-remove"),
    path("settings/you/", pages.you, name="settings-you"),
    path("settings/you/name/", pages.rename, name="settings-you-name"),
    path("settings/you/password/", pages.change_password, name="settings-you-password"),
    path("settings/you/sessions/", pages.end_other_sessions, name="settings-you-sessions"),
    path("settings/you/connect/", pages.connect_provider, name="settings-you-connect"),
    path("settings/you/disconnect/", pages.disconnect_provider, name="settings-you-disconnect"),
    path("settings/tokens/", pages.tokens, name="settings-tokens"),
    path("settings/tokens/<int:pk>/revoke/", pages.revoke_token, name="settings-tokens-revoke"),
]
