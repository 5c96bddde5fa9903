"""`manage.py up` as a process of its own, with its own state folder and port."""

from __future__ import annotations

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PATIENCE = 60.0


class Up:
    """A running `manage.py up`, and what it has said so far."""

    def __init__(self, state: Path, port: int, *options: str, **environment: str) -> None:
        self.state = state
        self.port = port
        self.said: list[str] = []
        command = [sys.executable, "manage.py", "up", "--port", str(port), *options]
        self.process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, "MAIA_STATE": str(state), **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.listener = threading.Thread(target=self.listen)
        self.listener.start()

    def listen(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            self.said.extend(lines)

    @property
    def text(self) -> str:
        return "".join(self.said)

    def hear(self, pattern: str) -> re.Match[str]:
        """Wait until it has said something that matches."""
        until(lambda: re.search(pattern, self.text) or self.process.poll() is not None, pattern)
        found = re.search(pattern, self.text)
        assert found, self.text
        return found

    def link(self) -> str:
        return self.hear(r"http://127\.0\.0\.1:\d+(/enter/\S+/)").group(1)

    def end(self, number: signal.Signals = signal.SIGINT) -> int:
        self.process.send_signal(number)
        status = self.process.wait(PATIENCE)
        self.listener.join(PATIENCE)
        return status


@contextmanager
def running(state: Path, *options: str, **environment: str) -> Iterator[Up]:
    up = Up(state, free_port(), *options, **environment)
    try:
        yield up
    finally:
        if up.process.poll() is None:
            up.end(signal.SIGTERM)
        up.listener.join(PATIENCE)


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """One installation that is up, for the tests that leave it so."""
    with running(tmp_path_factory.mktemp("state"), "--no-example") as one:
        one.hear("Ctrl.C stops everything")
        yield one


def until(holds: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, f"waited in vain for: {what}"
        time.sleep(0.05)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def family(ancestor: int) -> dict[int, str]:
    """Every live process that descends from this one, itself included: id -> command line."""
    parents = {process: parent for process in every_process() if (parent := parent_of(process)) is not None}
    found = {ancestor} & parents.keys()
    while more := {process for process, parent in parents.items() if parent in found} - found:
        found |= more
    return {process: Path(f"/proc/{process}/cmdline").read_text().replace("\0", " ") for process in found}


def every_process() -> list[int]:
    return [int(folder.name) for folder in Path("/proc").glob("[0-9]*")]


def parent_of(process: int) -> int | None:
    """None if it has ended."""
    try:
        state, parent = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[:2]
    except OSError:
        return None
    return None if state == "Z" else int(parent)


def alive(processes: Iterable[int]) -> set[int]:
    return {process for process in processes if parent_of(process) is not None}


def the(word: str, up: Up) -> int:
    """The process of this installation whose command line holds the word."""
    return next(process for process, command in family(up.process.pid).items() if word in command)


def get(port: int, path: str, cookie: str = "") -> tuple[int, http.client.HTTPMessage]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", path, headers={"Cookie": cookie} if cookie else {})
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status, answer.headers


def test_it_prints_a_link_that_signs_in_once(up: Up) -> None:
    status, headers = get(up.port, up.link())
    cookie = "; ".join(cookie.partition(";")[0] for cookie in headers.get_all("Set-Cookie", []))
    assert (status, headers["Location"]) == (302, "/runs/")
    assert get(up.port, "/runs/", cookie)[0] == 200
    assert "sessionid" not in str(get(up.port, up.link())[1].get_all("Set-Cookie"))


def test_it_listens_on_loopback_alone_and_redis_on_no_port(up: Up) -> None:
    listening = Path("/proc/net/tcp").read_text()
    assert f"0100007F:{up.port:04X}" in listening
    assert f"00000000:{up.port:04X}" not in listening
    redis = the("redis-server", up)
    assert not [link for link in sockets_of(redis) if link in listening]


def sockets_of(process: int) -> list[str]:
    """Inode numbers of the process's sockets, as /proc/net/tcp writes them."""
    links = [str(path.readlink()) for path in Path(f"/proc/{process}/fd").iterdir()]
    return [f" {link[8:-1]} " for link in links if link.startswith("socket:")]


def test_a_killed_worker_is_started_again_and_the_sentence_says_why(up: Up) -> None:
    before = the(" worker ", up)
    os.kill(before, signal.SIGKILL)
    up.hear(r"worker ended by SIGKILL after \d+ s and is started again in 1 s\.")
    until(lambda: [pid for pid, command in family(up.process.pid).items() if " worker " in command], "a new worker")


def test_a_second_one_on_the_same_state_folder_is_told_who_holds_it(up: Up) -> None:
    second = Up(up.state, free_port())
    assert second.process.wait(PATIENCE) == 1
    second.listener.join()
    assert f"process {up.process.pid} runs on it already" in second.text
    assert "MAIA_STATE=" in second.text


def test_an_occupied_port_is_one_sentence_with_the_remedy(up: Up, tmp_path: Path) -> None:
    second = Up(tmp_path, up.port)
    assert second.process.wait(PATIENCE) == 1
    second.listener.join()
    assert len(second.said) == 1
    assert f"Port {up.port} cannot be had" in second.text
    assert f"make run PORT={up.port + 1}" in second.text


def test_ctrl_c_stops_everything_and_leaves_no_process(tmp_path: Path) -> None:
    with running(tmp_path) as up:
        up.link()
        processes = family(up.process.pid)
        assert len(processes) >= 5
        assert up.end(signal.SIGINT) == 0
        assert up.said[-1].endswith("Stopped.\n")
        assert not alive(processes)
        assert "Traceback" not in up.text


def test_killed_outright_it_leaves_no_process_either(tmp_path: Path) -> None:
    with running(tmp_path, "--no-example") as up:
        up.link()
        processes = family(up.process.pid)
        assert len(processes) >= 5
        up.end(signal.SIGKILL)
        until(lambda: not alive(processes), "no process")


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("MAIA_WORKER_THREADS", "many", "MAIA_WORKER_THREADS='many' is not a number"),
        ("MAIA_DATABASE_URL", "mysql://there", "MAIA_DATABASE_URL='mysql://there' starts with neither"),
        ("MAIA_HTTPS", "perhaps", "MAIA_HTTPS='perhaps' is neither yes nor no"),
        ("MAIA_LOG_LEVEL", "loud", "MAIA_LOG_LEVEL='LOUD' is none of"),
        ("MAIA_STATE", "/proc/nowhere", "MAIA_STATE=/proc/nowhere: the state folder cannot be used"),
    ],
)
def test_a_wrong_setting_stops_the_start_with_a_sentence_that_names_it(
    tmp_path: Path, name: str, value: str, sentence: str
) -> None:
    environment = {**os.environ, "MAIA_STATE": str(tmp_path), name: value}
    started = subprocess.run(
        [sys.executable, "manage.py", "up"], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=PATIENCE
    )
    assert started.returncode == 1
    assert sentence in started.stderr
    assert "Traceback" not in started.stderr
