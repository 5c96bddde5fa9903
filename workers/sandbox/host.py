"""The worker's side of the sandbox: run a program in a child and return its result.

Implements `protocols.Sandbox`. `session` exchanges messages between worker and child, `launcher` manages the child's
life.
"""

from __future__ import annotations

import math
import signal
from collections.abc import Callable, Mapping
from typing import Any

from workers.protocols import Bounds, ExperimentResult, Json
from workers.record.experiments import ExperimentStatus
from workers.sandbox import wire
from workers.sandbox.launcher import ChildProcess, Launcher
from workers.sandbox.program import PROGRAM_CHARS
from workers.sandbox.session import HostSession, StopError

_ERROR_CHARS = 20_000
_EXIT_SECONDS = 0.5


class ZygoteSandbox:
    """Runs each program in its own child, forked from a clean interpreter. Threads may run programs at the same time.

    Interpreters stop with `close` or the end of the `with` block. If a required layer of the jail is missing no program
    runs, unless the operator sets `override`; `least` uses no more than the oldest supported kernel offers.
    """

    def __init__(self, *, override: bool = False, least: bool = False) -> None:
        self._launcher = Launcher(override, least)

    def __enter__(self) -> ZygoteSandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the interpreters and every running program; nothing is left behind."""
        self._launcher.close()

    def run(
        self,
        program: str,
        calls: Mapping[str, Callable[..., Any]],
        facts: Mapping[str, Json],
        *,
        bounds: Bounds,
        state: bytes = b"",
        cancelled: Callable[[], bool] = lambda: False,
    ) -> ExperimentResult:
        """See `protocols.Sandbox`. The fact "experiment.seed", an integer, seeds `random` and `numpy.random`.

        Arguments and answers are plain values, images, and lists, tuples and dicts of them; a proxy passed as an
        argument, as in `tools.dataset_exemplars(system)`, arrives as its name, "system". A call whose arguments do not
        fit the function's signature is a ToolError in the program.
        """
        if refusal := _refusal(program):
            return ExperimentResult("program_error", error=refusal, state=state)
        cpu_seconds = math.ceil(bounds.seconds) * 2 + 5  # the backstop; the worker's clock is the bound
        with self._launcher.child(bounds.memory_bytes, cpu_seconds) as child:
            exchange = HostSession(child, calls, bounds, cancelled)
            sizes = (exchange.output_bytes, bounds.frame_bytes, bounds.pixels)
            start = wire.StartProgram(program, list(calls), dict(facts), state, *sizes)
            try:
                # Each field of the guest's report is hostile, since the program could have written it.
                end = exchange.run(start)
                error = end.error[:_ERROR_CHARS]
                if end.status == "memory":
                    error = f"{_memory_words(exchange.bounds)}\n{error}".strip()
                return _make_result(exchange, end.status, error, end.state or state)
            except StopError as ended:
                stop = ended
            except EOFError:
                stop = _verdict(child, bounds)
            return _make_result(exchange, stop.status, stop.reason, state)


def _refusal(program: str) -> str:
    """Say why the text cannot even be sent; empty if it can."""
    if len(program) > PROGRAM_CHARS:
        return f"SyntaxError: the program has {len(program)} characters, at most {PROGRAM_CHARS} are run"
    try:
        program.encode()
    except UnicodeEncodeError as error:
        return f"SyntaxError: the program is not valid text: {error}"
    return ""


def _make_result(exchange: HostSession, status: ExperimentStatus, error: str, state: bytes) -> ExperimentResult:
    output = exchange.output.decode("utf-8", "replace")
    most = exchange.bounds.output_chars
    return ExperimentResult(
        status=status,
        output=output[:most],
        output_truncated=len(output) > most,
        error=error,
        seconds=exchange.own_seconds(),
        tool_seconds=exchange.tool_seconds,
        calls=tuple(exchange.made),
        state=state,
    )


def _verdict(child: ChildProcess, bounds: Bounds) -> StopError:
    """Say why a child is gone that did not report its end."""
    # The channel may close a moment before the zygote reports the end.
    ended = child.wait(_EXIT_SECONDS)
    if ended is None:
        return StopError("killed", "The program closed its connection to the tools.")
    if ended.excess:
        return StopError("killed", f"The program {ended.excess}. Make it do with less.")
    number = ended.wait_status & 0x7F
    # Reached by threads that compute during a call, whose time the worker's clock does not count.
    if number == signal.SIGXCPU:
        return StopError("timeout", "The program used more processor time than it may. Make it do less at once.")
    # The kernel's out-of-memory killer sends this signal, so a program that was large is taken for its victim.
    if number == signal.SIGKILL and ended.peak_bytes > bounds.memory_bytes // 2:
        return StopError("memory", _memory_words(bounds))
    if number == signal.SIGSYS:
        return StopError("killed", "The program made a system call of another kind of machine.")
    if number:
        name = signal.Signals(number).name if number in set(signal.Signals) else str(number)
        return StopError("killed", f"The program's process was ended by signal {name} before the program was done.")
    code = ended.wait_status >> 8
    return StopError("killed", f"The program ended its own process (exit code {code}) before it was done.")


def _memory_words(bounds: Bounds) -> str:
    return (
        f"The program needed more than {bounds.memory_bytes >> 20} MiB of memory. Keep fewer or smaller values at once."
    )
