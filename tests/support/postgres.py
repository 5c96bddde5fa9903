"""A PostgreSQL of one's own: a cluster in a folder under /tmp, on a socket and, where asked, a port of loopback."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import psutil
import psycopg
from psycopg import sql

_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
MISSING = "PostgreSQL is not installed: `apt-get install postgresql` (or your system's package) brings it."


def programs() -> Path | None:
    """The folder of PostgreSQL's programs, Debian's or the one on the PATH."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    on_path = shutil.which("initdb")
    return found[-1].parent if found else Path(on_path).parent if on_path else None


def unprivileged() -> dict[str, str]:
    """PostgreSQL refuses to run as root: then it runs as the user `nobody`."""
    return {"user": "nobody"} if os.geteuid() == 0 else {}


class Cluster:
    """Started and ended by whoever makes it; `home` holds its data and its socket. No password is asked for."""

    def __init__(self, port: int = 0) -> None:
        folder = programs()
        if folder is None:
            raise FileNotFoundError(MISSING)
        self.folder, self.port = folder, port
        self.home = Path(tempfile.mkdtemp(prefix="maia-pg-", dir="/tmp"))
        if who := unprivileged().get("user"):
            os.chown(self.home, pwd.getpwnam(who).pw_uid, -1)
        made = [f"{folder}/initdb", "-D", f"{self.home}/data", "-U", "maia", "--auth=trust", "--no-sync", "-E", "UTF8"]
        subprocess.run(made, check=True, capture_output=True, env=_ENVIRONMENT, cwd=self.home, **unprivileged())
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start, also after a kill, and wait until it answers."""
        listening = f"listen_addresses={'127.0.0.1' if self.port else ''}"
        port = ["-p", str(self.port)] if self.port else []
        self.process = subprocess.Popen(
            [f"{self.folder}/postgres", "-D", f"{self.home}/data", "-k", str(self.home), "-c", listening, *port, "-F"],
            env=_ENVIRONMENT,
            cwd=self.home,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            **unprivileged(),
        )
        until = time.monotonic() + 60
        while not self._answers():
            assert self.process.poll() is None, "PostgreSQL ended by itself"
            assert time.monotonic() < until, "PostgreSQL does not answer"
            time.sleep(0.05)

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.url("postgres"), connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True

    def create(self, name: str) -> str:
        """Make a database; its address."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        return self.url(name)

    def url(self, name: str) -> str:
        """The address of a database by the socket."""
        port = f":{self.port}" if self.port else ""
        return f"postgres://maia@{quote(str(self.home), safe='')}{port}/{name}"

    def signal(self, number: signal.Signals) -> None:
        """To the server and all its processes; they are not of one group."""
        if self.process:
            server = psutil.Process(self.process.pid)
            for each in [server, *server.children(recursive=True)]:
                with suppress(psutil.NoSuchProcess):
                    each.send_signal(number)

    def kill(self) -> None:
        """As a loss of power does; what was said to be written is found again by `start`."""
        if self.process:
            self.signal(signal.SIGKILL)
            self.process.wait()

    def remove(self) -> None:
        """Stop it, and leave nothing behind."""
        if self.process:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        shutil.rmtree(self.home, ignore_errors=True)
