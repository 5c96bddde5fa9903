"""Drop a child's privileges before the first line of its program: the layers of the sandbox.

Each layer is tried and its outcome reported. `refusal` decides whether a program may run without one. Called by
`zygote` in each child, and by `layers` in a process that exists for nothing else. Uses the standard library only.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import resource
import signal
import site
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import cache, partial
from itertools import takewhile
from pathlib import Path
from typing import Literal

from workers.sandbox import kernel, landlock, namespaces, seccomp

FILE_BYTES = 64 << 20
DESCRIPTORS = 64
PENDING_SIGNALS = 64
PROCESSES = 128
"""Maximum threads and processes in a zygote's own user namespace: twice what `watch` lets a program have."""
NICENESS = 5
"""Niceness: a program gives way to the worker and the zygote."""
RESERVE_BYTES = 64 << 20
"""Memory reserved for reporting that memory ran out."""

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38

_ROOT = Path(__file__).resolve().parents[2]
_TRIAL = f"import sys; sys.path.insert(0, {str(_ROOT)!r}); from workers.sandbox import jail; jail.trial()"
_TRIAL_SECONDS = 30

_SYSTEM = (
    *("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/nix/store"),
    *("/usr/share/zoneinfo", "/usr/share/fonts"),
    *("/etc/ld.so.cache", "/etc/localtime", "/dev/zero", "/dev/random", "/dev/urandom"),
)
"""Files needed by shared libraries, times and texts in images."""


@dataclass(frozen=True)
class ChildLimits:
    """What one child may use."""

    scratch: str
    """The one folder it may write to."""
    memory_bytes: int
    cpu_seconds: int
    override: bool = False
    """Set by the operator to run programs although a required layer is missing."""
    least: bool = False
    """Use no more than the oldest supported kernel offers."""


@dataclass(frozen=True)
class SandboxLayer:
    """One wall of the sandbox. `detail` says what is in place, or why nothing is; `remedy`, what to do about it."""

    name: str
    required: bool
    state: Literal["on", "missing"]
    detail: str
    remedy: str = ""


# --- the report ---------------------------------------------------------------------------------------


@cache
def layers() -> tuple[SandboxLayer, ...]:
    """Return the state of each layer on this machine, found by a process that jails itself; runs once, about 50 ms."""
    # In another process, since layers cannot be undone and would jail the worker.
    try:
        done = subprocess.run(  # noqa: S603 our own interpreter and our own words
            [sys.executable, "-I", "-c", _TRIAL], env={}, capture_output=True, text=True, timeout=_TRIAL_SECONDS
        )
        return tuple(SandboxLayer(**fields) for fields in json.loads(done.stdout))
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        reason = f"the layers cannot be tried out: {error}"
        return (SandboxLayer("trial", True, "missing", reason, "See the worker's log."),)


def summary(found: Iterable[SandboxLayer]) -> str:
    """Summarize for the record of a run: "5 of 5 layers", or which are missing."""
    found = list(found)
    missing = [layer.name for layer in found if layer.state == "missing"]
    words = f"{len(found) - len(missing)} of {len(found)} layers"
    return f"{words}, without {' and '.join(missing)}" if missing else words


def refusal(found: Iterable[SandboxLayer]) -> str:
    """Say why no program may run here, with the remedy; empty if every required layer is on."""
    missing = [layer for layer in found if layer.required and layer.state == "missing"]
    words = [f"its layer {layer.name} is missing: {layer.detail}. {layer.remedy}" for layer in missing]
    if words:
        words.append("To run programs all the same, with what is left, set MAIA_SANDBOX_OVERRIDE=yes.")
    return " ".join(words)


def trial() -> None:
    """Jail this process for good and print the outcome, as JSON."""
    reason = namespaces.refusal()
    found = restrict(ChildLimits(scratch="", memory_bytes=1 << 30, cpu_seconds=60), os.getppid(), namespaced=not reason)
    print(json.dumps([asdict(layer) for layer in found]))


# --- the layers ---------------------------------------------------------------------------------------


def restrict(limits: ChildLimits, parent: int, *, namespaced: bool) -> list[SandboxLayer]:
    """Apply every layer, in this order; none can be undone. The process dies with `parent`."""
    # The kernel kills the child if its zygote dies, also when that is killed without warning.
    kernel.prctl("PR_SET_PDEATHSIG", _PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before the line above: this process would never be killed
        os._exit(0)
    with contextlib.suppress(OSError):
        # If the whole machine runs out of memory, the kernel should kill this process, not the worker
        Path("/proc/self/oom_score_adj").write_text("1000")
    wall = SandboxLayer("namespaces", False, "on", "user, network, process and ipc namespaces")
    if not namespaced:
        reason = "the kernel or the container allows no user namespaces"
        remedy = "Not needed. To have it, let ordinary users make user namespaces."
        wall = SandboxLayer("namespaces", False, "missing", reason, remedy)
    # The order matters: seccomp comes last, since the other layers need calls that it refuses.
    return [
        wall,
        _close_layer("no_new_privs", "Use Linux 3.5 or newer.", _drop_privileges),
        _close_layer("rlimits", "Let the worker's user lower its limits.", partial(_limit, limits, namespaced)),
        _close_layer(
            "landlock",
            "Use Linux 5.13 or newer, booted with landlock among its security modules (lsm=landlock,…); "
            "in a container, a seccomp profile that allows landlock_restrict_self, as Docker's own does.",
            partial(_close_files, limits),
        ),
        _close_layer("seccomp", "Use a kernel with CONFIG_SECCOMP_FILTER, on x86-64 or 64-bit ARM.", _filter),
    ]


def release_reserve() -> None:
    """Give the reserve to a program that has run out of memory, so that its end can be reported."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def adopt_orphans() -> None:
    """Make orphans of a program children of the caller, the zygote, which kills them."""
    kernel.prctl("PR_SET_CHILD_SUBREAPER", _PR_SET_CHILD_SUBREAPER, 1)


@cache
def readable() -> tuple[Path, ...]:
    """List what every program may read: the standard library, installed packages, shared libraries."""
    paths = sysconfig.get_paths()
    roots = {sys.base_prefix, sys.base_exec_prefix, sys.prefix, sys.exec_prefix}
    folders = [Path(root, name) for root in sorted(roots) for name in ("lib", "lib64")]
    folders += [Path(paths[name]) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    folders += [Path(name) for name in (*site.getsitepackages(), *_SYSTEM)]
    found = dict.fromkeys(folder.resolve() for folder in folders if folder.exists())
    # A folder inside another one needs no rule.
    return tuple(folder for folder in found if not found.keys() & set(folder.parents))


def _close_layer(name: str, remedy: str, apply: Callable[[], str]) -> SandboxLayer:
    try:
        return SandboxLayer(name, True, "on", apply())
    except (OSError, ValueError, NotImplementedError) as error:
        return SandboxLayer(name, True, "missing", str(error), remedy)


def _drop_privileges() -> str:
    # Without this the kernel lets only root apply Landlock and seccomp, and a set-uid file could regain privileges.
    kernel.prctl("PR_SET_NO_NEW_PRIVS", _PR_SET_NO_NEW_PRIVS, 1)
    kernel.drop_capabilities()
    return "no privileges and no way to gain any"


def _limit(limits: ChildLimits, namespaced: bool) -> str:
    os.nice(NICENESS)
    # Counted from the present size of this process: the fork shares the zygote's memory, which is not the program's.
    space = (int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()) + limits.memory_bytes
    counted = namespaced and _counts_by_namespace()
    for kind, soft, hard in (
        # An older kernel counts all processes of the user, so other programs would use up this one's threads.
        *([(resource.RLIMIT_NPROC, PROCESSES, PROCESSES)] if counted else []),
        (resource.RLIMIT_AS, space, space + RESERVE_BYTES),
        (resource.RLIMIT_CPU, limits.cpu_seconds, limits.cpu_seconds + 1),
        (resource.RLIMIT_FSIZE, FILE_BYTES, FILE_BYTES),
        (resource.RLIMIT_NOFILE, DESCRIPTORS, DESCRIPTORS),
        (resource.RLIMIT_SIGPENDING, PENDING_SIGNALS, PENDING_SIGNALS),
        (resource.RLIMIT_MEMLOCK, 0, 0),
        (resource.RLIMIT_CORE, 1, 1),  # 0 would still let a core be piped to a program of the system
    ):
        # A limit that is already lower cannot be raised by an ordinary user.
        most = resource.getrlimit(kind)[1]
        bounded = hard if most == resource.RLIM_INFINITY else min(hard, most)
        resource.setrlimit(kind, (min(soft, bounded), bounded))
    # The kernel never refuses root a process: there `watch` and the container's own limit bound a program.
    threads = ", threads" if counted and os.geteuid() else ""
    return f"memory, processor time, file size, descriptors, pending signals{threads}"


def _counts_by_namespace() -> bool:
    """True if the kernel counts processes for each user namespace, as Linux does since 5.14."""
    major, minor = platform.release().split(".")[:2]
    return (int(major), int("".join(takewhile(str.isdigit, minor)))) >= (5, 14)


def _close_files(limits: ChildLimits) -> str:
    version = 1 if limits.least else landlock.version()
    rules = [(path, landlock.READ) for path in readable()]
    # Programs and libraries discard output there.
    rules.append((Path("/dev/null"), landlock.WRITE))
    if limits.scratch:
        rules.append((Path(limits.scratch), landlock.WRITE))
    landlock.restrict(rules, version)
    return f"version {version}"


def _filter() -> str:
    seccomp.restrict()
    return "an allow-list of system calls"
