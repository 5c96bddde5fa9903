"""Addresses of accounts: signing in, people, one's own settings, tokens, the audit."""

from __future__ import annotations

from django.contrib.auth.views import LogoutView
from django.urls import URLPattern, path

from experiments.accounts import (
    audit_pages,
    join_pages,
    own_pages,
    people_pages,
    sign_in_pages,
    single_sign_on_pages,
    token_pages,
)

urlpatterns: list[URLPattern] = [
    path("sign-in/", sign_in_pages.SignIn.as_view(), name="sign-in"),
    path("sign-out/", LogoutView.as_view(), name="sign-out"),
    path("sign-in/with/", single_sign_on_pages.go, name="sign-in-with"),
    path("sign-in/back/", single_sign_on_pages.back, name="sign-in-back"),
    path("enter/<str:token>/", sign_in_pages.enter, name="enter"),
    path("join/<str:token>/", join_pages.page, name="join"),
    path("settings/audit/", audit_pages.page, name="settings-audit"),
    path("settings/audit/audit.<str:form>", audit_pages.file, name="settings-audit-file"),
    path("settings/people/", people_pages.page, name="settings-people"),
    path("settings/people/invite/", people_pages.invite, name="settings-people-invite"),
    path("settings/people/invitations/<int:pk>/revoke/", people_pages.revoke, name="settings-people-revoke"),
    path("settings/people/<int:pk>/role/", people_pages.set_role, name="settings-people-role"),
    path("settings/people/<int:pk>/active/", people_pages.set_active, name="settings-people-active"),
    path("settings/people/<int:pk>/link/", people_pages.link, name="settings-people-link"),
    path("settings/people/<int:pk>/remove/", people_pages.remove, name="settings-people-remove"),
    path("settings/you/", own_pages.page, name="settings-you"),
    path("settings/you/name/", own_pages.rename, name="settings-you-name"),
    path("settings/you/password/", own_pages.change_password, name="settings-you-password"),
    path("settings/you/sessions/", own_pages.end_others, name="settings-you-sessions"),
    path("settings/you/connect/", own_pages.connect, name="settings-you-connect"),
    path("settings/you/disconnect/", own_pages.disconnect, name="settings-you-disconnect"),
    path("settings/tokens/", token_pages.page, name="settings-tokens"),
    path("settings/tokens/<int:pk>/revoke/", token_pages.revoke, name="settings-tokens-revoke"),
]
