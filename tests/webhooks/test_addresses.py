"""A webhook leads nowhere but to public addresses: whatever a name is called, however an IP address is written."""

from __future__ import annotations

import datetime as dt
import ipaddress
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from experiments.core.errors import InvalidInput
from experiments.webhooks.addresses import WebhookTarget, may_connect, parse_target
from tests.support.webhook_receiver import Receiver, receiving
from workers.jobs.webhook_request import post

# fmt: off
PRIVATE = [
    "127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f.0.0.1", "0x7f000001", "0177.0.0.1", "0.0.0.0", "0",
    "10.0.0.1", "10.1", "172.16.3.4", "192.168.1.1", "169.254.169.254", "169.254.1", "100.64.0.1", "224.0.0.1",
    "255.255.255.255", "240.0.0.1", "192.0.2.1", "198.18.0.1", "127.0.0.1.", "[::1]", "[::]", "[::ffff:127.0.0.1]",
    "[::ffff:10.0.0.1]", "[::ffff:a9fe:a9fe]", "[::127.0.0.1]", "[fe80::1]", "[fc00::1]", "[fd00:ec2::254]",
    "[ff02::1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[2001:0:7f00:1::]", "[2001:db8::1]", "[fec0::1]",
]
# fmt: on
LEFT_OUT = (
    f"https://{'a' * 60}.{'b' * 60}!/",  # a pattern that tries all ways to cut this never ends
    "",
    "hook",
    "//example.org/",
    "example.org/hook",
    "https://",
    "https:///hook",
    "https://:443/",
    "https://exa mple.org/",
    "http://example.org/",
    "ftp://example.org/",
    "file:///etc/passwd",
    "gopher://example.org/",
    "javascript:alert(1)",
    "https://user@example.org/",
    "https://user:pass@example.org/",
    "https://@example.org/",
    "https://example.org@127.0.0.1/",
    "https://example.org/#part",
    "https://example.org\\@127.0.0.1/",
    "https://example.org/\r\nX: y",
    "https://exämple.org/",
    "https://example.org:0/",
    "https://example.org:22/",
    "https://example.org:25/",
    "https://example.org:65536/",
    "https://example.org:x/",
    "https://[::1/",
    "https://[fe80::1%25eth0]/",
    "https://exam%70le.org/",
    "https://-x/",
    "https://256.256.256.256/",
    "https://1.2.3.4.5/",
    "https://example.org/" + "x" * 500,
)


@pytest.mark.parametrize("host", PRIVATE)
def test_private_addresses_are_refused_in_every_spelling(host: str) -> None:
    with pytest.raises(InvalidInput, match="public"):
        parse_target(f"https://{host}/")
    assert post(f"https://{host}/", {}, b"").code is None


@pytest.mark.parametrize("address", LEFT_OUT)
def test_what_is_no_address_of_a_webhook_is_refused(address: str) -> None:
    with pytest.raises(InvalidInput):
        parse_target(address)


def test_public_addresses_are_taken_apart() -> None:
    assert parse_target("https://Example.org") == WebhookTarget("https", "example.org", 443, "/")
    found = parse_target("https://hooks.example.org:8443/a/b?c=%C3%A4")
    assert found == WebhookTarget("https", "hooks.example.org", 8443, "/a/b?c=%C3%A4")
    assert (found.authority, parse_target("https://[2606:4700::1]/").authority) == (
        "hooks.example.org:8443",
        "[2606:4700::1]",
    )
    assert parse_target("https://8.8.8.8/").host == "8.8.8.8"


@pytest.mark.parametrize(
    "address", ["169.254.169.254", "fe80::1", "224.0.0.1", "0.0.0.0", "::", "::ffff:169.254.169.254"]
)
def test_the_setting_opens_no_link_local_and_no_group(settings: Any, address: str) -> None:
    settings.WEBHOOK_PRIVATE = True
    assert not may_connect(ipaddress.ip_address(address))
    assert may_connect(ipaddress.ip_address("10.0.0.1"))
    assert may_connect(ipaddress.ip_address("::1"))


# --- names ---


def resolve_to(monkeypatch: pytest.MonkeyPatch, *answers: str) -> list[str]:
    """Have the resolver answer this, one after the other, the last from then on. Returns which names it was asked."""
    asked: list[str] = []

    def getaddrinfo(host: str, port: int, *_: Any, **__: Any) -> list[Any]:
        asked.append(host)
        found = answers[min(len(asked), len(answers)) - 1]
        return [(0, socket.SOCK_STREAM, 6, "", (each, port)) for each in found.split()]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return asked


@pytest.mark.parametrize("answer", ["127.0.0.1", "::1", "10.0.0.1", "8.8.8.8 127.0.0.1", "fe80::1%eth0"])
def test_a_name_that_leads_inside_is_refused(monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    asked = resolve_to(monkeypatch, answer)
    found = post("https://inside.example.org/", {}, b"")
    assert (found.code, asked) == (None, ["inside.example.org"])
    assert "not a public address" in found.words


def test_localhost_is_refused_by_the_real_resolver() -> None:
    assert "not a public address" in post("https://localhost:8443/", {}, b"").words


def test_a_name_that_changes_after_the_check_reaches_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Resolved once: the second answer is that of whoever wants to be reached inside."""
    asked = resolve_to(monkeypatch, "8.8.8.8", "127.0.0.1")
    reached: list[Any] = []

    def connect(_: socket.socket, place: Any) -> None:
        reached.append(place)
        raise ConnectionRefusedError("nobody is there")

    monkeypatch.setattr(socket.socket, "connect", connect)
    assert post("https://rebound.example.org/", {}, b"").code is None
    assert (asked, reached) == (["rebound.example.org"], [("8.8.8.8", 443)])


def test_the_header_names_the_host_and_the_connection_goes_to_the_ip(
    monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.WEBHOOK_PRIVATE = True
    asked = resolve_to(monkeypatch, "127.0.0.1")
    with receiving() as receiver:
        found = post(f"http://named.example.org:{receiver.port}/x", {"Content-Length": "2"}, b"{}")
        assert (found.code, len(asked)) == (200, 1)
        assert receiver.received[0].headers["host"] == f"named.example.org:{receiver.port}"


# --- certificates ---


@pytest.fixture
def encrypted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], int]]:
    """A server that shows a certificate for a name, which this process trusts; its port."""
    listeners: list[socket.socket] = []

    def serve(name: str) -> int:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*write_certificate(tmp_path, name))
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificate.pem"))
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)
        threading.Thread(target=answer, args=(listener, context)).start()
        return int(listener.getsockname()[1])

    yield serve
    for each in listeners:
        each.close()


def answer(listener: socket.socket, context: ssl.SSLContext) -> None:
    connection, _ = listener.accept()
    try:
        with context.wrap_socket(connection, server_side=True) as secure:
            secure.recv(10_000)
            secure.sendall(b"HTTP/1.1 204 Fine\r\n\r\n")
    except (ssl.SSLError, OSError):
        connection.close()


def write_certificate(folder: Path, name: str) -> tuple[Path, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    called = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    builder = x509.CertificateBuilder(called, called, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - dt.timedelta(1)).not_valid_after(now + dt.timedelta(1))
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    paths = folder / "certificate.pem", folder / "key.pem"
    paths[0].write_bytes(builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    paths[1].write_bytes(key.private_bytes(encoding, form, plain))
    return paths


@pytest.mark.parametrize(("certified", "code"), [("named.example.org", 204), ("other.example.org", None)])
def test_the_certificate_is_that_of_the_name(
    encrypted: Callable[[str], int], monkeypatch: pytest.MonkeyPatch, settings: Any, certified: str, code: int | None
) -> None:
    settings.WEBHOOK_PRIVATE = True
    port = encrypted(certified)
    resolve_to(monkeypatch, "127.0.0.1")
    found = post(f"https://named.example.org:{port}/", {"Content-Length": "2"}, b"{}")
    assert found.code == code, found.words
    assert ("certificate" in found.words) == (code is None)


def test_an_encrypted_address_without_encryption_is_no_answer(settings: Any, receiver_port: int) -> None:
    settings.WEBHOOK_PRIVATE = True
    assert post(f"https://127.0.0.1:{receiver_port}/", {}, b"").code is None


@pytest.fixture
def receiver_port() -> Iterator[int]:
    with receiving() as found:
        assert isinstance(found, Receiver)
        yield found.port
