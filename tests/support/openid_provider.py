"""A small OpenID provider on the loopback: discovery, authorization, tokens that are really signed, keys, user info."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import ec

CLIENT, SECRET = "maia", "a secret of both"

Claims = dict[str, Any]


def key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


@dataclass
class Provider:
    """Who comes, and what is wrong with what the provider says; tests change it as they go."""

    issuer: str = ""
    person: Claims = field(default_factory=lambda: {"sub": "7", "name": "New Comer", "preferred_username": "newcomer"})
    in_userinfo: Claims = field(default_factory=dict)
    change: Callable[[Claims], Claims] = lambda claims: claims
    """Applied to the claims before they are signed."""
    change_answer: Callable[[Claims], Claims] = lambda answer: answer
    """Applied to the answer that holds the token."""
    change_config: Callable[[Claims], Claims] = lambda config: config
    key: ec.EllipticCurvePrivateKey = field(default_factory=key)
    signs_with: ec.EllipticCurvePrivateKey | None = None
    algorithm: str = "ES256"
    verifies: bool = True
    """Whether a code is only for who has its verifier (PKCE)."""
    down: bool = False
    redirects: bool = False
    """Whether tokens are to be asked for at another address."""
    asked: dict[str, Claims] = field(default_factory=dict)
    """Code -> what the authorization asked for."""

    def email(self, address: str, verified: object = True) -> None:
        self.person |= {"email": address, "email_verified": verified}

    # --- what it answers ---

    def config(self) -> Claims:
        names = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "keys"}
        found = {name: f"{self.issuer}/{path}" for name, path in names.items()}
        more = {
            "userinfo_endpoint": f"{self.issuer}/me",
            "token_endpoint_auth_methods_supported": ["client_secret_basic"],
        }
        return self.change_config({"issuer": self.issuer, **found, **more})

    def keys(self) -> Claims:
        public = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(self.key.public_key()))
        return {"keys": [{**public, "kid": "one", "use": "sig", "alg": "ES256"}]}

    def authorize(self, query: Claims) -> str:
        """Where the browser is sent: back, with a code."""
        assert query["response_type"] == "code"
        assert "openid" in query["scope"].split()
        assert query["client_id"] == CLIENT
        code = f"code-{len(self.asked)}"
        self.asked[code] = query
        return f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state']})}"

    def token(self, form: Claims, authorization: str) -> Claims:
        """A token for a code, once, to who knows the secret and the verifier."""
        asked = self.asked.pop(form["code"])
        assert self.client_of(form, authorization) == f"{CLIENT}:{SECRET}"
        assert form["redirect_uri"] == asked["redirect_uri"]
        challenge = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest())
        assert not self.verifies or challenge.decode().rstrip("=") == asked["code_challenge"]
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT, "iat": now, "exp": now + 300, "nonce": asked["nonce"]}
        claims = self.change({**claims, **self.person})
        signed_with: Any = self.signs_with or self.key
        if self.algorithm == "HS256":
            signed_with = "a shared secret of at least thirty-two bytes"
        if self.algorithm == "none":
            signed_with = None
        signed = jwt.encode(claims, signed_with, self.algorithm, headers={"kid": "one"})
        return self.change_answer({"access_token": "of-the-person", "token_type": "Bearer", "id_token": signed})

    def client_of(self, form: Claims, authorization: str) -> str:
        """Who asks for a token, and their secret, in one of the two ways that the metadata name."""
        if self.config()["token_endpoint_auth_methods_supported"] == ["client_secret_basic"]:
            assert "client_secret" not in form
            return base64.b64decode(authorization.removeprefix("Basic ")).decode()
        assert not authorization
        return f"{form['client_id']}:{form['client_secret']}"

    def me(self, authorization: str) -> Claims:
        assert authorization == "Bearer of-the-person"
        return {"sub": self.person["sub"], **self.in_userinfo}


class Handler(BaseHTTPRequestHandler):
    provider: Provider

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        if self.provider.down:
            self.send_error(503)
        elif parts.path == "/.well-known/openid-configuration":
            self.say(self.provider.config())
        elif parts.path == "/keys":
            self.say(self.provider.keys())
        elif parts.path == "/me":
            self.say(self.provider.me(self.headers["Authorization"]))
        else:
            self.send_error(404)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        if self.provider.redirects and self.path == "/token":
            self.send_response(307)
            self.send_header("Location", "/another")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        form = {name: values[0] for name, values in parse_qs(body).items()}
        try:
            self.say(self.provider.token(form, self.headers.get("Authorization", "")))
        except (KeyError, AssertionError):
            self.send_error(400)

    def say(self, found: Claims) -> None:
        body = json.dumps(found).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Tests are quiet."""


@contextmanager
def serving() -> Iterator[Provider]:
    """A provider that answers as long as the context lasts."""
    provider = Provider()
    handler = type("Ours", (Handler,), {"provider": provider})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        provider.issuer = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield provider
        server.shutdown()
        thread.join()


def query_of(url: str) -> Claims:
    return dict(parse_qsl(urlsplit(url).query))
