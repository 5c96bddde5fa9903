"""Keep one child process alive: relay its lines, restart it when it dies, and stop it with everything it started.

No child outlives the supervisor, however that ends, because the kernel kills each with its parent. The child's own
children are in its process group, which is killed with it. Processes that leave the group are the child's
responsibility.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import time
from asyncio.subprocess import Process
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from experiments.management.supervisor.console import SupervisorConsole

SHORT_LIFE = 10.0
"""Seconds: a child that lived shorter than this failed at its start."""
SHORT_LIVES = 5
"""Number of short lives in a row after which it is given up."""

QUIET_PYTHON = {"PYTHONUNBUFFERED": "1", "PYTHONWARNINGS": "ignore"}
"""Lines are not buffered; warnings are for developers, and the tests turn them into errors."""

OF_PROVIDERS = "OPENAI_"
"""Prefixes of the provider's settings: its key, the file of its key, its address."""

OF_COLLECTORS = "OTEL_EXPORTER_OTLP_HEADERS"
"""Settings with the key of the collector of spans, or the name of its file."""

OF_SINGLE_SIGN_ON = "MAIA_OIDC_CLIENT_SECRET"
"""Settings with the secret of single sign-on, or the name of its file."""

PR_SET_PDEATHSIG = 1
# Loaded here: after a fork, the child must not load libraries.
LIBC = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Child:
    """A process to keep alive."""

    name: str
    command: Sequence[str]
    grace: float = 10.0
    """Seconds from the request to stop until it is killed."""
    wait: float = 1.0
    """Seconds before it is restarted; doubled for each short life in a row."""
    quiet: bool = False
    """Show its lines only if it dies."""
    trusted: bool = False
    """Whether it is given the keys of providers; other children get none."""
    opens: bool = False
    """Whether users sign in there: only it is given the secret of single sign-on."""
    own: tuple[tuple[str, str], ...] = ()
    """Variables that only this child gets, with their values."""

    def environment(self) -> dict[str, str]:
        """Return its environment: ours, without secrets that it does not need."""
        secrets = [(OF_PROVIDERS, self.trusted), (OF_COLLECTORS, self.trusted), (OF_SINGLE_SIGN_ON, self.opens)]
        withheld = tuple(start for start, given in secrets if not given)
        ours = {name: value for name, value in os.environ.items() if not name.startswith(withheld)}
        # Later ones win: a user's own PYTHONWARNINGS is kept.
        return QUIET_PYTHON | ours | dict(self.own)


class Keeper:
    """Keep one child alive from `start` to `stop`. `gave_up` is called when that fails."""

    def __init__(self, child: Child, console: SupervisorConsole, gave_up: Callable[[], None]) -> None:
        self.child = child
        self.console = console
        self.gave_up = gave_up
        self.process: Process | None = None
        self.stopping = asyncio.Event()
        self.last_lines: deque[str] = deque(maxlen=20)

    def start(self) -> None:
        self.task = asyncio.create_task(self.keep())

    async def stop(self) -> None:
        """Ask the child to end; kill it and all it started after its grace period."""
        self.stopping.set()
        self.ask_to_end()
        done, _ = await asyncio.wait([self.task], timeout=self.child.grace)
        if not done:
            self.console.say(f"{self.child.name} did not end within {self.child.grace:.0f} s and is killed.")
            self.kill()
        # After the kill the task ends by itself; awaiting it also raises what went wrong in it.
        await self.task

    def ask_to_end(self) -> None:
        if self.process and self.process.returncode is None:
            self.process.terminate()

    def kill(self) -> None:
        """Kill the child's whole process group, of which it is the leader."""
        if self.process:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)

    async def keep(self) -> None:
        """Run the child repeatedly until `stop` is called, or it dies too often."""
        # 1. Run it, until it ends or `stop` is called.
        short_lives = 0
        while not self.stopping.is_set():
            began = time.monotonic()
            status = await self.live()
            if self.stopping.is_set():
                break
            # 2. Say how it ended; a quiet child's lines are the only trace of why.
            for line in self.last_lines if self.child.quiet else ():
                self.console.say(line, self.child.name)
            how = f"with status {status}" if status >= 0 else f"by {signal.Signals(-status).name}"
            lived = time.monotonic() - began
            short_lives = short_lives + 1 if lived < SHORT_LIFE else 0
            # 3. Give up on one that never starts.
            if short_lives == SHORT_LIVES:
                self.console.say(
                    f"{self.child.name} ended {how} within seconds of its start, {SHORT_LIVES} times in a row, so "
                    "everything stops. Mend what its last lines above name, then start again."
                )
                self.gave_up()
                break
            # 4. Wait, longer each time, unless `stop` is called meanwhile.
            delay = self.child.wait * 2 ** max(short_lives - 1, 0)
            self.console.say(
                f"{self.child.name} ended {how} after {lived:.0f} s and is started again in {delay:.3g} s. "
                "If it says why, that stands in its last lines above."
            )
            with suppress(TimeoutError):
                await asyncio.wait_for(self.stopping.wait(), delay)

    async def live(self) -> int:
        """Run the child once. Returns its exit status, negative for a signal."""
        self.last_lines.clear()
        async with pipe() as (stream, end):
            self.process = await self.start_process(end)
            relay = asyncio.create_task(self.relay(stream))
            # `stop` may have been called while the process was starting.
            if self.stopping.is_set():
                self.ask_to_end()
            status = await self.process.wait()
            self.kill()  # what it left behind in its group
            await asyncio.wait([relay], timeout=1)  # longer only if something that left its group holds the pipe
        return status

    async def start_process(self, output: int) -> Process:
        parent = os.getpid()
        try:
            return await asyncio.create_subprocess_exec(
                *self.child.command,
                env=self.child.environment(),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # Ctrl+C is for the supervisor, which tells the child
                preexec_fn=lambda: _set_parent_death_signal(parent),
            )
        finally:
            # Our copy of the pipe's end: while it is open, reading would never end.
            os.close(output)

    async def relay(self, stream: asyncio.StreamReader) -> None:
        async for line in lines(stream):
            self.last_lines.append(line)
            if line.strip() and not self.child.quiet:
                self.console.say(line, self.child.name)


def _set_parent_death_signal(parent: int) -> None:
    """In the new child: have the kernel kill it when its parent ends, even by SIGKILL. Linux only."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before we could ask
        os._exit(1)


@asynccontextmanager
async def pipe() -> AsyncIterator[tuple[asyncio.StreamReader, int]]:
    """Yield a pipe: the stream to read, and the descriptor to write to."""
    # With asyncio's own pipe, waiting for a process would mean waiting for every process that holds its output.
    read_end, write_end = os.pipe()
    stream = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(stream)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, os.fdopen(read_end, "rb"))
    try:
        yield stream, write_end
    finally:
        transport.close()


async def lines(stream: asyncio.StreamReader, longest: int = 10_000) -> AsyncIterator[str]:
    """Yield lines of any length, as they come; one longer than `longest` bytes is split."""
    rest = b""
    while chunk := await stream.read(65_536):
        # The last part is an unfinished line, or empty.
        *whole, rest = (rest + chunk).split(b"\n")
        while len(rest) > longest:
            whole.append(rest[:longest])
            rest = rest[longest:]
        for line in whole:
            yield line.decode(errors="replace").rstrip("\r")
    if rest:
        yield rest.decode(errors="replace")
