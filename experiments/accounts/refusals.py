"""What somebody is told who came by single sign-on and is not let in, and why."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render


def answer_refusal(request: HttpRequest, title: str, words: str, status: int = 403) -> HttpResponse:
    return render(request, "accounts/refused.html", {"title": title, "words": words}, status=status)


def answer_unreachable(request: HttpRequest) -> HttpResponse:
    words = (
        f"{settings.OIDC_NAME} does not answer, or not as it should. Try again in a moment; if it stays so, "
        "tell an admin of your team: the web's log says more."
    )
    return answer_refusal(request, "You could not be signed in", words, 502)


def answer_not_believed(request: HttpRequest) -> HttpResponse:
    words = (
        f"What came back from {settings.OIDC_NAME} does not belong to a sign-in that this browser began, "
        "or is too old. Begin again from the sign-in page."
    )
    return answer_refusal(request, "You could not be signed in", words)


def answer_cancelled(request: HttpRequest) -> HttpResponse:
    return answer_refusal(
        request, "You were not signed in", f"You cancelled at {settings.OIDC_NAME}. Nothing was changed."
    )


def answer_inactive(request: HttpRequest) -> HttpResponse:
    words = "This account was deactivated. Ask an admin of your team, who can open it again."
    return answer_refusal(request, "Your account is closed", words)


def answer_foreign(request: HttpRequest) -> HttpResponse:
    words = (
        f"Only people with a verified e-mail address at {' or '.join(settings.OIDC_DOMAINS)} come in by themselves. "
        "An admin of the team can send you an invitation."
    )
    return answer_refusal(request, "You are not expected here", words)


def answer_address_in_use(request: HttpRequest) -> HttpResponse:
    words = (
        f"An account of this team has your e-mail address already, and {settings.OIDC_NAME} was never connected to it. "
        "If it is yours, sign in as you do otherwise, and connect the two under Settings, You."
    )
    return answer_refusal(request, "This e-mail address has an account", words)


def answer_connected_elsewhere(request: HttpRequest) -> HttpResponse:
    words = f"This identity of {settings.OIDC_NAME} is connected to another account of the team. Nothing was changed."
    return answer_refusal(request, "Already connected", words)


def answer_interrupted(request: HttpRequest) -> HttpResponse:
    words = "Something else happened at the same moment: you signed out, or came twice. Begin again."
    return answer_refusal(request, "You could not be signed in", words, 409)
