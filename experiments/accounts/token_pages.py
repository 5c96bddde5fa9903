"""Settings, tokens: what one's own scripts sign in with. Each is shown once, when it is made."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from experiments.core import access, audit
from experiments.core.audit import Verb
from experiments.models import ApiToken
from experiments.models.api_token import DAYS, MOST_DAYS, Scope

MOST = 50
"""Good tokens that one person may have."""
EXPLAINED = {
    Scope.READ: "Runs, events, experiments, images, units, labels: to look at.",
    Scope.RUN: "And to start, stop and retry runs.",
    Scope.WRITE: "And to write labels, and to ask workers for models, datasets and indexes.",
}


class TokenForm(forms.Form):
    """A new token."""

    name = forms.CharField(
        max_length=100,
        error_messages={
            "required": "Give it a name, such as the script that will use it.",
            "max_length": "This name has %(show_value)d characters; at most %(limit_value)d are taken.",
        },
    )
    scope = forms.TypedChoiceField(choices=Scope.choices, coerce=lambda value: Scope(int(value)), initial=Scope.READ)
    days = forms.IntegerField(
        min_value=1,
        max_value=MOST_DAYS,
        initial=DAYS,
        error_messages=dict.fromkeys(
            ("required", "invalid", "min_value", "max_value"), f"Give a number of days from 1 to {MOST_DAYS}."
        ),
    )


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def page(request: HttpRequest) -> HttpResponse:
    """One's own tokens; a new one is shown on the answer to its form, and nowhere else."""
    user = access.require(request)
    form = TokenForm(request.POST) if request.method == "POST" else TokenForm()
    made = None
    if form.is_bound and form.is_valid():
        if sum(each.is_good for each in ApiToken.objects.filter(user=user)) >= MOST:
            form.add_error(None, f"You have {MOST} tokens that are good. Revoke one that you do not need.")
        else:
            made = issue(request, user, form.cleaned_data)
    context: dict[str, Any] = {
        "tokens": list(ApiToken.objects.filter(user=user)[: 2 * MOST]),
        "form": form if made is None else TokenForm(),
        "made": made,
        "scopes": [(scope, scope.label, EXPLAINED[scope]) for scope in Scope],
        "chosen": str(form["scope"].value() if made is None else int(Scope.READ)),
        "address": request.build_absolute_uri("/api/v1/me"),
    }
    return render(request, "accounts/tokens.html", context, status=400 if form.errors else 200)


@transaction.atomic
def issue(request: HttpRequest, user: User, data: dict[str, Any]) -> tuple[ApiToken, str]:
    made = ApiToken.issue(user, **data)
    audit.record(request, Verb.TOKEN_MADE, made[0], scope=made[0].get_scope_display())
    return made


@require_POST
@transaction.atomic
def revoke(request: HttpRequest, pk: int) -> HttpResponse:
    """From now on it opens nothing. Only one's own."""
    user = access.require(request)
    token = get_object_or_404(ApiToken, pk=pk, user=user)
    token.revoke()
    audit.record(request, Verb.TOKEN_REVOKED, token)
    return redirect("settings-tokens")
