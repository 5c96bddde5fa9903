"""The whole table of addresses, walked as Django and Channels resolve it: nothing is mounted beside the tables of
tests/house/test_access.py, every view asks for access in its first line, and every method of every address is tried.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator
from channels.routing import URLRouter
from django.contrib.auth.models import AnonymousUser, User
from django.test import Client

from experiments.core.sockets import NOT_YOURS, Listener
from experiments.models import Run
from experiments.urls import urlpatterns, websocket_urlpatterns
from tests.support.addresses import ADMIN_READ, NAMED, OPEN, OWN, READ, SHARED
from tests.support.builders import make_run
from tests.support.people import member
from tests.support.routes import ALL, every

SOCKETS = {"ws/runs/<int:pk>/": "/ws/runs/{run}/", "ws/live/": "/ws/live/?topic=runs"}


OURS = [each for _, each in every(list(urlpatterns))]
PAGES = [(route, each) for route, each in ALL if each in OURS]
GUARDED = [(route, each) for route, each in PAGES if each.name not in OPEN | SHARED.keys()]


def test_nothing_is_mounted_beside_pages_api_and_admin() -> None:
    others = [route for route, each in ALL if each not in OURS and not route.startswith(("admin/", "api/v1/"))]
    assert others == []


def test_only_open_addresses_and_the_api_let_visitors_in() -> None:
    """LoginRequiredMiddleware sends visitors away, except where a view says otherwise."""
    let_in = {route for route, each in ALL if not getattr(each.callback, "login_required", True)}
    opened = {route for route, each in PAGES if each.name in OPEN | SHARED.keys()}
    api = {route for route in let_in if route.startswith("api/v1/")}  # it asks by itself: tests/api/test_access.py
    assert let_in - api - opened == {"admin/login/"}


def asks_first(function: Any, depth: int = 2) -> bool:
    """Whether the first statement of a view calls `access` or `Actor.of`, or a function of its module that does."""
    function = inspect.unwrap(function)
    found = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    assert isinstance(found, ast.FunctionDef)
    first = (found.body[1:] if ast.get_docstring(found) else found.body)[0]
    if "access." in (text := ast.unparse(first)) or "Actor.of(" in text:
        return True
    names = {node.func.id for node in ast.walk(first) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    called = [vars(inspect.getmodule(function)).get(name) for name in names]
    return depth > 0 and any(inspect.isfunction(each) and asks_first(each, depth - 1) for each in called)


def test_every_view_asks_for_access_in_its_first_line() -> None:
    assert [route for route, each in GUARDED if not asks_first(each.callback)] == []


def sent(client: Client, method: str, path: str) -> int:
    return int(getattr(client, method)(path).status_code)


def test_a_visitor_is_sent_to_the_sign_in_page_whatever_they_try(client: Client, ids: dict[str, int]) -> None:
    paths = [path.format(**ids) for path in NAMED.values()]
    for path in paths:
        for method in ("get", "post"):
            response = getattr(client, method)(path)
            assert (response.status_code, response["Location"].split("?")[0]) == (302, "/sign-in/"), (method, path)


def test_a_stranger_finds_nothing_whatever_they_try(client: Client, stranger: User, ids: dict[str, int]) -> None:
    client.force_login(stranger)
    for path in {path.format(**ids) for path in NAMED.values()}:
        for method in ("get", "post"):
            assert sent(client, method, path) in {404, 405}, (method, path)


def test_a_viewer_writes_nothing_but_their_own(client: Client, teammate: User, ids: dict[str, int]) -> None:
    client.force_login(teammate)
    before = Run.objects.count()
    for name, path in NAMED.items():
        if name not in OWN:
            assert sent(client, "post", path.format(**ids)) in {403, 404, 405}, name
    assert Run.objects.count() == before


def test_a_viewer_reads_what_there_is(client: Client, teammate: User, ids: dict[str, int]) -> None:
    client.force_login(teammate)
    for name, path in READ.items():
        assert sent(client, "get", path.format(**ids)) not in {401, 403, 500}, name
    for name, path in ADMIN_READ.items():
        assert sent(client, "get", path.format(**ids)) == 403, name


# --- Django's admin ---

ADMIN_PAGES = [
    "/admin/",
    "/admin/auth/user/",
    "/admin/experiments/run/",
    "/admin/experiments/member/",
    "/admin/jsi18n/",
]


def followed(client: Client, path: str) -> Any:
    return client.get(path, follow=True)


def test_the_admin_has_no_door_of_its_own(client: Client, stranger: User, owner: User) -> None:
    for path in ADMIN_PAGES:
        assert followed(client, path).redirect_chain[-1][0].startswith("/sign-in/")
    assert (
        client.post("/admin/login/", {"username": "stranger", "password": "correct horse battery"}).status_code == 302
    )
    assert "_auth_user_id" not in client.session
    client.force_login(stranger)
    assert {followed(client, path).status_code for path in ADMIN_PAGES} == {404}
    client.force_login(owner)
    User.objects.update(is_staff=True, is_superuser=True)
    assert {followed(client, path).status_code for path in ADMIN_PAGES} == {403}


def test_the_admin_is_for_looking_by_who_set_it_up(client: Client, db: None) -> None:
    admin = member("admin", "ADMIN")
    client.force_login(admin)
    assert followed(client, "/admin/").status_code == 403
    User.objects.update(is_staff=True, is_superuser=True)
    for path in ADMIN_PAGES:
        assert client.get(path).status_code == 200, path
    page = client.get(f"/admin/auth/user/{admin.pk}/change/").content.decode()
    assert "pbkdf2" not in page
    assert "md5$" not in page
    for path in (
        f"/admin/auth/user/{admin.pk}/change/",
        "/admin/auth/user/add/",
        f"/admin/auth/user/{admin.pk}/delete/",
    ):
        assert client.post(path).status_code == 403, path
    assert client.get("/admin/password_change/")["Location"] == "/settings/you/"


# --- sockets ---


def test_every_socket_is_walked_and_asks_for_access() -> None:
    assert {str(each.pattern) for each in websocket_urlpatterns} == SOCKETS.keys()
    for each in websocket_urlpatterns:
        consumer = each.callback.consumer_class
        assert issubclass(consumer, Listener)
        assert asks_first(consumer.allowed)
        assert "connect" not in vars(consumer), "the first line is the one of Listener"


async def answer(path: str, user: Any) -> Any:
    """What a socket says first, once it is accepted."""
    place, _, query = path.partition("?")
    scope = {"type": "websocket", "path": place, "query_string": query.encode(), "headers": [], "user": user}
    socket: Any = ApplicationCommunicator(URLRouter(websocket_urlpatterns), scope)  # type: ignore[no-untyped-call]
    await socket.send_input({"type": "websocket.connect"})
    assert (await socket.receive_output(60))["type"] == "websocket.accept"
    said = await socket.receive_output(60)
    await socket.send_input({"type": "websocket.disconnect", "code": 1001})
    await socket.wait(60)
    return said


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("path", SOCKETS.values())
async def test_sockets_close_on_visitors_and_strangers(redis_url: str, path: str) -> None:
    viewer = await sync_to_async(member)("teammate", "VIEWER")
    stranger = await sync_to_async(User.objects.create_user)("stranger")
    path = path.format(run=(await sync_to_async(make_run)(viewer)).pk)
    for nobody in (AnonymousUser(), stranger):
        said = await answer(path, nobody)
        assert (said["type"], said["code"]) == ("websocket.close", NOT_YOURS)
    assert (await answer(path, viewer))["type"] == "websocket.send"


# --- the API ---


def test_every_address_of_the_api_asks_visitors_for_a_token(client: Client, db: None) -> None:
    """Operations are walked by tests/api/test_access.py; this is for what else is mounted there."""
    for path in ("/api/v1/openapi.json", "/api/v1/me", "/api/v1/runs"):
        assert client.get(path).status_code == 401, path
    for path in ("/api/v1/docs", "/api/v1/docs/notebook", "/api/v1/"):
        assert client.get(path)["Location"].startswith("/sign-in/")
