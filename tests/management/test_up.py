"""`manage.py up` as a process of its own, with its own state folder and port."""

from __future__ import annotations

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests import ROOT
from tests.support.installation import Installation, installed

PATIENCE = 60.0


@pytest.fixture(scope="module")
def up(quick_state: Path) -> Iterator[Installation]:
    """One installation that is up, for the tests that leave it so."""
    with installed(quick_state, "--no-example") as one:
        one.link()
        yield one


def hear(up: Installation, pattern: str) -> None:
    up.until(lambda: re.search(pattern, up.said()), f"it did not say {pattern}")


def family(up: Installation) -> list[psutil.Process]:
    """The supervisor and all that descends from it."""
    top = psutil.Process(up.process.pid)
    return [top, *top.children(recursive=True)]


def alive(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Those that have not ended; where nobody collects orphans, an ended one stays a zombie."""
    return [each for each in processes if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]


def end(up: Installation, number: signal.Signals) -> int:
    up.process.send_signal(number)
    status = up.process.wait(PATIENCE)
    up.reader.join(PATIENCE)
    return status


def start_in_vain(state: Path, *options: str) -> str:
    """What `up` says when it cannot start; one sentence, no traceback."""
    environment = {**os.environ, "MAIA_STATE": str(state)}
    command = [sys.executable, "manage.py", "up", *options]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    return done.stderr


def get(port: int, path: str, cookie: str = "") -> tuple[int, http.client.HTTPMessage]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", path, headers={"Cookie": cookie} if cookie else {})
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status, answer.headers


def cookies(headers: http.client.HTTPMessage) -> str:
    return "; ".join(cookie.partition(";")[0] for cookie in headers.get_all("Set-Cookie", []))


def press(port: int, path: str, cookie: str) -> tuple[int, http.client.HTTPMessage]:
    """Send the form of a page that has no field but its button."""
    token = cookie.partition("csrftoken=")[2].partition(";")[0]
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("POST", path, headers={"Cookie": cookie, "X-CSRFToken": token})
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status, answer.headers


def test_it_prints_a_link_that_signs_in_once(up: Installation) -> None:
    link = up.link().removeprefix(up.url)
    status, headers = get(up.port, link)
    assert (status, "sessionid" in str(headers)) == (200, False)
    status, headers = press(up.port, link, cookies(headers))
    assert (status, headers["Location"]) == (302, "/")
    assert get(up.port, "/runs/", cookies(headers))[0] == 200
    assert get(up.port, link)[0] == 410


def test_it_listens_on_loopback_alone_and_redis_on_no_port(up: Installation) -> None:
    ports = {
        (each.laddr.ip, each.laddr.port)
        for process in family(up)
        for each in process.net_connections("inet")
        if each.status == psutil.CONN_LISTEN
    }
    assert ports == {("127.0.0.1", up.port)}
    assert up.child("redis-server").net_connections("inet") == []


def test_a_killed_worker_is_started_again_and_the_sentence_says_why(up: Installation) -> None:
    up.child(" worker ").kill()
    hear(up, r"worker ended by SIGKILL after \d+ s and is started again in 1 s\.")
    assert up.child(" worker ").is_running()


def test_a_second_one_on_the_same_state_folder_is_told_who_holds_it(up: Installation) -> None:
    sentence = start_in_vain(up.state, "--port", str(up.port + 1))
    assert f"process {up.process.pid} runs on it already" in sentence
    assert "MAIA_STATE=" in sentence


def test_an_occupied_port_is_one_sentence_with_the_remedy(up: Installation, tmp_path: Path) -> None:
    sentence = start_in_vain(tmp_path, "--port", str(up.port))
    assert f"Port {up.port} cannot be had" in sentence
    assert f"make run PORT={up.port + 1}" in sentence


def test_killed_outright_or_by_ctrl_c_it_leaves_no_process_and_the_next_start_tidies_up(quick_state_copy: Path) -> None:
    state = quick_state_copy
    with installed(state) as up:
        up.link()
        processes, folder = family(up), (state / "redis").readlink()
        assert len(processes) >= 5
        end(up, signal.SIGKILL)
        deadline = time.monotonic() + PATIENCE
        while alive(processes) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert alive(processes) == []
    with installed(state) as up:
        up.link()
        assert up.rows("SELECT COUNT(*) FROM experiments_run") == [(1,)], "only the first start asks an example"
        assert up.rows("SELECT username, is_superuser FROM auth_user") == [("owner", 1)]
        processes = family(up)
        assert len(processes) >= 5
        assert end(up, signal.SIGINT) == 0
        assert up.lines[-1].endswith("Stopped.")
        assert alive(processes) == []
        assert "Traceback" not in up.said()
    assert not folder.exists()
    assert not (state / "redis").is_symlink()


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("MAIA_WORKER_THREADS", "many", "MAIA_WORKER_THREADS='many' is not a number"),
        ("MAIA_DATABASE_URL", "mysql://there", "MAIA_DATABASE_URL starts with 'mysql', and not with sqlite:///"),
        ("MAIA_HOSTS", "https://there", "MAIA_HOSTS has 'https://there', which is no name of a host"),
        ("MAIA_HTTPS", "perhaps", "MAIA_HTTPS='perhaps' is neither yes nor no"),
        ("MAIA_LOG_LEVEL", "loud", "MAIA_LOG_LEVEL='loud' is none of"),
        *(
            ("MAIA_S3_ENDPOINT", wrong, f"MAIA_S3_ENDPOINT={wrong!r} is no address of a store: write http://host:port")
            for wrong in (
                "localhost:9000",
                "http://",
                "http://host:x",
                "http://a_b",
                "ftp://host",
                "http://bad host",
                "http://h..h",
            )
        ),
        ("MAIA_STATE", "/proc/nowhere", "MAIA_STATE=/proc/nowhere: the state folder cannot be used"),
    ],
)
def test_a_wrong_setting_stops_the_start_with_a_sentence_that_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, sentence: str
) -> None:
    monkeypatch.setenv("MAIA_STORAGE", "s3://bucket")
    monkeypatch.setenv(name, value)
    state = Path(value) if name == "MAIA_STATE" else tmp_path
    assert sentence in start_in_vain(state)


@pytest.mark.parametrize("harm", ["cut", "overwritten"])
def test_a_damaged_database_stops_the_start_with_the_remedy(migrated: Path, tmp_path: Path, harm: str) -> None:
    whole = (migrated / "maia.sqlite3").read_bytes()
    harmed = whole[: len(whole) // 2] if harm == "cut" else b"x" * 100 + whole[100:]
    (tmp_path / "maia.sqlite3").write_bytes(harmed)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    sentence = start_in_vain(tmp_path, "--port", str(port))
    assert sentence.startswith("CommandError: The database cannot be used: ")
    assert "bring a backup back: manage.py restore FILE" in sentence
