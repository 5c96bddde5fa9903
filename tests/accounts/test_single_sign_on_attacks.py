"""Single sign-on with a real provider: what is not believed."""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import quote

import pytest
from django.contrib.auth.models import User
from django.test import Client

from experiments.models import Member
from tests.support.openid_provider import CLIENT, Provider, key, query_of
from tests.support.single_sign_on import come, leave, way_back, who

pytestmark = pytest.mark.django_db


def refused(client: Client, answer: Any, status: int = 403) -> str:
    assert answer.status_code == status, answer.content.decode()
    assert who(client) == ""
    assert User.objects.count() == 0
    return answer.content.decode()


def test_a_state_that_this_browser_did_not_begin(client: Client, provider: Provider) -> None:
    attacker = Client()
    back = way_back(attacker, provider)
    assert "does not belong to a sign-in that this browser began" in refused(client, client.get(back))
    leave(client)
    refused(client, client.get(back))
    refused(client, client.get("/sign-in/back/"))
    refused(client, client.get("/sign-in/back/?code=x&state=y"))


def test_an_answer_that_comes_twice(client: Client, provider: Provider) -> None:
    back = way_back(client, provider)
    assert client.get(back).status_code == 200
    client.post("/sign-out/")
    assert client.get(back).status_code == 403
    assert who(client) == ""


def test_a_code_that_comes_twice(client: Client, provider: Provider) -> None:
    code = query_of(way_back(Client(), provider))["code"]
    assert provider.asked.pop(code)
    refused(client, client.get(f"/sign-in/back/?code={code}&state={query_of(leave(client))['state']}"))


@pytest.mark.parametrize("verifies", [True, False], ids=["PKCE", "nonce"])
def test_a_code_of_another_browser_with_a_state_of_this_one(
    client: Client, provider: Provider, verifies: bool, caplog: pytest.LogCaptureFixture
) -> None:
    provider.verifies = verifies
    stolen = query_of(way_back(Client(), provider))["code"]
    refused(client, client.get(f"/sign-in/back/?code={stolen}&state={query_of(leave(client))['state']}"))
    assert verifies or "invalid_claim: Invalid claim: 'nonce'" in caplog.text


def test_a_state_that_is_too_old(client: Client, provider: Provider) -> None:
    back = way_back(client, provider)
    session = client.session
    kept = f"_state_provider_{query_of(back)['state']}"
    assert 0 < session[kept]["exp"] - time.time() <= 600
    session[kept] = {**session[kept], "exp": time.time() - 1}
    session.save()
    refused(client, client.get(back))


def test_a_state_that_an_error_has_used_up(client: Client, provider: Provider) -> None:
    back = way_back(client, provider)
    refused(client, client.get(f"/sign-in/back/?error=server_error&state={query_of(back)['state']}"))
    refused(client, client.get(back))


def test_a_cancellation_that_this_browser_did_not_begin(client: Client, provider: Provider) -> None:
    answer = client.get("/sign-in/back/?error=access_denied&state=x")
    assert "does not belong to a sign-in that this browser began" in refused(client, answer)


def test_a_browser_keeps_the_ten_latest_states(client: Client, provider: Provider) -> None:
    first = way_back(client, provider)
    for _ in range(10):
        last = way_back(client, provider)
    assert len([key for key, _ in client.session.items() if key.startswith("_state_")]) == 10
    refused(client, client.get(first))
    assert client.get(last).status_code == 200


def test_signing_in_changes_the_key_of_the_session(client: Client, provider: Provider) -> None:
    back = way_back(client, provider)
    before = client.session.session_key
    client.get(back)
    assert who(client) == "newcomer"
    assert client.session.session_key != before
    assert not type(client.session)().exists(before)


@pytest.mark.parametrize(
    "wanted",
    [
        "https://elsewhere.example/",
        "//elsewhere.example/runs/",
        "/\\elsewhere.example",
        "http:///elsewhere.example",
        "javascript:alert(1)",
        "https://testserver@elsewhere.example/",
        " //elsewhere.example",
    ],
)
def test_a_way_on_to_another_host(client: Client, provider: Provider, wanted: str) -> None:
    come(client, provider)
    Member.objects.create(user=User.objects.get())
    assert come(Client(), provider, next=wanted)["Location"] == "/"
    answer = client.get(f"{way_back(client, provider)}&next={quote(wanted)}")
    assert answer["Location"] == "/"


WRONG: dict[str, dict[str, Any]] = {
    "nonce of another request": {"nonce": "another"},
    "no nonce": {"nonce": None},
    "for another site": {"aud": "another"},
    "for several, asked by another": {"aud": [CLIENT, "another"], "azp": "another"},
    "for another site, asked by us": {"aud": "another", "azp": CLIENT},
    "for nobody": {"aud": []},
    "by another issuer": {"iss": "https://elsewhere.example"},
    "too old": {"exp": int(time.time()) - 3600},
    "from tomorrow": {"iat": int(time.time()) + 86400},
    "of nobody": {"sub": ""},
    "of a number": {"sub": 7},
    "of somebody with a very long name": {"sub": "x" * 300},
}


@pytest.mark.parametrize("aud", [[CLIENT], [CLIENT, "another"]])
def test_a_token_for_several_that_we_asked_for(client: Client, provider: Provider, aud: list[str]) -> None:
    provider.change = lambda claims: {**claims, "aud": aud, "azp": CLIENT}
    come(client, provider)
    assert who(client) == "newcomer"


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
def test_a_token_that_is_not_for_this_request(client: Client, provider: Provider, wrong: dict[str, Any]) -> None:
    provider.change = lambda claims: {**claims, **wrong}
    provider.person |= {name: value for name, value in wrong.items() if name == "sub"}  # so that its user info agrees
    refused(client, come(client, provider))


@pytest.mark.parametrize("name", ["exp", "iss", "aud", "sub", "iat", "nonce"])
def test_a_token_that_leaves_something_out(client: Client, provider: Provider, name: str) -> None:
    provider.change = lambda claims: {each: value for each, value in claims.items() if each != name}
    refused(client, come(client, provider))


def test_an_answer_without_a_token(client: Client, provider: Provider) -> None:
    provider.change_answer = lambda answer: {"access_token": answer["access_token"], "token_type": "Bearer"}
    refused(client, come(client, provider))


def test_a_token_that_belongs_to_another_access_token(client: Client, provider: Provider) -> None:
    provider.change = lambda claims: {**claims, "at_hash": "another"}
    refused(client, come(client, provider))


def test_a_token_that_another_signed(client: Client, provider: Provider) -> None:
    provider.signs_with = key()
    refused(client, come(client, provider))


@pytest.mark.parametrize("algorithm", ["none", "HS256"])
def test_a_token_that_nobody_or_anybody_could_have_signed(client: Client, provider: Provider, algorithm: str) -> None:
    provider.algorithm = algorithm
    offered = {"id_token_signing_alg_values_supported": [algorithm]}
    provider.change_config = lambda config: {**config, **offered}
    refused(client, come(client, provider))


def test_what_the_provider_tells_of_another_person(client: Client, provider: Provider) -> None:
    provider.in_userinfo = {"sub": "8", "email": "victim@example.org", "email_verified": True}
    refused(client, come(client, provider))


@pytest.mark.parametrize(
    "change",
    [
        lambda config: {**config, "issuer": "https://elsewhere.example"},
        lambda config: {"issuer": config["issuer"]},
        lambda config: ["nothing", config],
    ],
)
def test_a_provider_that_is_another_than_the_settings_name(client: Client, provider: Provider, change: Any) -> None:
    provider.change_config = change
    assert "does not answer" in refused(client, client.post("/sign-in/with/"), 502)


def test_a_provider_that_is_away(client: Client, provider: Provider) -> None:
    back = way_back(client, provider)
    provider.down = True
    refused(client, client.post("/sign-in/with/"), 502)
    refused(client, client.get(back), 502)


def test_somebody_who_changes_their_mind(client: Client, provider: Provider) -> None:
    state = query_of(leave(client))["state"]
    answer = client.get(f"/sign-in/back/?error=access_denied&state={state}")
    assert "You cancelled at Our Institute" in refused(client, answer)
