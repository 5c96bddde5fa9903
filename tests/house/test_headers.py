"""What no page leaves behind and no database meets: copies in caches, and the character NUL."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, QueryDict
from django.test import Client, RequestFactory

from experiments.core.security import WithoutNul
from experiments.models import Image, VisionModelRow
from tests import ROOT
from tests.support.builders import make_run

PAGES = ("/", "/runs/", "/experiments/", "/units/", "/review/", "/search/?q=red", "/exports/", "/settings/models/")

pytestmark = pytest.mark.django_db


def test_no_cache_keeps_a_private_page(as_owner: Client, owner: User) -> None:
    run = make_run(owner)
    for path in (*PAGES, f"/runs/{run.pk}/", "/nowhere/", "/pulse/", "/sign-in/"):
        kept = as_owner.get(path)["Cache-Control"]
        assert "no-store" in kept, path
        assert "public" not in kept, path


def test_images_are_kept_and_private(as_owner: Client, settings, tmp_path: Path) -> None:
    settings.MEDIA_ROOT = tmp_path
    key = "ab" * 32
    path = tmp_path / Image.path_of(key)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"pixels")
    answer = as_owner.get(f"/images/{key}.png")
    assert (answer.status_code, answer["Cache-Control"]) == (200, "private, max-age=31536000, immutable")
    again = as_owner.get(f"/images/{key}.png", headers={"If-None-Match": answer["ETag"]})
    assert (again.status_code, "no-store" in again.get("Cache-Control", "")) == (304, False)


def test_the_api_is_asked_again_and_its_copies_are_private(as_owner: Client) -> None:
    assert as_owner.get("/api/v1/runs")["Cache-Control"] == "private, no-cache"


@pytest.mark.parametrize(("https", "seconds"), [("yes", "31536000"), ("no", "0")])
def test_behind_https_browsers_are_told_to_use_nothing_else(https: str, seconds: str, tmp_path: Path) -> None:
    """Django's own middleware says so, for as long as the setting has it."""
    words = "from django.conf import settings; print(settings.SECURE_HSTS_SECONDS)"
    environment = {
        "DJANGO_SETTINGS_MODULE": "maia_web.settings",
        "MAIA_SECRET_KEY": "x" * 50,
        "MAIA_STATE": str(tmp_path),
    }
    command, environment = [sys.executable, "-c", words], environment | {"MAIA_HTTPS": https}
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == seconds, done.stderr


# --- NUL ---


def passed_on(request: HttpRequest) -> HttpRequest:
    """The request as a view gets it."""
    seen: list[HttpRequest] = []

    def view(request: HttpRequest) -> HttpResponse:
        middleware.process_view(request, view, (), {})
        seen.append(request)
        return HttpResponse()

    middleware = WithoutNul(view)
    middleware(request)
    return seen[0]


def test_no_view_meets_a_nul() -> None:
    request = RequestFactory().post(
        "/runs/?q=a%00b&q=c&%00=d", {"note": ["a\x00", "b"], "file": ""}, headers={"Cookie": 'sessionid="\\000x"; a=b'}
    )
    got = passed_on(request)
    assert QueryDict("q=a%EF%BF%BDb&q=c&%EF%BF%BD=d") == got.GET
    assert dict(got.POST.lists()) == {"note": ["a\ufffd", "b"], "file": [""]}
    assert got.COOKIES == {"sessionid": "\ufffdx", "a": "b"}


def test_what_holds_no_nul_stays_as_it_is() -> None:
    request = RequestFactory().post("/runs/?q=red", {"note": "b"})
    query, form = request.GET, request.POST
    got = passed_on(request)
    assert got.GET is query
    assert got.POST is form


ODD = "a%00b"
FILTERS = (
    "q",
    "model",
    "layer",
    "owner",
    "label",
    "tag",
    "backbone",
    "kind",
    "concept",
    "unit",
    "run",
    "status",
    "origin",
)


@pytest.mark.parametrize("path", ["/runs/", "/experiments/", "/query/", "/query/unit/", "/query/command/", "/units/"])
def test_a_nul_in_an_address_is_no_fault_of_ours(as_owner: Client, path: str) -> None:
    client = Client(raise_request_exception=False)
    client.cookies = as_owner.cookies
    for name in FILTERS:
        assert client.get(f"{path}?{name}={ODD}").status_code < 500, name
    assert client.post("/runs/views/", {"name": "a\x00b", "query": "tag=\x00"}).status_code < 500
    assert client.post("/query/", {"question": "a\x00b", "model": "\x00", "layer": "\x00"}).status_code < 500


@pytest.mark.parametrize(
    "query", ["layer=x", "model=x", "unit=1", "like=9", "layer=x&model=", "from=1", "from=1&layer=x"]
)
def test_a_query_begins_although_there_is_no_model(as_owner: Client, owner: User, query: str) -> None:
    make_run(owner)
    assert not VisionModelRow.objects.exists()
    assert as_owner.get(f"/query/?{query}").status_code == 200
    assert as_owner.post("/query/", {"parent": "1", "layer": "x"}).status_code == 200
