"""Children of the supervisor: kept alive, heard, and ended with all they started."""

from __future__ import annotations

import asyncio
import io
import os
import sys
from pathlib import Path

import psutil
import pytest

from experiments.management.supervisor import parts
from experiments.management.supervisor.console import SupervisorConsole
from experiments.management.supervisor.processes import Child, Keeper, lines


def child(program: str, **options: float | bool) -> Child:
    return Child("part", [sys.executable, "-c", program], **options)  # type: ignore[arg-type]


class Stage:
    """A keeper, what it wrote, and whether it gave up."""

    def __init__(self, child: Child) -> None:
        self.stream = io.StringIO()
        self.gave_up = asyncio.Event()
        self.keeper = Keeper(child, SupervisorConsole(self.stream), self.gave_up.set)

    @property
    def said(self) -> list[str]:
        return self.stream.getvalue().splitlines()

    async def hear(self, word: str) -> None:
        while not any(word in line for line in self.said):
            await asyncio.sleep(0.01)


async def test_it_passes_lines_on_as_they_come_and_says_whose_they_are() -> None:
    stage = Stage(child("import time; print('first', flush=True); time.sleep(60)"))
    stage.keeper.start()
    await stage.hear("first")
    assert stage.said == ["  part | first"]
    await stage.keeper.stop()


async def test_a_child_that_always_dies_is_started_five_times_and_then_given_up() -> None:
    stage = Stage(child("print('the reason'); raise SystemExit(3)", wait=0.001))
    stage.keeper.start()
    await stage.gave_up.wait()
    await stage.keeper.stop()
    assert stage.said.count("  part | the reason") == 5
    waits = [line.partition("again in ")[2].split()[0] for line in stage.said if "again in" in line]
    assert waits == ["0.001", "0.002", "0.004", "0.008"]
    assert "ended with status 3 within seconds of its start, 5 times in a row" in stage.said[-1]


async def test_a_quiet_child_is_heard_only_when_it_dies() -> None:
    stage = Stage(child("print('the reason')", wait=30.0, quiet=True))
    stage.keeper.start()
    await stage.hear("started again")
    assert stage.said[0] == "  part | the reason"
    await stage.keeper.stop()


async def test_a_child_that_will_not_end_is_killed_with_what_it_started() -> None:
    stubborn = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
    )
    program = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {stubborn!r}])\n{stubborn}"
    stage = Stage(child(program, grace=0.1))
    stage.keeper.start()
    while len(stage.said) < 2:
        await asyncio.sleep(0.01)
    assert stage.keeper.process
    group = group_of(stage.keeper.process.pid)
    assert len(group) == 2
    await stage.keeper.stop()
    assert "part did not end within 0 s and is killed." in stage.said[-1]
    assert psutil.wait_procs(group, timeout=60)[1] == []


async def test_a_child_that_ends_when_asked_leaves_nobody_in_its_group() -> None:
    program = (
        "import subprocess; subprocess.Popen(['sleep', '60']); print('up', flush=True); import time; time.sleep(60)"
    )
    stage = Stage(child(program))
    stage.keeper.start()
    await stage.hear("up")
    assert stage.keeper.process
    group = group_of(stage.keeper.process.pid)
    assert len(group) == 2
    await stage.keeper.stop()
    assert psutil.wait_procs(group, timeout=60)[1] == []


async def test_a_dead_child_is_started_again_even_if_something_it_started_holds_its_output() -> None:
    program = "import subprocess; subprocess.Popen(['sleep', '5'], start_new_session=True)"
    stage = Stage(child(program, wait=30.0))
    stage.keeper.start()
    await stage.hear("started again")
    await stage.keeper.stop()


async def test_a_line_of_any_length_comes_through_in_pieces() -> None:
    stream = asyncio.StreamReader()
    stream.feed_data(b"a" * 25 + b"\nshort\nlast \xff")
    stream.feed_eof()
    assert [line async for line in lines(stream, longest=10)] == ["a" * 25, "short", "last \ufffd"]


async def test_a_line_without_an_end_does_not_fill_the_memory() -> None:
    stream = asyncio.StreamReader()
    stream.feed_data(b"a" * 25)
    stream.feed_eof()
    assert [line async for line in lines(stream, longest=10)] == ["a" * 10, "a" * 10, "a" * 5]


def group_of(leader: int) -> list[psutil.Process]:
    """Every live process of this process group."""
    top = psutil.Process(leader)
    return [each for each in [top, *top.children(recursive=True)] if os.getpgid(each.pid) == leader]


@pytest.mark.parametrize(("part", "holds"), [("web", False), ("beat", False), ("worker", True)])
def test_the_worker_alone_is_given_the_key_of_a_provider(
    part: str, holds: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"OPENAI_API_KEY", "OPENAI_API_KEY_FILE", "OPENAI_BASE_URL", "OTEL_EXPORTER_OTLP_HEADERS"}
    for name in given:
        monkeypatch.setenv(name, "for the worker")
    made = {"web": parts.web(8000), "beat": parts.make_scheduler(Path("state")), "worker": parts.workers(1, 4)[0]}[part]
    environment = made.environment()
    assert given & environment.keys() == (given if holds else set())
    assert environment["PATH"] == os.environ["PATH"]


@pytest.mark.parametrize(("part", "holds"), [("web", True), ("beat", False), ("worker", False)])
def test_the_web_alone_is_given_the_secret_of_single_sign_on(
    part: str, holds: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAIA_OIDC_CLIENT_SECRET", "for the web")
    monkeypatch.setenv("MAIA_OIDC_CLIENT_SECRET_FILE", "/for/the/web")
    made = {"web": parts.web(8000), "beat": parts.make_scheduler(Path("state")), "worker": parts.workers(1, 4)[0]}[part]
    given = {name for name in made.environment() if name.startswith("MAIA_OIDC_CLIENT_SECRET")}
    assert given == ({"MAIA_OIDC_CLIENT_SECRET", "MAIA_OIDC_CLIENT_SECRET_FILE"} if holds else set())


def test_each_worker_has_a_name_and_a_share_of_the_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    (alone,) = parts.workers(0, 2)
    assert (alone.name, alone.own) == ("worker", ())
    two = parts.workers(2, 2)
    assert [each.name for each in two] == ["worker-1", "worker-2"]
    assert ["worker-2@%h" in each.command for each in two] == [False, True]
    cores = str(max(1, (os.cpu_count() or 1) // 2))
    assert [each.environment()["OMP_NUM_THREADS"] for each in two] == [cores, cores]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5")
    assert [each.environment()["CUDA_VISIBLE_DEVICES"] for each in parts.workers(0, 2)] == ["3", "5"]
    assert [each.environment()["CUDA_VISIBLE_DEVICES"] for each in parts.workers(3, 2)] == ["3", "5", "3"]
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    for name in ("0000:17:00.0", "0000:65:00.0"):
        (tmp_path / name).mkdir()
    assert parts.list_gpus(tmp_path) == ["0", "1"]
    assert parts.list_gpus(tmp_path / "none") == []


async def test_a_child_that_is_not_trusted_sees_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    program = "import os, time; print('key', os.environ.get('OPENAI_API_KEY'), flush=True); time.sleep(60)"
    for trusted, seen in ((False, "key None"), (True, "key sk-secret")):
        stage = Stage(child(program, trusted=trusted))
        stage.keeper.start()
        await stage.hear(seen)
        await stage.keeper.stop()
